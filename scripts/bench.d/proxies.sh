# Starts the origin and the proxies that are compared. To be sourced by scripts/bench.
# Every proxy runs on core 0 alone; the client and the origin on core 1.

origin_port=8080
proxy_core=0
client_core=1
in_origin=()

# Kind and port of each contender. A forward proxy gets the whole URL, a reverse proxy a path.
declare -A kinds=([hearsay]=forward [hearsay-memory]=forward [squid]=forward [squid-rock]=forward [nginx]=reverse)
declare -A ports=([hearsay]=3128 [hearsay-memory]=3129 [squid]=3140 [squid-rock]=3141 [nginx]=8081)

start_origin() {
    mkdir -p "$work/www"
    head -c 1K /dev/urandom >"$work/www/1k"
    head -c 16K /dev/urandom >"$work/www/16k"
    head -c 64K /dev/urandom >"$work/www/64k"
    head -c 1M /dev/urandom >"$work/www/1m"
    head -c 1G /dev/zero >"$work/www/1g"
    serve_www
}

# serve_www : starts nginx with the files in $work/www, on $origin_address, by the command prefix $in_origin.
serve_www() {
    local at=${origin_address:-127.0.0.1} run=("${in_origin[@]}")
    ((${#run[@]})) || run=(taskset -c "$client_core")
    nginx_config origin "
    access_log $work/origin.asked asked;
    server {
        listen $at:$origin_port backlog=4096;
        root $work/www;
        add_header Cache-Control 'public, max-age=86400';
    }" >"$work/origin.conf"
    start origin "${run[@]}" bash -c '. "$0/scripts/lib.sh"; run_nginx "$1"' "$root" "$work/origin.conf"
    wait_for 10 "the origin" "${in_origin[@]}" curl -so /dev/null --noproxy '*' "http://$at:$origin_port/" ||
        die "the origin did not start: $(tail -n 5 "$work/origin.log")"
}

# start_proxy NAME : starts one of the contenders, and waits until it answers.
start_proxy() {
    case $1 in
    hearsay) start_hearsay "$1" "$work/store" 16GiB ;;
    hearsay-memory) start_hearsay "$1" memory 256MiB ;;
    squid) start_squid "$1" "cache_mem 512 MB
maximum_object_size_in_memory 4 MB" ;;
    squid-rock)
        mkdir -p "$work/rock"
        start_squid "$1" "cache_mem 0 MB
maximum_object_size_in_memory 0 KB
cache_dir rock $work/rock 2048"
        ;;
    nginx) start_nginx "$1" ;;
    esac
    wait_for 30 "$1 to answer" ask "$1" '1k?ready' -o /dev/null ||
        die "$1 did not start: $(tail -n 20 "$work/$1.log")"
}

# ask NAME PATH [CURL OPTION]... : sends one request through a contender.
ask() {
    local name=$1 path=$2
    shift 2
    if [[ ${kinds[$name]} == forward ]]; then
        http_proxy='' curl -sSf "$@" --noproxy '' --proxy "http://127.0.0.1:${ports[$name]}" "http://127.0.0.1:$origin_port/$path"
    else
        curl -sSf "$@" --noproxy '*' "http://127.0.0.1:${ports[$name]}/$path"
    fi
}

start_hearsay() {
    start "$1" taskset -c "$proxy_core" "$hearsay" run --listen "127.0.0.1:${ports[$1]}" --store "$2" --store-size "$3" --control "$work/$1.control"
}

# Debian's squid, without features that slow it: no access log, no ICMP. It needs /run/squid for its sockets,
# which is made here in our private /run.
start_squid() {
    mkdir -p /run/squid
    cat >"$work/$1.conf" <<END
http_port 127.0.0.1:${ports[$1]}
pid_filename $work/$1.pid
access_log none
cache_store_log none
cache_log $work/$1.log
coredump_dir $work
http_access allow all
maximum_object_size 8 GB
shutdown_lifetime 0 seconds
pinger_enable off
netdb_filename none
logfile_rotate 0
$2
END
    : >"$work/$1.log"
    [[ ! -d $work/rock ]] || chown -R proxy: "$work/rock"
    chown proxy: /run/squid "$work/$1.log" || die "squid becomes the user \`proxy\`, which only root can let it: run this as root"
    squid -n "${1//-/}" -z --foreground -f "$work/$1.conf" >>"$work/$1.log" 2>&1 ||
        die "$1 did not start: \`squid -z\` ended with status $?: $(tail -n 20 "$work/$1.log")"
    start "$1" taskset -c "$proxy_core" squid -n "${1//-/}" --foreground -f "$work/$1.conf"
}

start_nginx() {
    nginx_config "$1" "
    access_log off;
    proxy_cache_path $work/$1/cache levels=1:2 keys_zone=bench:64m max_size=8g inactive=1d use_temp_path=off;
    upstream origin { server 127.0.0.1:$origin_port; keepalive 64; }
    server {
        listen 127.0.0.1:${ports[$1]} backlog=4096;
        location / {
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection '';
            proxy_cache bench;
            proxy_cache_key \$request_uri;
            proxy_cache_lock on;
        }
    }" >"$work/$1.conf"
    start "$1" taskset -c "$proxy_core" bash -c '. "$0/scripts/lib.sh"; run_nginx "$1"' "$root" "$work/$1.conf"
}

# origin_requests : prints how many requests the origin has answered so far.
origin_requests() { wc -l <"$work/origin.asked"; }

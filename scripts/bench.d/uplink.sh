# The uplink pair: a far end and a gateway that keep a common history. To be sourced by scripts/bench.
# scripts/bench uplink [link | flows] [--json FILE]: bytes, processor time and memory on loopback, or times over an emulated
# link, or any TCP flow over one (flows.sh).
# BENCH_ROUNDS (3; 5 with `link`): rounds, each with new daemons and stores; BENCH_PAIRS: names of pairs to transfer (all);
# BENCH_NOISE_MB (256) of new bytes for processor time; BENCH_SMALL (40): answers of 2 KB.
# BENCH_LINK_KBPS (512), BENCH_LINK_MS (200: round trip), BENCH_LINK_QUEUE (40 packets), BENCH_LINK_LOSS (0);
# BENCH_CONGESTION: TCP's congestion control on both sides of the link (the kernel's default).
# The first run with corpora also runs zstd -19 over them, for about ten minutes; what it saves is kept beside each pair.
# BENCH_SCHEMES ("mrc mrc-large src"): published schemes in the table of bytes, beside ours; "mrc:1024" has smallest chunks of
# 1024 bytes on average.
# BENCH_MEMORY: the gateway's budget, if not the default.
# BENCH_PARTS ("bytes work memory"): the tables on loopback; BENCH_BYTES_KBPS: only the table of bytes, over a link of this
# rate (up to 10000), since the far end compresses as hard as the link leaves it time for.

far_port=4170
gateway_port=3128
helper=$parts/uplink.py
. "$parts/netns.sh"

measure_uplink() {
    local json='' over=loopback
    while (($#)); do
        case $1 in
        link | flows) over=$1 ;;
        --json) json=${2:?--json needs a file} && shift ;;
        *) die "usage: scripts/bench uplink [link | flows] [--json FILE]" ;;
        esac
        shift
    done
    need zstd gzip
    "$hearsay" far --help >/dev/null 2>&1 || die "$hearsay has no \`far\`: this version has no uplink pair"
    results=$work/results.jsonl
    : >"$results"
    mkdir -p "$work/www"
    if [[ $over == flows ]]; then
        . "$parts/flows.sh"
        measure_flows
        python3 "$flows" table "$results" ${json:+"$json"}
        return
    fi
    "measure_$over"
    python3 "$helper" table "$over" "$results" ${json:+"$json"}
}

# On loopback

measure_loopback() {
    local part wanted=${BENCH_PARTS:-bytes work memory}
    rounds=${BENCH_ROUNDS:-3}
    take_pairs
    if [[ -z ${BENCH_BYTES_KBPS:-} ]]; then
        place_on_loopback
    else
        BENCH_LINK_KBPS=$BENCH_BYTES_KBPS
        wanted=bytes
        place_behind_link
    fi
    serve_www
    note rounds="$rounds" over="${BENCH_BYTES_KBPS:+a link of $BENCH_BYTES_KBPS kbit/s}"
    for part in $wanted; do
        case $part in
        bytes | work | memory) "rounds_of_$part" ;;
        *) die "there is no part \"$part\": bytes, work or memory" ;;
        esac
    done
}

# The origin has a public address: a gateway asks those on its own site itself.
place_on_loopback() {
    origin_address=198.51.100.2
    ip addr add "$origin_address/32" dev lo
    origin=http://$origin_address:$origin_port
    in_far=(taskset -c "$client_core")
    in_gateway=(taskset -c "$proxy_core")
    in_client=(taskset -c "$client_core")
    far_address=127.0.0.1:$far_port
    private=198.51.100.0/24
}

# take_pairs : chooses the pairs; sets $pairs to their names and links their folders into the origin's.
take_pairs() {
    local folder known name
    folder=$(corpora_folder)
    if ls "$folder"/*/about >/dev/null 2>&1; then
        python3 "$parts/pairs.py" "$work/made" --only blocks
    else
        say "No corpora in $folder (scripts/setup corpora fetches them): generated pairs are used, which have no goals."
        folder=
        python3 "$parts/pairs.py" "$work/made"
    fi
    python3 "$parts/pairs.py" "$work/made" --only noise --scale 16
    pairs=()
    for known in ${folder:+"$folder"/*/about} "$work/made"/*/about; do
        known=${known%/about}
        name=${known##*/}
        [[ " ${BENCH_PAIRS:-$name} " == *" $name "* ]] || continue
        ln -s "$known" "$work/www/$name"
        pairs+=("$name")
    done
    ((${#pairs[@]})) || die "there is no pair named ${BENCH_PAIRS:-}"
}

# take_large : links the kernel's tree, or a large generated one, into the origin's folder.
take_large() {
    local tree
    [[ ! -e $work/www/large ]] || return 0
    tree=$(corpora_folder)/kernel
    if [[ ! -e $tree/about ]]; then
        tree=$work/large/tree
        python3 "$parts/pairs.py" "$work/large" --only tree --scale 30
    fi
    ln -s "$tree" "$work/www/large"
}

rounds_of_bytes() {
    local name round scheme
    for name in "${pairs[@]}"; do
        warn "bytes: $name …"
        python3 "$helper" rivals "$work/www/$name" "$name" "$results"
        for scheme in ours ${BENCH_SCHEMES-mrc mrc-large src}; do
            gateway_config=
            [[ $scheme == ours ]] || gateway_config=$(published "$scheme")$'\n'
            for ((round = 1; round <= rounds; round++)); do
                start_pair
                helper saved "$name" "$work/www/$name" "$scheme"
                stop_pair
            done
        done
    done
    gateway_config=
}

# published KIND[:SMALLEST] : the gateway's lines for a published scheme.
published() {
    say '[experiment]'
    say "uplink = \"${1%:*}\""
    [[ $1 != *:* ]] || say "smallest = ${1#*:}"
}

rounds_of_work() {
    local content round
    take_large
    head -c "${BENCH_NOISE_MB:-256}M" /dev/urandom >"$work/www/new-noise"
    for content in new-noise large/old; do
        warn "processor time: $content …"
        for ((round = 1; round <= rounds; round++)); do
            start_pair
            helper work "$content" "$work/www/$content"
            stop_pair
        done
    done
    rm "$work/www/new-noise"
}

rounds_of_memory() {
    local round
    take_large
    warn "memory …"
    for ((round = 1; round <= rounds; round++)); do
        start_pair
        helper memory with "$work/www"
        stop_pair
        start_gateway ''
        helper memory without "$work/www"
        stop "$gateway_pid" TERM
    done
}

# The pair

# start_pair : starts a far end and a gateway with new stores, and waits until they are connected.
start_pair() {
    local key
    rm -rf "$work"/{far,gateway}.{store,control}
    : >"$work/far.log"
    key=$("$hearsay" uplink --key --store "$work/gateway.store") || die "the gateway's key was not printed"
    start far "${in_far[@]}" "$hearsay" far --listen "$far_address" --near "$key" \
        --store "$work/far.store" --store-size 8GiB --control "$work/far.control" --private "$private"
    far_pid=$started
    wait_for 10 "the far end" grep -q '^far-key = ' "$work/far.log" ||
        die "the far end did not start: $(tail -n 5 "$work/far.log")"
    start_gateway "${gateway_config:-}[uplink]
$(grep -E '^far(-key)? = ' "$work/far.log")"
    wait_for 20 "the pair to connect" helper connected ||
        die "the pair did not connect: $(tail -n 5 "$work/far.log" "$work/gateway.log")"
}

# start_gateway CONFIG : starts a gateway; without a far end if CONFIG is empty.
start_gateway() {
    [[ -n $1 ]] || rm -rf "$work"/gateway.{store,control}
    say "$1" >"$work/gateway.toml"
    start gateway "${in_gateway[@]}" "$hearsay" run --config "$work/gateway.toml" --listen "127.0.0.1:$gateway_port" \
        --store "$work/gateway.store" --store-size 8GiB --control "$work/gateway.control" \
        ${BENCH_MEMORY:+--memory "$BENCH_MEMORY"}
    gateway_pid=$started
    wait_for 10 "the gateway" "$hearsay" status --control "$work/gateway.control" ||
        die "the gateway did not start: $(tail -n 5 "$work/gateway.log")"
}

stop_pair() {
    stop "$gateway_pid" TERM
    stop "$far_pid" TERM
}

# helper COMMAND ARGUMENTS... : runs a measuring command as a client of the gateway; it appends to $results.
helper() {
    results=$results origin=$origin gateway=127.0.0.1:$gateway_port control=$work/gateway.control \
        far_pid=${far_pid:-} gateway_pid=${gateway_pid:-} "${in_client[@]}" python3 "$helper" "$@"
}

# note NAME=VALUE... : adds what the tables say about the conditions.
note() { python3 "$helper" note "$results" "$@"; }

# Over an emulated link

measure_link() {
    local round
    rounds=${BENCH_ROUNDS:-5}
    for ((round = 1; round <= rounds; round++)); do
        python3 "$parts/pairs.py" "$work/www/$round" --only blocks --seed "$round"
    done
    head -c 64M /dev/urandom >"$work/www/filler"
    head -c 2K /dev/urandom >"$work/www/small"
    place_behind_link
    serve_www
    note rounds="$rounds" kbps="$kbps" ms="$ms" queue="$queue" loss="$loss" \
        congestion="$(ip netns exec gateway sysctl -n net.ipv4.tcp_congestion_control)" small="${BENCH_SMALL:-40}"
    helper rate "$kbps" "$ms"
    warn "direct …"
    helper transfers direct "$rounds" "$work/www"
    helper small direct "${BENCH_SMALL:-40}"
    warn "through the pair …"
    start_pair
    helper transfers pair "$rounds" "$work/www"
    stop_pair
    # New daemons, with nothing in their stores and nothing under way.
    start_pair
    helper small pair "${BENCH_SMALL:-40}"
    stop_pair
}

# place_behind_link : client and gateway --- slow link --- far end --- origin, each in a namespace.
place_behind_link() {
    kbps=${BENCH_LINK_KBPS:-512} ms=${BENCH_LINK_MS:-200} queue=${BENCH_LINK_QUEUE:-40} loss=${BENCH_LINK_LOSS:-0}
    [[ -r /dev/net/tun && -w /dev/net/tun ]] || die "/dev/net/tun may not be used here"
    BENCH_CONGESTION=${BENCH_CONGESTION:-$(sysctl -n net.ipv4.tcp_congestion_control)}
    add_nodes gateway far o
    link far up0 198.51.100.1 o up0 198.51.100.2
    start slow_link python3 "$parts/slow_link.py" gateway 10.80.0.1 far 10.80.0.2 "$kbps" "$ms" "$queue" "$loss"
    wait_for 10 "the emulated link" grep -q ready "$work/slow_link.log" ||
        die "the emulated link did not start: $(tail -n 3 "$work/slow_link.log")"
    ip -n gateway route add default via 10.80.0.2
    ip -n o route add default via 198.51.100.1
    in_origin=(ip netns exec o) in_far=(ip netns exec far) in_gateway=(ip netns exec gateway) in_client=(ip netns exec gateway)
    origin_address=198.51.100.2
    origin=http://$origin_address:$origin_port
    far_address=10.80.0.2:$far_port
    private=198.51.100.0/24
}

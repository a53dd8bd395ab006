# What packages cost an uplink with mirrors: real clients behind two access routers of a mesh, and registries beyond the
# gateway. Beside it squid and apt-cacher-ng on the gateway, and no cache. To be sourced by scripts/bench.
# BENCH_CLIENTS (apt pip npm oci cargo go maven): those that this machine lacks are left out, loudly.
# With `real`: the same clients with packages of the real registries, through one router; needs the Internet. Where
# sum.golang.org is out of reach, BENCH_SUMDB=off lets Go do without.

. "$parts/netns.sh"
registries=$root/crates/daemon/tests/registries
ecosystems=(${BENCH_CLIENTS:-apt pip npm oci cargo go maven})
registry_address=198.51.100.2

declare -A program=([apt]=apt-get [pip]=pip3 [npm]=npm [oci]=skopeo [cargo]=cargo [go]=go [maven]=mvn)
# The machine's own real packages, for `real`.
declare -A real_packages=([apt]=hello [pip]=requests [npm]=express [oci]=library/busybox:1.36
    [cargo]='serde = "1"' [go]=rsc.io/quote@v1.5.2 [maven]=kr.motd.maven:os-maven-plugin:1.7.1)

measure_mirror() {
    leave_out_missing
    lay_mesh
    start_registries
    say ""
    say "Bytes for packages of about 3 MB: two clients with empty homes, one after the other, behind different routers. \"Sent\" are the registries' responses without TLS, of files and in all; \"uplink\" is the gateway's interface."
    say ""
    say "| client | by | sent to the first: files / all | uplink | sent to the second: files / all | uplink | second / first |"
    say "|---|---|--:|--:|--:|--:|--:|"
    measure_by direct
    start_mesh
    measure_by hearsay
    if start_squid_on_gateway; then measure_by squid; fi
    if start_apt_cacher; then measure_by apt-cacher-ng; fi
}

leave_out_missing() {
    local one kept=()
    for one in "${ecosystems[@]}"; do
        if command -v "${program[$one]}" >/dev/null; then kept+=("$one"); else warn "LEFT OUT: $one: ${program[$one]} is not installed"; fi
    done
    ecosystems=("${kept[@]}")
}

# first --- access1 --- relay --- gateway --- o
# second -- access2 ------'
lay_mesh() {
    add_nodes o gateway relay access1 access2 first second
    link o up0 203.0.113.1 gateway up0 203.0.113.2
    ip -n o addr add "$registry_address/32" dev lo
    link gateway wl0 10.77.1.1 relay wl0 10.77.1.2
    link relay wl1 10.77.2.1 access1 wl0 10.77.2.2
    link relay wl2 10.77.3.1 access2 wl0 10.77.3.2
    link access1 lan0 10.78.1.1 first lan0 10.78.1.2
    link access2 lan0 10.78.2.1 second lan0 10.78.2.2
    ip -n o route add 10.76.0.0/14 via 203.0.113.2
    ip -n gateway route add default via 203.0.113.1
    local net
    for net in 10.77.2.0/30 10.77.3.0/30 10.78.1.0/30 10.78.2.0/30; do ip -n gateway route add "$net" via 10.77.1.2; done
    ip -n relay route add default via 10.77.1.1
    ip -n relay route add 10.78.1.0/30 via 10.77.2.2
    ip -n relay route add 10.78.2.0/30 via 10.77.3.2
    ip -n access1 route add default via 10.77.2.1
    ip -n access2 route add default via 10.77.3.1
    ip -n first route add default via 10.78.1.1
    ip -n second route add default via 10.78.2.1
}

# The names of the registries lead to them in all namespaces.
start_registries() {
    start registries ip netns exec o python3 "$registries/serve.py" --dir "$work/registries" --ca "$work/ca" \
        --listen "$registry_address:443" --plain "$registry_address:80" --log "$work/sent"
    wait_for 30 "the registries" grep -q ready "$work/registries.log" ||
        die "the registries did not start: $(tail -n 5 "$work/registries.log")"
    { say "127.0.0.1 localhost" && sed "s/^/$registry_address /" "$work/registries/hosts"; } >"$work/hosts"
    mount --bind "$work/hosts" /etc/hosts
    say "nameserver 127.0.0.1" >"$work/resolv.conf"
    mount --bind "$work/resolv.conf" /etc/resolv.conf
    ca=$work/ca/ca.pem
}

start_mesh() {
    local node
    start_router gateway '["wl0"]' ''
    start_router relay '["wl0", "wl1", "wl2"]' ''
    start_router access1 '["wl0"]' 10.78.1.1:3142
    start_router access2 '["wl0"]' 10.78.2.1:3142
    for node in relay access1 access2; do wait_for 30 "the route of $node" has_route "$node"; done
}

# start_router NODE INTERFACES MIRROR : starts a daemon that trusts the registries' CA.
start_router() {
    {
        printf 'name = "%s"\nlisten = ["127.0.0.1:3128"]\n' "$1"
        [[ -z $3 ]] || printf '[mirror]\nlisten = ["%s"]\n' "$3"
        printf '[mesh]\ninterfaces = %s\n' "$2"
    } >"$work/$1.toml"
    start "$1" ip netns exec "$1" env SSL_CERT_FILE="$ca" "$hearsay" run --config "$work/$1.toml" \
        --store "$work/$1.store" --control "$work/$1.control"
    wait_for 10 "$1" "$hearsay" status --control "$work/$1.control" || die "$1: $(tail -n 5 "$work/$1.log")"
}

# The lines that squid's users write for archives, of the kind that its own wiki gives.
start_squid_on_gateway() {
    command -v squid >/dev/null || { warn "LEFT OUT: squid is not installed: run scripts/setup --bench" && return 1; }
    mkdir -p /run/squid "$work/squid"
    cat >"$work/squid.conf" <<END
http_port 10.77.1.1:3128
pid_filename $work/squid.pid
access_log none
cache_store_log none
cache_log $work/squid/log
coredump_dir $work/squid
cache_dir ufs $work/squid/cache 1024 16 16
maximum_object_size 1 GB
http_access allow all
shutdown_lifetime 0 seconds
pinger_enable off
netdb_filename none
logfile_rotate 0
refresh_pattern -i \\.u?deb\$ 129600 100% 129600 override-expire ignore-reload
refresh_pattern /by-hash/ 129600 100% 129600 override-expire ignore-reload
refresh_pattern (In)?Release(\.gpg)?\$ 0 20% 2880
refresh_pattern . 0 20% 4320
END
    chown -R proxy: /run/squid "$work/squid" || die "squid becomes the user \`proxy\`, which only root can let it"
    squid -n benchmirror -z --foreground -f "$work/squid.conf" >>"$work/squid.log" 2>&1 || die "squid -z: $(tail -n 5 "$work/squid.log")"
    start squid ip netns exec gateway squid -n benchmirror --foreground -f "$work/squid.conf"
    wait_for 20 squid ip netns exec first bash -c ': </dev/tcp/10.77.1.1/3128' || die "squid: $(tail -n 5 "$work/squid.log" "$work/squid/log")"
}

start_apt_cacher() {
    command -v apt-cacher-ng >/dev/null || { warn "LEFT OUT: apt-cacher-ng is not installed: run scripts/setup --bench" && return 1; }
    mkdir -p "$work/acng/"{conf,cache,log}
    printf '%s\n' "CacheDir: $work/acng/cache" "LogDir: $work/acng/log" "BindAddress: 10.77.1.1" "Port: 3142" \
        "ForeGround: 1" "SocketPath: $work/acng/socket" "PidFile: $work/acng/pid" >"$work/acng/conf/acng.conf"
    start acng ip netns exec gateway apt-cacher-ng -c "$work/acng/conf"
    wait_for 20 apt-cacher-ng ip netns exec first bash -c ': </dev/tcp/10.77.1.1/3142' || {
        warn "LEFT OUT: apt-cacher-ng did not start: $(tail -n 5 "$work/acng.log")"
        return 1
    }
}

# measure_by NAME : a row for each client.
measure_by() {
    local one
    for one in "${ecosystems[@]}"; do
        [[ $1 != apt-cacher-ng || $one == apt ]] || continue
        run_client "$1" "$one" first
        run_client "$1" "$one" second
        local by=$1
        # It sees only ciphertext, which it cannot store.
        [[ $1 != squid || $one == apt ]] || by="squid, a tunnel"
        [[ $1 != squid && $1 != apt-cacher-ng || $one != apt ]] || by="$1, without TLS"
        awk -v by="$by" -v client="$one" -v a="${cost[first]}" -v b="${cost[second]}" 'BEGIN {
            split(a, x); split(b, y)
            printf "| %s | %s | %d / %d | %d | %d / %d | %d | %.2f %% |\n",
                client, by, x[1], x[2], x[3], y[1], y[2], y[3], y[3] * 100 / x[3] }'
    done
}

declare -A cost=()

# run_client NAME CLIENT NODE : runs a client with an empty home; sets cost[NODE] to "files all uplink".
run_client() {
    local home=$work/home variables=() sent uplink
    case $1 in
    hearsay) variables=(MIRROR="http://$(mirror_of "$3")") ;;
    squid) variables=(PROXY=http://10.77.1.1:3128) ;;
    apt-cacher-ng) variables=(PROXY=http://10.77.1.1:3142) ;;
    esac
    [[ $2 != apt || $1 == direct || $1 == hearsay ]] || variables+=(PLAIN=1)
    rm -rf "$home"
    mkdir "$home"
    sent=$(wc -l <"$work/sent") uplink=$(uplink_bytes)
    ip netns exec "$3" env HOME="$home" CA="$ca" "${variables[@]}" timeout 120 "$registries/clients/$2.sh" \
        >"$work/got" 2>"$work/said" || die "$2 by $1, $3: $(tail -n 15 "$work/said")"
    python3 "$parts/mirror_sent.py" got "$work/registries/content.json" "$2" "$work/got" || die "$2 by $1 got something else"
    cost[$3]="$(python3 "$parts/mirror_sent.py" sent "$work/sent" "$sent") $(($(uplink_bytes) - uplink))"
}

mirror_of() { if [[ $1 == first ]]; then say 10.78.1.1:3142; else say 10.78.2.1:3142; fi; }

uplink_bytes() { ip netns exec gateway cat /sys/class/net/up0/statistics/rx_bytes; }

# The real registries, by one router on this machine, which are asked for each package twice.
measure_real() {
    local one port=${BENCH_MIRROR_PORT:-3142} before
    leave_out_missing
    printf 'listen = ["127.0.0.1:0"]\n[mirror]\nlisten = ["127.0.0.1:%s"]\n' "$port" >"$work/real.toml"
    start real "$hearsay" run --config "$work/real.toml" --store "$work/real.store" --control "$work/real.control"
    wait_for 10 "the router" "$hearsay" status --control "$work/real.control" || die "$(tail -n 5 "$work/real.log")"
    say ""
    say "| client | what | bytes from the origin, first client | second client |"
    say "|---|---|--:|--:|"
    for one in "${ecosystems[@]}"; do
        local bytes=()
        for turn in first second; do
            before=$(origin_bytes)
            run_real "$one" || break
            bytes+=($(($(origin_bytes) - before)))
        done
        if ((${#bytes[@]} == 2)); then
            say "| $one | \`${real_packages[$one]}\` | ${bytes[0]} | ${bytes[1]} |"
        else
            say "| $one | \`${real_packages[$one]}\` | not reachable | |"
            warn "$one: $(grep -v '^ *$' "$work/said" | tail -n 3)"
        fi
    done
}

run_real() {
    local home=$work/home
    rm -rf "$home"
    mkdir "$home"
    env HOME="$home" MIRROR="http://127.0.0.1:$port" PACKAGES="${real_packages[$1]}" SUMDB="${BENCH_SUMDB:-sum.golang.org}" \
        timeout 300 "$registries/clients/$1.sh" >"$work/got" 2>"$work/said"
}

origin_bytes() {
    "$hearsay" status --json --control "$work/real.control" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["report"]["origin_bytes"])'
}

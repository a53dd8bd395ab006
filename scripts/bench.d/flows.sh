# Any TCP flow through the uplink pair: bytes over a slow link, added delay, many flows beside a long one, processor time. To
# be sourced by scripts/bench.d/uplink.sh. scripts/bench uplink flows [--json FILE]; BENCH_ROUNDS (3): each with new daemons
# and stores; BENCH_THROUGH ("direct pair"); BENCH_PARTS ("bytes delay many work");
# BENCH_FLOWS_KBPS (8000) and BENCH_LINK_MS (200: round trip) for bytes and delay, BENCH_LINK_QUEUE (170 packets);
# BENCH_NOISE_MB (256) and BENCH_TREE_SCALE (60): new bytes for processor time; BENCH_CONGESTION and BENCH_MEMORY: as for the others.

flows=$parts/flows.py
origin_address=198.51.100.2

measure_flows() {
    local round through part
    need rsync git
    [[ -r /dev/net/tun && -w /dev/net/tun ]] || die "/dev/net/tun may not be used here"
    rounds=${BENCH_ROUNDS:-3}
    far_address=10.80.0.2:$far_port private=198.51.100.0/24 origin=
    BENCH_CONGESTION=${BENCH_CONGESTION:-$(sysctl -n net.ipv4.tcp_congestion_control)}
    make_content
    add_nodes client gateway far o
    link client lan0 10.78.0.2 gateway lan0 10.78.0.1
    link far up0 198.51.100.1 o up0 198.51.100.2
    ip -n client route add default via 10.78.0.1
    ip -n o route add default via 198.51.100.1
    # A far end says that it reaches a family of addresses if it has a default route for it.
    ip -n far route add default via 198.51.100.2
    in_far=(ip netns exec far) in_gateway=(ip netns exec gateway) in_client=(ip netns exec client)
    start_flow_origin
    note rounds="$rounds" congestion="$BENCH_CONGESTION" kbps="${BENCH_FLOWS_KBPS:-8000}" ms="${BENCH_LINK_MS:-200}"
    for part in ${BENCH_PARTS:-bytes delay many work}; do
        connect_for "$part"
        for through in ${BENCH_THROUGH:-direct pair}; do
            # The daemons' time: without them there is none.
            [[ "$part $through" != "work direct" ]] || continue
            for ((round = 1; round <= rounds; round++)); do
                warn "$part, $through, round $round …"
                "begin_$through"
                "flows_$part" "$through" "$round"
                "end_$through"
            done
        done
    done
}

# connect_for PART : connects gateway and far end by a link that suits; the one before goes.
connect_for() {
    [[ -z ${slow_link:-} ]] || stop "$slow_link" TERM
    slow_link=
    ip -n gateway link del slow0 2>/dev/null || true
    case $1 in
    work) link gateway slow0 10.80.0.1 far slow0 10.80.0.2 ;;
    many) emulate 1000 1000 85 ;;
    *) emulate "${BENCH_FLOWS_KBPS:-8000}" "${BENCH_LINK_MS:-200}" "${BENCH_LINK_QUEUE:-170}" ;;
    esac
    ip -n gateway route replace default via 10.80.0.2
    ip -n far route replace 10.78.0.0/30 via 10.80.0.1
}

emulate() {
    rm -f "$work/slow_link.log"
    start slow_link python3 "$parts/slow_link.py" gateway 10.80.0.1 far 10.80.0.2 "$@"
    slow_link=$started
    wait_for 10 "the emulated link" grep -q ready "$work/slow_link.log" ||
        die "the emulated link did not start: $(tail -n 3 "$work/slow_link.log")"
}

begin_direct() { :; }
end_direct() { :; }

# The gateway intercepts flows once it knows what its far end reaches.
begin_pair() {
    start_pair
    wait_for 20 "flows to go by the pair" flows way pair || die "flows do not go by the pair: $(tail -n 5 "$work/gateway.log")"
}
end_pair() { stop_pair; }

# The gateway intercepts all that its clients send to other ports than those of TLS and the like; none is HTTP's.
gateway_config='[intercept]
interfaces = ["lan0"]
ports = "all"
http = []
'

# flows COMMAND ARGUMENTS... : runs a measuring command as a client; it appends to $results.
flows() {
    results=$results far_pid=${far_pid:-} gateway_pid=${gateway_pid:-} "${in_client[@]}" python3 "$flows" "$@"
}

# What is transferred is the same in each round.
make_content() {
    python3 "$flows" content "$work/content"
    head -c "${BENCH_NOISE_MB:-256}M" /dev/urandom >"$work/content/files/noise"
    python3 "$parts/pairs.py" "$work/made" --only tree --scale "${BENCH_TREE_SCALE:-60}" --seed 2
    ln "$work/made/tree/old" "$work/content/files/tree"
}

start_flow_origin() {
    local age
    for age in old new; do
        printf '[%s]\npath = %s\nread only = yes\n' "$age" "$work/content/$age"
    done >"$work/rsyncd.conf"
    printf 'use chroot = no\nreverse lookup = no\nuid = %s\ngid = %s\n' "$(id -un)" "$(id -gn)" | cat - "$work/rsyncd.conf" >"$work/rsync.conf"
    start rsync ip netns exec o rsync --daemon --no-detach --config="$work/rsync.conf" --address="$origin_address"
    start git ip netns exec o git daemon --reuseaddr --export-all --base-path="$work/content/git" --listen="$origin_address"
    start files ip netns exec o python3 "$flows" serve "$work/content/files"
    local port
    for port in 873 9418 5001 4450; do
        wait_for 10 "the origin's port $port" ip netns exec o bash -c "exec 3<>/dev/tcp/$origin_address/$port"
    done
}

flows_bytes() { flows bytes "$1" "$2" "$work/content"; }
flows_delay() { flows delay "$1" "$2"; }
flows_many() { flows many "$1" "$2"; }
flows_work() { flows work "$1" "$2" "$work/content"; }

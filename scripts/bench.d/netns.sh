# Routers in namespaces of their own on fast links, and an origin. To be sourced by benchmarks.

# add_nodes NODE... : makes namespaces that forward. Their TCP uses reno, which every kernel permits in namespaces.
# It does not pace, like Linux's default: bbr's timers would cost a sender on a fast link an eighth more.
add_nodes() {
    local node
    for node; do
        ip netns add "$node"
        ip -n "$node" link set lo up
        ip netns exec "$node" sysctl -qw net.ipv4.ip_forward=1 \
            net.ipv4.tcp_congestion_control="${BENCH_CONGESTION:-reno}"
    done
}

# link NAMESPACE INTERFACE ADDRESS NAMESPACE INTERFACE ADDRESS : makes a link between two namespaces.
link() {
    ip link add "$2" netns "$1" type veth peer name "$5" netns "$4"
    ip -n "$1" addr add "$3/30" dev "$2"
    ip -n "$4" addr add "$6/30" dev "$5"
    ip -n "$1" link set "$2" up
    ip -n "$4" link set "$5" up
}

start_stream_origin() {
    start stream ip netns exec o python3 "$parts/stream_origin.py" 80 198.51.100.2
    wait_for 10 "the origin" ip netns exec gateway curl -sfo /dev/null --noproxy '*' http://198.51.100.2/1/1
}

# has_route NODE : whether its daemon has a route to the gateway.
has_route() { "$hearsay" status --json --control "$work/$1.control" | grep -q '"next_hop"'; }

# start_daemon NODE ARGUMENTS... : starts a daemon with a store of its own and peers on wl0; sets daemon[NODE].
start_daemon() {
    local node=$1
    say "name = \"$node\"" >"$work/$node.toml"
    start "$node" ip netns exec "$node" "$hearsay" run --config "$work/$node.toml" \
        --store "$work/$node.store" --store-size 8GiB --control "$work/$node.control" --mesh wl0 "${@:2}"
    daemon[$node]=$started
    wait_for 10 "$node" "$hearsay" status --control "$work/$node.control"
}

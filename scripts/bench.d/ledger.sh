# The ledger's bytes on the wire beside the interfaces' counters. To be sourced by scripts/bench.
# BENCH_ROUNDS (3), BENCH_MEGABYTES (100).
# A client, a router that runs the daemon, and an origin, each in a namespace. Offloads are off, so that the interfaces
# count packets as a real link has them: each with the 14 bytes of its Ethernet header, which the ledger does not see.

rounds=${BENCH_ROUNDS:-3}
megabytes=${BENCH_MEGABYTES:-100}

measure_ledger() {
    . "$parts/netns.sh"
    add_nodes client r o
    link client eth0 10.1.0.2 r lan0 10.1.0.1
    link r wan0 198.51.100.1 o eth0 198.51.100.2
    ip -6 -n r addr add fd01::1/64 dev lan0 nodad && ip -6 -n client addr add fd01::2/64 dev eth0 nodad
    ip -n r route add default via 198.51.100.2
    without_offloads r lan0 && without_offloads r wan0
    without_offloads client eth0 && without_offloads o eth0
    mkdir -p "$work/www"
    head -c "${megabytes}M" /dev/urandom >"$work/www/file"
    in_origin=(ip netns exec o)
    origin_address=198.51.100.2 origin_port=80
    serve_www
    say "| $megabytes MiB through the router | interfaces, MB | ledger, MB | difference, % |"
    say "|---|--:|--:|--:|"
    local round
    for ((round = 1; round <= rounds; round++)); do
        transfers "$round"
    done
}

without_offloads() { ip -n "$1" link set dev "$2" gso_max_segs 1; }

# transfers ROUND : a miss, then a hit over each family, with an empty store.
transfers() {
    rm -rf "$work/store.$1"
    start hearsay ip netns exec r "$hearsay" run --listen 10.1.0.1:3128 --listen '[fd01::1]:3128' \
        --store "$work/store.$1" --store-size 1GiB --control "$work/control"
    wait_for 10 "the daemon" "$hearsay" status --control "$work/control"
    one "a miss" 10.1.0.1:3128
    one "a hit" 10.1.0.1:3128
    one "a hit, IPv6" '[fd01::1]:3128'
    stop "$started" TERM
}

# one NAME PROXY : a transfer, and its row.
one() {
    local counted ledger
    counted=$(interface_bytes) ledger=$(ledger_bytes)
    ip netns exec client curl -sSf -o /dev/null --noproxy '' --proxy "http://$2" \
        "http://198.51.100.2:$origin_port/file"
    counted=$(($(interface_bytes) - counted)) ledger=$(($(ledger_bytes) - ledger))
    awk -v name="$1" -v a="$counted" -v b="$ledger" \
        'BEGIN { printf "| %s | %.2f | %.2f | %.2f |\n", name, a / 1e6, b / 1e6, 100 * (b - a) / a }'
}

interface_bytes() {
    ip netns exec r bash -c 'cat /sys/class/net/[lw]an0/statistics/[rt]x_bytes' |
        awk '{ sum += $1 } END { print sum }'
}

ledger_bytes() {
    "$hearsay" ledger --json --control "$work/control" | python3 -c '
import json, sys
wire = json.load(sys.stdin)["total"]["wire"].values()
print(sum(it["in_bytes"] + it["out_bytes"] for it in wire))'
}

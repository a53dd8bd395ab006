# A relay between two other routers on fast links (veth, no radio): bytes per second of processor time, bytes of
# messages other than units, and memory with many transfers at once. To be sourced by scripts/bench.
# BENCH_RELAY_MB (1024), BENCH_ROUNDS (3), BENCH_CLIENTS (100), BENCH_CLIENT_MB (4), BENCH_CLIENT_RATE (1M).

relay_mb=${BENCH_RELAY_MB:-1024}
rounds=${BENCH_ROUNDS:-3}
clients=${BENCH_CLIENTS:-100}
client_mb=${BENCH_CLIENT_MB:-4}
client_rate=${BENCH_CLIENT_RATE:-1M}
. "$parts/netns.sh"

measure_relay() {
    local round
    lay_links
    start_stream_origin
    declare -A daemon
    for node in gateway relay access; do start_node "$node"; done
    wait_for 20 "the relay's route" has_route relay
    wait_for 20 "the access router's route" has_route access
    fetch warm 1 1 >/dev/null
    say ""
    say "| $relay_mb MiB of new bytes, gateway to relay to access router | Gbit/s | relay: Gbit per processor second | gateway | access router | said beside the units |"
    say "|---|--:|--:|--:|--:|--:|"
    for ((round = 1; round <= rounds; round++)); do measure_round "$round"; done
    many_at_once
}

# o --- gateway --- relay --- access --- client
lay_links() {
    add_nodes o gateway relay access client
    link o up0 198.51.100.2 gateway up0 198.51.100.1
    link gateway wl0 10.77.1.1 relay wl0 10.77.1.2
    link relay wl1 10.77.2.1 access wl0 10.77.2.2
    link access lan0 10.78.0.1 client lan0 10.78.0.2
    ip -n o route add 10.77.0.0/16 via 198.51.100.1
    ip -n gateway route add default via 198.51.100.2
    ip -n gateway route add 10.77.2.0/30 via 10.77.1.2
    ip -n relay route add default via 10.77.1.1
    ip -n access route add default via 10.77.2.1
}

start_node() {
    local extra=(--listen 127.0.0.1:3128)
    [[ $1 == relay ]] && extra+=(--mesh wl1)
    [[ $1 == access ]] && extra=(--listen 10.78.0.1:3128)
    start_daemon "$1" "${extra[@]}"
}

# fetch NAME MIB NUMBER : downloads an object, and prints the seconds it took.
fetch() {
    ip netns exec client curl -sSf -o /dev/null -w '%{time_total}\n' --noproxy '' \
        --proxy http://10.78.0.1:3128 "http://198.51.100.2/$2/$3"
}

# ticks NODE : prints its daemon's processor time so far, in hundredths of a second.
ticks() { awk '{ print $14 + $15 }' "/proc/${daemon[$1]}/stat"; }

# counter NODE NAME : prints a counter of its daemon.
counter() { "$hearsay" status --json --control "$work/$1.control" | grep -o "\"$2\": *[0-9]*" | head -1 | grep -o '[0-9]*$'; }

measure_round() {
    local node seconds
    local -A before after
    for node in gateway relay access; do before[$node]=$(ticks "$node"); done
    local units=$(counter relay peer_units_out_bytes) all=$(counter relay peer_out_bytes)
    local heard=$(counter relay peer_in_bytes) taken=$(counter relay peer_units_in_bytes)
    seconds=$(fetch round "$relay_mb" "$((100 + $1))")
    for node in gateway relay access; do after[$node]=$(ticks "$node"); done
    units=$(($(counter relay peer_units_out_bytes) - units)) all=$(($(counter relay peer_out_bytes) - all))
    heard=$(($(counter relay peer_in_bytes) - heard)) taken=$(($(counter relay peer_units_in_bytes) - taken))
    awk -v mb="$relay_mb" -v s="$seconds" -v g="$((after[gateway] - before[gateway]))" \
        -v r="$((after[relay] - before[relay]))" -v a="$((after[access] - before[access]))" \
        -v units="$((units + taken))" -v all="$((all + heard))" -v round="$1" 'BEGIN {
            gbit = mb * 8 * 1.048576 / 1000
            printf "| round %d | %.2f | %.2f | %.2f | %.2f | %.2f %% |\n",
                round, gbit / s, gbit * 100 / r, gbit * 100 / g, gbit * 100 / a, (all - units) * 100 / units }'
}

many_at_once() {
    local n pids=() before
    echo 5 >"/proc/${daemon[relay]}/clear_refs"
    before=$(awk '$1 == "VmRSS:" { printf "%.1f", $2 / 1024 }' "/proc/${daemon[relay]}/status")
    for ((n = 0; n < clients; n++)); do
        ip netns exec client curl -sSf -o /dev/null --limit-rate "$client_rate" --noproxy '' \
            --proxy http://10.78.0.1:3128 "http://198.51.100.2/$client_mb/$((1000 + n))" &
        pids+=($!)
    done
    wait "${pids[@]}"
    say ""
    say "| the relay's resident memory | MiB |"
    say "|---|--:|"
    say "| before | $before |"
    awk -v n="$clients" '$1 == "VmHWM:" { printf "| peak, %d transfers at once | %.1f |\n", n, $2 / 1024 }' \
        "/proc/${daemon[relay]}/status"
}

# What a miss adds to the time to the first byte. To be sourced by scripts/bench.
# BENCH_REQUESTS (2000): requests to each proxy in turn, one at a time, on kept-alive connections.

measure_miss() {
    local name places=("direct=reverse:$origin_port")
    start_origin
    for name in hearsay hearsay-memory squid squid-rock nginx; do
        start_proxy "$name"
        places+=("$name=${kinds[$name]}:${ports[$name]}")
    done
    local before=$(origin_requests) count=${BENCH_REQUESTS:-2000} object
    say ""
    say "Misses: $count unique URLs each, one after another, in turn; proxy on core $proxy_core, client and origin on core $client_core."
    for object in 16k 1m; do
        say ""
        taskset -c "$client_core" python3 "$parts/first_byte.py" "$object" "$count" "$origin_port" "${places[@]}"
    done
    # The count includes warming up. It shows that no proxy answered from its store.
    local asked=$(($(origin_requests) - before)) wanted=$((2 * count * ${#places[@]}))
    ((asked >= wanted)) || say "INVALID: the origin was asked $asked times, not $wanted"
}

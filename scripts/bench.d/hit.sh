# Cache hits per second of several proxies, side by side. To be sourced by scripts/bench.
# BENCH_SECONDS (4) a run, BENCH_ROUNDS (3) runs of each, interleaved; BENCH_CONNECTIONS (32).

contenders=(hearsay hearsay-memory squid squid-rock nginx)
sizes=(1k 64k 1m)
rounds=${BENCH_ROUNDS:-3}
seconds=${BENCH_SECONDS:-4}
connections=${BENCH_CONNECTIONS:-32}
urls=16

measure_hit() {
    local name size round
    start_origin
    for name in "${contenders[@]}"; do start_proxy "$name"; done
    for size in "${sizes[@]}"; do
        for name in "${contenders[@]}"; do warm "$name" "$size"; done
        for ((round = 0; round < rounds; round++)); do
            for name in "${contenders[@]}"; do run_once "$name" "$size" "$seconds" >>"$work/hits"; done
        done
    done
    say ""
    say "Warm hits, $connections connections, $urls URLs, $rounds runs of $seconds s each, interleaved; proxy on core $proxy_core, wrk on core $client_core."
    say ""
    python3 "$parts/hit_table.py" "$work/hits" "${contenders[@]}"
}

# Requests every URL twice (some caches store only at the second request), then loads the proxy for half a second.
warm() {
    local n pass
    for pass in 1 2; do
        for ((n = 0; n < urls; n++)); do ask "$1" "$2?n=$n" -o /dev/null; done
    done
    run_once "$1" "$2" 1 >/dev/null
}

# run_once NAME SIZE SECONDS : prints NAME SIZE requests/s p50_us p99_us errors misses.
run_once() {
    local before after prefix='' result
    [[ ${kinds[$1]} == reverse ]] || prefix=http://127.0.0.1:$origin_port
    before=$(origin_requests)
    result=$(taskset -c "$client_core" wrk -t 1 -c "$connections" -d "$3s" -s "$parts/wrk.lua" \
        "http://127.0.0.1:${ports[$1]}/" -- "$prefix" "$2" "$urls" "127.0.0.1:$origin_port" | sed -n 's/^RESULT //p')
    after=$(origin_requests)
    say "$1 $2 ${result:-0 0 0 1} $((after - before))"
}

# Resident memory of the daemon. To be sourced by scripts/bench.
# BENCH_FILL_MB (8192: a million units of 8 KiB), BENCH_CLIENTS (100), BENCH_CLIENT_RATE (4M),
# BENCH_CLIENT_SECONDS (60).

fill_mb=${BENCH_FILL_MB:-8192}
clients=${BENCH_CLIENTS:-100}
client_rate=${BENCH_CLIENT_RATE:-4M}
client_seconds=${BENCH_CLIENT_SECONDS:-60}
stream_port=8090

measure_memory() {
    local idle full after_restart slow_before slow_peak
    start_origin
    start_stream
    start_proxy hearsay
    pid=$started
    idle=$(resident VmRSS)
    fill_store
    full=$(resident VmRSS)
    stop "$pid" TERM
    start_proxy hearsay
    pid=$started
    after_restart=$(resident VmRSS)
    slow_before=$after_restart
    forget_peak
    slow_clients
    slow_peak=$(resident VmHWM)
    say ""
    say "| resident memory of the daemon | MiB |"
    say "|---|--:|"
    say "| idle, empty store | $idle |"
    say "| after $fill_mb MiB of different bytes went through | $full |"
    say "| after a restart with that store | $after_restart |"
    say "| peak, $clients clients at ${client_rate}B/s on one 1 GiB object | $slow_peak |"
    say ""
    "$hearsay" status --control "$work/hearsay.control"
}

# resident FIELD : VmRSS (now) or VmHWM (peak), in MiB.
resident() { awk -v field="$1:" '$1 == field { printf "%.1f", $2 / 1024 }' "/proc/$pid/status"; }

forget_peak() { echo 5 >"/proc/$pid/clear_refs"; }

# An origin whose bytes never repeat, so that every unit is new.
start_stream() {
    local kept=$started
    start stream taskset -c "$client_core" python3 "$parts/stream_origin.py" "$stream_port"
    started=$kept
    wait_for 10 "the stream" curl -sfo /dev/null --noproxy '*' "http://127.0.0.1:$stream_port/1/1"
}

# Puts $fill_mb MiB into the store, 64 MiB an object.
fill_store() {
    local n
    for ((n = 0; n < fill_mb / 64; n++)); do
        curl -sSf -o /dev/null --noproxy '' --proxy "http://127.0.0.1:${ports[hearsay]}" \
            "http://127.0.0.1:$stream_port/64/$n"
    done
}

slow_clients() {
    local n pids=()
    for ((n = 0; n < clients; n++)); do
        curl -sS -o /dev/null --limit-rate "$client_rate" --max-time "$client_seconds" --noproxy '' \
            --proxy "http://127.0.0.1:${ports[hearsay]}" "http://127.0.0.1:$origin_port/1g" >/dev/null 2>&1 &
        pids+=($!)
    done
    # Most clients reach their time limit before the end of the object, which is not a failure.
    wait "${pids[@]}" || true
}

# The lab's medium against theory and ns-3: one saturated flow over chains of routers without losses.
# To be sourced by scripts/bench.
# BENCH_SECONDS (20): duration of each flow, BENCH_SEEDS ("1 2 3"), BENCH_HOPS ("1 2 4 6 8").

# ns3 HOPS TRAFFIC : prints ns-3's figure in kbit/s of payload; nothing for other lengths.
ns3() {
    awk -F, -v hops="$1" -v traffic="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        $column["hops"] == hops && $column["traffic"] == traffic && $column["rts"] == 0 { print $column["goodput_kbps_mean"] }
    ' "$root/crates/papers/data/ns3/chain.csv"
}

measure_air() {
    local hops seed seconds=${BENCH_SECONDS:-20}
    on_exit '[[ -z ${lab_pid:-} ]] || kill -INT $lab_pid'
    say ""
    say "One flow of $seconds s, kbit/s of payload, mean (lowest to highest) of seeds ${BENCH_SEEDS:-1 2 3}."
    say ""
    say "| hops | UDP | ns-3 | ratio | TCP cubic | TCP reno | ns-3 NewReno | ratio of cubic | ratio of reno | late p99 ms | medium, % of a core |"
    say "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for hops in ${BENCH_HOPS:-1 2 4 6 8}; do
        for seed in ${BENCH_SEEDS:-1 2 3}; do
            chain "$hops" "$seed" "$seconds"
        done
        row "$hops"
    done
}

# chain HOPS SEED SECONDS : runs the three flows over one chain; figures go to $work/FLOW.HOPS.
chain() {
    "$lab" run chain --scheme end-to-end --set "hops=$1" --set bytes=1000 --seed "$2" --keep --quiet 2>"$work/lab" &
    lab_pid=$!
    wait_for 30 "the mesh to run" grep -q 'the mesh runs' "$work/lab" || die "$(cat "$work/lab")"
    inside=$(pgrep -P "$(pgrep -P "$lab_pid")")
    on_router "$1" iperf3 --server --daemon >/dev/null
    wait_for 10 "iperf3 to listen" on_router "$1" sh -c 'ss -Hltn sport = 5201 | grep -q .'
    # More than the air carries, so that the sender's queue is never empty.
    flow udp "$1" "$3" --udp --bitrate 7M --length 1460
    flow cubic "$1" "$3" --congestion cubic
    flow reno "$1" "$3" --congestion reno
    kill -INT "$lab_pid"
    wait "$lab_pid" || true
    lab_pid=
    grep 'medium ' "$work/lab" | tail -n 1 >>"$work/medium.$1"
}

on_router() {
    local router=$1
    shift
    nsenter --target "$inside" --all ip netns exec "router-$router" "$@"
}

# flow NAME HOPS SECONDS OPTIONS... : runs one flow from the gateway to the last router.
flow() {
    local name=$1 hops=$2 seconds=$3
    shift 3
    on_router 0 iperf3 --client "10.77.0.$((hops + 1))" --time "$seconds" --omit 2 --json "$@" >"$work/flow.json" 2>"$work/flow.err" ||
        die "iperf3: $(grep '"error"' "$work/flow.json")"
    python3 -c 'import json, sys
end = json.load(open(sys.argv[1]))["end"]
got = end.get("sum_received") or end["sum"]
print(got["bits_per_second"] / 1000)' "$work/flow.json" >>"$work/$name.$hops"
}

row() {
    local udp tcp
    udp=$(ns3 "$1" udp)
    tcp=$(ns3 "$1" tcp)
    python3 - "$work" "$1" "${udp:-0}" "${tcp:-0}" <<'END'
import pathlib, re, sys

work, hops, udp, tcp = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
flows = {name: [float(line) for line in (work / f"{name}.{hops}").read_text().split()] for name in ("udp", "cubic", "reno")}
mean = {name: sum(values) / len(values) for name, values in flows.items()}
shown = {name: f"{mean[name]:.0f} ({min(values):.0f}–{max(values):.0f})" for name, values in flows.items()}
medium = (work / f"medium.{hops}").read_text()
late = max((float(it) for it in re.findall(r"([\d.]+) ms late", medium)), default=0)
share = max((float(it) for it in re.findall(r"([\d.]+) % of", medium)), default=0)
ratio = lambda value, reference: f"{value / reference:.2f}" if reference else "–"
print(f"| {hops} | {shown['udp']} | {udp:.0f} | {ratio(mean['udp'], udp)} | {shown['cubic']} | {shown['reno']} | {tcp:.0f} "
      f"| {ratio(mean['cubic'], tcp)} | {ratio(mean['reno'], tcp)} | {late:.3f} | {share:.1f} |")
END
}

# The cost of overhearing: processor time and dropped packets of a router that listens. Two other routers are on a
# shared wire (veth and a bridge that floods, no radio), and one of them fetches at a fixed rate. The listener verifies
# and stores what it hears. To be sourced by scripts/bench.
# BENCH_OVERHEAR_MB (256), BENCH_OVERHEAR_RATE (12500000 bytes a second: 100 Mbit/s), BENCH_ROUNDS (3).

megabytes=${BENCH_OVERHEAR_MB:-256}
rate=${BENCH_OVERHEAR_RATE:-12500000}
rounds=${BENCH_ROUNDS:-3}
. "$parts/netns.sh"

measure_overhear() {
    local round
    lay_wire
    start_stream_origin
    declare -A daemon
    for node in gateway access ear; do start_node "$node"; done
    wait_for 20 "the access router's route" has_route access
    fetch 1 1 >/dev/null
    say ""
    say "| $megabytes MiB of new bytes between two others | Mbit/s | packets a second | the listener, % of a core | its capture thread | the same without listening | dropped by the kernel | by the queue | units overheard | no place on their way to the disk |"
    say "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for ((round = 1; round <= rounds; round++)); do measure_round "$round"; done
}

# o --- gateway --- br0 --- access --- client. The listener is on br0 twice: with its mesh interface, and with the
# interface that it captures on. Packets are as long as on the air: segmentation offload is off.
lay_wire() {
    ip link add br0 type bridge ageing_time 0
    ip link set br0 up
    add_nodes o gateway access client ear
    plug gateway wl0 10.77.0.1/24
    plug access wl0 10.77.0.2/24
    plug ear wl0 10.77.0.3/24
    plug ear ear0
    link o up0 198.51.100.2 gateway up0 198.51.100.1
    link access lan0 10.78.0.1 client lan0 10.78.0.2
    ip -n gateway route add default via 198.51.100.2
    ip -n access route add default via 10.77.0.1
    ip -n ear route add default via 10.77.0.1
}

# plug NAMESPACE INTERFACE [ADDRESS] : connects an interface to the bridge.
plug() {
    ip link add "$1-$2" gso_max_segs 1 gro_max_size 1500 type veth peer name "$2" netns "$1"
    ip link set "$1-$2" master br0 up
    ip -n "$1" link set "$2" gso_max_segs 1 up
    [[ -z ${3:-} ]] || ip -n "$1" addr add "$3" dev "$2"
}

# start_node NODE [deaf] : starts its daemon; with "deaf" it does not overhear.
start_node() {
    local extra=(--listen 127.0.0.1:3128)
    [[ $1 == access ]] && extra=(--listen 10.78.0.1:3128)
    [[ $1 == ear && ${2:-} != deaf ]] && extra+=(--overhear ear0)
    start_daemon "$1" "${extra[@]}"
}

# fetch MIB NUMBER : downloads an object, and prints the seconds it took.
fetch() {
    ip netns exec client curl -sSf -o /dev/null -w '%{time_total}\n' --limit-rate "$rate" --noproxy '' \
        --proxy http://10.78.0.1:3128 "http://198.51.100.2/$1/$2"
}

# ticks : prints the listener's processor time so far, in hundredths of a second: the whole process, then its capture.
ticks() {
    local all capture
    all=$(awk '{ print $14 + $15 }' "/proc/${daemon[ear]}/stat")
    capture=$({ grep -lsx capture "/proc/${daemon[ear]}"/task/*/comm || true; } | sed 's/comm$/stat/' | xargs -r awk '{ print $14 + $15 }')
    say "$all ${capture:-0}"
}

# counter NAME : prints a counter of the listener.
counter() { "$hearsay" status --json --control "$work/ear.control" | grep -o "\"$1\": *[0-9]*" | head -1 | grep -o '[0-9]*$'; }

measure_round() {
    local all capture all_before capture_before seconds deaf frames units before
    stop "${daemon[ear]}" TERM
    start_node ear deaf
    read -r all_before _ < <(ticks)
    fetch "$megabytes" "$((100 + 2 * $1))" >"$work/deaf.seconds"
    read -r all _ < <(ticks)
    deaf=$(awk -v t="$((all - all_before))" '{ printf "%.1f", t / $1 }' "$work/deaf.seconds")
    stop "${daemon[ear]}" TERM
    start_node ear
    units=$(counter chunks)
    before=$(counter frames)
    read -r all_before capture_before < <(ticks)
    seconds=$(fetch "$megabytes" "$((101 + 2 * $1))")
    sleep 1 # What is still in the queues is heard too.
    read -r all capture < <(ticks)
    frames=$(($(counter frames) - before))
    units=$(($(counter chunks) - units))
    awk -v mb="$megabytes" -v s="$seconds" -v round="$1" -v frames="$frames" -v all="$((all - all_before))" \
        -v capture="$((capture - capture_before))" -v deaf="$deaf" -v units="$units" \
        -v kernel="$(counter dropped_frames)" -v queue="$(counter dropped_segments)" \
        -v lost="$(counter dropped_units)" 'BEGIN {
            printf "| round %d | %.1f | %d | %.1f | %.1f | %s | %d | %d | %d | %d |\n",
                round, mb * 8 * 1.048576 / s, frames / s, all / s, capture / s, deaf, kernel, queue, units, lost }'
}

# Attacks on a router's daemon: its memory, the kernel's memory for its connections, and what an honest client
# sees meanwhile. To be sourced by scripts/bench.
# BENCH_ATTACKS ("nothing idle half-heads no-readers slow-bodies leavers names peers"), BENCH_SECONDS (15),
# BENCH_MEMORY (16MiB); BENCH_OVERHEAR=1: with overhearing on; HEARSAY_BIN: another daemon.

attacks=${BENCH_ATTACKS:-nothing idle half-heads no-readers slow-bodies leavers names peers}
seconds=${BENCH_SECONDS:-15}
memory=${BENCH_MEMORY:-16MiB}
proxy=10.78.0.1:3128
origin=198.51.100.2
. "$parts/netns.sh"

measure_siege() {
    local attack
    lay_siege
    start origin ip netns exec o python3 "$parts/siege.py" origin 198.51.100.2 80
    wait_for 10 "the origin" ip netns exec router curl -sfo /dev/null --noproxy '*' "http://$origin/warm"
    say ""
    say "| attack, \`memory = \"$memory\"\`, ${seconds} s | resident, MiB | TCP of the whole machine | of the router's connections | resident and these, at one time | honest client: % served | median ms to the first byte | worst |"
    say "|---|--:|--:|--:|--:|--:|--:|--:|"
    for attack in $attacks; do one_attack "$attack"; done
}

# client (eleven addresses) --- router --- o; attacking peers are the router's neighbours in the mesh.
lay_siege() {
    add_nodes o router client strangers
    link o up0 198.51.100.2 router up0 198.51.100.1
    link router wl0 10.77.0.1 strangers wl0 10.77.0.2
    ip link add lan0 netns router type veth peer name lan0 netns client
    ip -n router addr add 10.78.0.1/24 dev lan0
    local host
    for host in {101..111}; do ip -n client addr add "10.78.0.$host/24" dev lan0; done
    ip -n router addr add 10.77.1.1/24 dev wl0
    for host in {2..9}; do ip -n strangers addr add "10.77.1.$host/24" dev wl0; done
    ip -n router link set lan0 up
    ip -n client link set lan0 up
    ip -n o route add default via 198.51.100.1
    ip -n router route add default via 198.51.100.2
}

# one_attack NAME : runs an attack on a daemon that has just started.
one_attack() {
    local more=() attacker=()
    [[ -z ${BENCH_OVERHEAR:-} ]] || more=(--mesh wl0 --overhear wl0)
    if [[ $1 == peers ]]; then
        more=(--mesh wl0 "${more[@]:2}")
        attacker=(ip netns exec strangers "$strangers" 10.77.1.1:3131 "http://$origin")
    fi
    start router ip netns exec router "$hearsay" run --listen "$proxy" --memory "$memory" \
        --store "$work/store" --store-size 1GiB --control "$work/control" --log warn "${more[@]}"
    local daemon=$started
    wait_for 10 "the daemon" "$hearsay" status --control "$work/control"
    wait_for 10 "a warm object" ip netns exec client curl -sfo /dev/null --noproxy '' --proxy "http://$proxy" "http://$origin/warm"
    ip netns exec client python3 "$parts/siege.py" "$1" "$daemon" "$proxy" "$origin" "$seconds" "${attacker[@]}"
    stop "$daemon" KILL
    rm -rf "$work/store" "$work/control"
}

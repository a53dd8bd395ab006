# A far end with a hundred gateways, one of them hostile, or strangers at its door. To be sourced by scripts/bench.
# BENCH_ATTACKS ("nothing unread deaf calls churn heads door"), BENCH_SECONDS (30) for each; HEARSAY_BIN: another far end.

attacks=${BENCH_ATTACKS:-nothing unread deaf calls churn heads door}
seconds=${BENCH_SECONDS:-30}
far=10.79.2.1:4170
origin_port=80
. "$parts/netns.sh"

measure_villages() {
    local attack page near=()
    lay_villages
    mkdir -p "$work/www"
    for page in {0..63}; do head -c 16K /dev/urandom >"$work/www/$page"; done
    truncate -s 1G "$work/www/endless"
    origin_address=198.51.100.2
    in_origin=(ip netns exec far)
    serve_www
    mapfile -t near < <("$villages" keys | sed 's/^/--near=/')
    say ""
    say "| attack on a far end with ${#near[@]} gateways, ${seconds} s | pages to honest gateways | failed | breaks | median ms | 99 % within, ms | worst | resident, MiB | descriptors | threads |"
    say "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for attack in $attacks; do one_attack "$attack"; done
}

# gateways (each with an address) --- far, which has the origin, too.
lay_villages() {
    add_nodes far villages
    ip link add up0 netns far type veth peer name up0 netns villages
    ip -n far addr add 10.79.2.1/16 dev up0
    ip -n far addr add 198.51.100.2/32 dev lo
    local host
    for host in {1..100}; do ip -n villages addr add "10.79.0.$host/16" dev up0; done
    for host in {1..8}; do ip -n villages addr add "10.79.1.$host/16" dev up0; done
    ip -n far link set up0 up
    ip -n villages link set up0 up
}

# one_attack NAME : runs an attack on a far end that has just started.
one_attack() {
    local key
    start far ip netns exec far "$hearsay" far --listen "$far" --store "$work/far" --store-size 64MiB --log warn \
        --control "$work/far.control" --private 198.51.100.0/24 "${near[@]}"
    wait_for 20 "the far end" grep -q far-key "$work/far.log"
    key=$(sed -n 's/^far-key = "\(.*\)"/\1/p' "$work/far.log")
    ip netns exec villages "$villages" "$1" "$far" "$key" "$origin_address:$origin_port" "$started" "$seconds"
    stop "$started" KILL
    rm -rf "$work/far" "$work/far.log"
}

# MeshCache's and Ditto's schemes on the lab's meshes, with real daemons. To be sourced by scripts/bench.
# BENCH_SEEDS (5): how many; BENCH_PARTS ("path chains emulab8 ditto heard"): which tables; BENCH_HOPS
# ("1 2 3 4 5 6 7 8") and BENCH_LOSSES ("0 0.1 0.2 0.3") of the chains; BENCH_TESTBEDS of ditto
# ("emulab8 emulab8@5 map21": with @5 a transfer begins every 5 s) and of heard ("emulab8 map21"); BENCH_BYTES (1000000) of a file.
# Results stay in target/bench/mesh. All of it takes about three hours on a quiet machine.

tries=3

measure_mesh() {
    local part seeds bytes=${BENCH_BYTES:-1000000}
    mapfile -t seeds < <(seq "${BENCH_SEEDS:-5}")
    results=$root/target/bench/mesh
    missed=0
    say ""
    say "Files of $bytes bytes; kbit/s unless said otherwise; mean (lowest–highest) of ${#seeds[@]} seeds."
    for part in ${BENCH_PARTS:-path chains emulab8 ditto heard}; do
        declare -F "part_$part" >/dev/null || die "there is no part \"$part\": path, chains, emulab8, ditto or heard"
        rm -rf "${results:?}/$part"
        mkdir -p "$results/$part"
        "part_$part"
        say ""
        python3 "$parts/mesh_table.py" "$part" "$results/$part"
    done
    ((missed == 0)) || die "$missed runs are missing: the machine was too busy, or they failed"
}

# A client at the far end of four hops, a second one there, one two hops down the path.
part_path() {
    local scheme seed
    for scheme in end-to-end ph-thcp; do
        for seed in "${seeds[@]}"; do
            one path "$scheme.$seed" chain --scheme "$scheme" --seed "$seed" --set hops=4 --set "requests=4 4 2"
        done
    done
}

# One connection from end to end, or one for each hop: a cold file at the far end.
part_chains() {
    local scheme seed hops loss
    for loss in ${BENCH_LOSSES:-0 0.1 0.2 0.3}; do
        for hops in ${BENCH_HOPS:-1 2 3 4 5 6 7 8}; do
            for scheme in thcp ph-thcp; do
                for seed in "${seeds[@]}"; do
                    # Every link loses as much, however long it is.
                    one chains "$loss.$hops.$scheme.$seed" chain --scheme "$scheme" --seed "$seed" \
                        --set "hops=$hops" --set "loss=$loss" --set loss_exponent=0
                done
            done
        done
    done
}

# Every router asks for each of two files twice, in random order.
part_emulab8() {
    local scheme seed
    for scheme in end-to-end default thcp ph-thcp; do
        for seed in "${seeds[@]}"; do
            one emulab8 "$scheme.$seed" emulab8 --scheme "$scheme" --seed "$seed" \
                --set files=2 --set rounds=2 --set order=random
        done
    done
    "$lab" compare "$results"/emulab8/*.json --html "$results/emulab8.html"
}

# Leaves of Ditto's testbeds fetch one file in random order, one after the other, or each so many seconds after the
# one before (Ditto, section 6.4.2).
part_ditto() {
    local scheme seed testbed name seconds
    local -A leaves=([emulab8]="1 2 3 5 7" [map21]="2 3 5 7 14 15 18 19 25 27 38")
    for testbed in ${BENCH_TESTBEDS:-emulab8 emulab8@5 map21}; do
        IFS=@ read -r name seconds <<<"$testbed"
        for seed in "${seeds[@]}"; do
            for scheme in end-to-end ph-thcp ditto; do
                one ditto "$testbed.$scheme.$seed" "$name" --scheme "$scheme" --seed "$seed" \
                    --set "receivers=${leaves[$name]}" --set order=random --set "stagger_s=${seconds:-0}"
            done
        done
    done
}

# One transfer at a time to each router, caches empty, while the monitors of all are captured: what they
# reconstruct (Ditto, sections 6.2 and 6.3), hop by hop and in one connection from the gateway.
part_heard() {
    local testbed scheme seed receiver
    local -A routers=([emulab8]="1 2 3 4 5 6 7" [map21]="1 2 3 4 5 7 13 14 15 16 18 19 22 25 27 28 29 30 34 37 38")
    mkdir "$work/heard"
    for testbed in ${BENCH_TESTBEDS:-emulab8 map21}; do
        for seed in "${seeds[@]}"; do
            for scheme in thcp ph-thcp; do
                for receiver in ${routers[$testbed]}; do
                    overhear_one "$testbed" "$scheme" "$seed" "$receiver" "${routers[$testbed]}"
                done
            done
        done
    done
}

# overhear_one TESTBED SCHEME SEED RECEIVER ROUTERS : whole, without what was heard behind no head, each stream alone.
overhear_one() {
    local name=$1.$2.$3.$4 router files=() captures=()
    for router in $5; do
        files+=("$work/heard/$router.pcap")
        captures+=(--pcap "$router=$work/heard/$router.pcap")
    done
    one heard "$name" "$1" --scheme "$2" --seed "$3" --set "receivers=$4" "${captures[@]}"
    "$lab" analyze overhear --quiet --json "$results/heard/$name.whole" "${files[@]}"
    "$lab" analyze overhear --quiet --need-heads --json "$results/heard/$name.heads" "${files[@]}"
    "$lab" analyze overhear --quiet --streams-alone --json "$results/heard/$name.alone" "${files[@]}"
    rm "${files[@]}"
}

# one PART NAME ARGUMENTS... : a run whose result counts; what the machine made late is run again.
one() {
    local result=$results/$1/$2.json try
    shift 2
    for ((try = 0; try < tries; try++)); do
        if "$lab" run "$@" --set "bytes=$bytes" --json "$result" --quiet 2>"$work/lab.err" &&
            grep -q '"valid": true' "$result"; then
            return
        fi
        warn "$(basename "$result" .json), try $((try + 1)): $(tail -n 1 "$work/lab.err")"
    done
    rm -f "$result"
    missed=$((missed + 1))
}

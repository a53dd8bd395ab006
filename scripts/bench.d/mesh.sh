# MeshCache's schemes on the lab's meshes, with real daemons. To be sourced by scripts/bench.
# BENCH_SEEDS (5): number of seeds; BENCH_PARTS ("path chains emulab8"): the tables; BENCH_HOPS
# ("1 2 3 4 5 6 7 8") and BENCH_LOSSES ("0 0.1 0.2 0.3") of the chains; BENCH_BYTES (1000000) of a file.
# Results stay in target/bench/mesh. All parts take about two hours on a quiet machine. For Ditto's experiments
# run `hearsay-lab repro ditto --real`.

tries=3

measure_mesh() {
    local part seeds bytes=${BENCH_BYTES:-1000000}
    mapfile -t seeds < <(seq "${BENCH_SEEDS:-5}")
    results=$root/target/bench/mesh
    missed=0
    say ""
    say "Files of $bytes bytes; kbit/s unless said otherwise; mean (lowest–highest) of ${#seeds[@]} seeds."
    for part in ${BENCH_PARTS:-path chains emulab8}; do
        declare -F "part_$part" >/dev/null || die "there is no part \"$part\": path, chains or emulab8"
        rm -rf "${results:?}/$part"
        mkdir -p "$results/$part"
        "part_$part"
        say ""
        python3 "$parts/mesh_table.py" "$part" "$results/$part"
    done
    ((missed == 0)) || die "$missed runs are missing: the machine was too busy, or they failed"
}

# A client at the far end of four hops, a second one at the same place, and one two hops from the gateway.
part_path() {
    local scheme seed
    for scheme in end-to-end ph-thcp; do
        for seed in "${seeds[@]}"; do
            one path "$scheme.$seed" chain --scheme "$scheme" --seed "$seed" --set hops=4 --set "requests=4 4 2"
        done
    done
}

# One connection from end to end, or one for each hop: the far end downloads a file that no router has.
part_chains() {
    local scheme seed hops loss
    for loss in ${BENCH_LOSSES:-0 0.1 0.2 0.3}; do
        for hops in ${BENCH_HOPS:-1 2 3 4 5 6 7 8}; do
            for scheme in thcp ph-thcp; do
                for seed in "${seeds[@]}"; do
                    # Every link has the same loss, whatever its length.
                    one chains "$loss.$hops.$scheme.$seed" chain --scheme "$scheme" --seed "$seed" \
                        --set "hops=$hops" --set "loss=$loss" --set loss_exponent=0
                done
            done
        done
    done
}

# Every router requests each of two files twice, in random order.
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

# one PART NAME ARGUMENTS... : makes a run whose result counts; a run that the machine made late is repeated.
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

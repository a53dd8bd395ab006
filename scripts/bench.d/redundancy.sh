# What schemes of chunking save: figures 6 to 10 of Wanax, of a generated mix of news sites and two adjacent kernel trees. To
# be sourced by scripts/bench.
# scripts/bench redundancy [--pictures DIR] [--json FILE]: the figures as SVG, and all counts.
# BENCH_FETCHES (48): of the front page of each of nine sites; BENCH_SMALLEST (32): the least average length of chunks.

measure_redundancy() {
    local pictures='' json='' tree began
    while (($#)); do
        case $1 in
        --pictures) pictures=${2:?--pictures needs a folder} && shift ;;
        --json) json=${2:?--json needs a file} && shift ;;
        *) die "usage: scripts/bench redundancy [--pictures DIR] [--json FILE]" ;;
        esac
        shift
    done
    python3 "$parts/news.py" "$work/news" --fetches "${BENCH_FETCHES:-48}"
    tree=$(corpora_folder)/kernel
    if [[ ! -e $tree/about ]]; then
        say "No kernel trees in ${tree%/*} (scripts/setup corpora kernel fetches them): a generated pair is used."
        python3 "$parts/pairs.py" "$work" --only tree --scale 30
        tree=$work/tree
    fi
    analyze news "$work"/news/[0-9]*
    analyze kernel "$tree/old" "$tree/new"
    python3 "$parts/redundancy_table.py" "$work/news.json" "$work/news/about" "$work/kernel.json" "$tree/about" ${json:+"$json"}
}

# analyze NAME FILE... : writes $work/NAME.json, and pictures if they are wanted. The tables of names of two kernel trees take
# more than the default.
analyze() {
    warn "$1 …"
    "$lab" analyze redundancy --quiet --smallest "${BENCH_SMALLEST:-32}" --memory 4294967296 --json "$work/$1.json" \
        ${pictures:+--pictures "$pictures/$1"} "${@:2}"
}

# HTTP conformance by the public test suite http-tests/cache-tests, as an explicit proxy and with interception. To be
# sourced by scripts/bench. It ends with 1 if a test fails that docs/conformance.md does not list.
# client --- r, which runs the daemon --- o, which runs the suite's server. The suite's client knows no proxies: for an
# explicit one, an adaptor in its namespace rewrites its requests.

# check_suite DIR : sets $suite, or says what is missing.
check_suite() {
    local what="a checkout of https://github.com/http-tests/cache-tests, prepared with \`npm install --omit=dev\`"
    [[ -n ${1:-} ]] || die "say where the suite is: scripts/bench conformance DIR, where DIR is $what"
    [[ -f $1/test-engine/cli.mjs && -f $1/tests/index.mjs ]] || die "$1 is not $what"
    [[ -d $1/node_modules/undici ]] || die "$1 is not prepared: run \`npm install --omit=dev\` in it"
    command -v node >/dev/null || die "the suite needs Node.js: install the package nodejs"
    suite=$(cd "$1" && pwd)
}

measure_conformance() {
    . "$parts/netns.sh"
    check_suite "${1:-}"
    add_nodes client r o
    link client eth0 10.1.0.2 r lan0 10.1.0.1
    link r wan0 198.51.100.1 o eth0 198.51.100.2
    ip -n client route add default via 10.1.0.1
    ip -n r route add default via 198.51.100.2
    ip -n o route add 10.1.0.0/30 via 198.51.100.1
    start suite ip netns exec o env -C "$suite" npm_config_protocol=http npm_config_port=80 \
        npm_config_pidfile="$work/suite.pid" node test-engine/server/server.mjs
    is_served http://198.51.100.2/ "the suite's server"
    explicit
    intercepted
    node "$parts/conformance_table.mjs" "$suite" "$root/docs/conformance.md" \
        "explicit=$work/explicit.json" "intercepted=$work/intercepted.json"
}

# is_served URL WHAT : waits until the client gets the suite's start page from there.
is_served() {
    wait_for 30 "$2" ip netns exec client curl -sfo /dev/null --noproxy '*' "$1" || die "$(tail -n 5 "$work"/*.log)"
}

explicit() {
    run_router --listen 10.1.0.1:3128
    start adaptor ip netns exec client python3 "$parts/as_forward.py" 127.0.0.1:8000 10.1.0.1:3128 198.51.100.2
    local adaptor=$started
    is_served http://127.0.0.1:8000/ "the adaptor"
    run_suite explicit http://127.0.0.1:8000
    stop "$adaptor" TERM
    stop "$router" TERM
}

intercepted() {
    run_router --listen 127.0.0.1:3128 --intercept lan0
    run_suite intercepted http://198.51.100.2
    stop "$router" TERM
}

# run_router ARGUMENTS... : starts the daemon with an empty store; sets $router.
run_router() {
    rm -rf "$work/store"
    start hearsay ip netns exec r "$hearsay" run "$@" --store "$work/store" --store-size 1GiB \
        --control "$work/control"
    router=$started
    wait_for 30 "the daemon" "$hearsay" status --control "$work/control"
}

# run_suite NAME BASE : runs all tests; the results are in $work/NAME.json. The suite's client prints nothing before.
run_suite() {
    local before after
    before=$(requests_seen)
    ip netns exec client env npm_config_base="$2" npm_package_config_id= node --no-warnings "$suite/test-engine/cli.mjs" \
        >"$work/$1.json" 2>>"$work/$1.log" || die "the suite's client failed: $(tail -n 5 "$work/$1.log")"
    after=$(requests_seen)
    # Otherwise a run past the daemon would pass for one through it.
    ((after > before + 100)) || die "$1: the daemon saw only $((after - before)) requests: $(tail -n 5 "$work/hearsay.log")"
}

# requests_seen : prints how many requests the daemon has answered so far.
requests_seen() {
    "$hearsay" status --json --control "$work/control" | python3 -c '
import json, sys
print(sum(count for count in json.load(sys.stdin)["report"]["requests"].values()))'
}

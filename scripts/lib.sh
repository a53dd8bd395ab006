# Shell functions that the scripts share. To be sourced by bash; it does nothing by itself.

set -Eeuo pipefail

# Debian keeps nft, ip, nginx and squid where ordinary users' PATH does not look.
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() {
    warn "${0##*/}: $*"
    exit 1
}

# need PROGRAM... : stops with the next step if one of them is not installed.
need() {
    local program
    for program; do
        command -v "$program" >/dev/null || die "$program is not installed: run scripts/setup${need_hint:-}"
    done
}

# on_exit COMMAND : to be run when the script ends, however it ends; the last one first.
exit_commands=()
on_exit() {
    exit_commands=("$1" "${exit_commands[@]}")
    trap run_exit_commands EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}
run_exit_commands() {
    trap '' INT TERM HUP
    local command
    for command in "${exit_commands[@]}"; do
        eval "$command" || true
    done
}

# make_workspace : a directory in $work that vanishes when the script ends.
make_workspace() {
    work=$(mktemp -d "${TMPDIR:-/tmp}/hearsay.XXXXXX")
    export work
    # Programs that give up their rights (squid) must still reach their own part of it.
    chmod 755 "$work"
    on_exit 'rm -rf "$work"'
}

# wait_for SECONDS WHAT COMMAND... : until the command succeeds; stops with an error at the deadline.
wait_for() {
    local deadline=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || {
            warn "waited in vain for: $what"
            return 1
        }
        sleep 0.02
    done
}

# start NAME COMMAND... : in the background; its output goes to $work/NAME.log, its id to $started.
start() {
    local name=$1
    shift
    "$@" >>"$work/$name.log" 2>&1 </dev/null &
    started=$!
    on_exit "kill $started 2>/dev/null"
}

# stop PID SIGNAL : ends a process that this script started, and waits for its end.
stop() {
    kill "-$2" "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# in_private_network COMMAND... : runs it where it owns the network, the process ids and /run.
# Everything that it starts and makes there ends with it, even if it is killed, so that nothing
# is left behind on the machine. Needs root, or user namespaces for an ordinary user.
in_private_network() {
    need unshare ip
    local flags=(-nm) inside code=0
    ((EUID == 0)) || flags=(-Urnm)
    flags+=(--pid --fork --mount-proc --kill-child)
    can_have_private_network || die "network namespaces are not allowed here: run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; in a container: --privileged)"
    # Not in the foreground: unshare itself lets no signal end it.
    unshare "${flags[@]}" bash -c '
        mount -t tmpfs tmpfs /run && ip link set lo up && exec "$@"' private "$@" &
    inside=$!
    on_exit "kill -KILL $inside 2>/dev/null && wait $inside 2>/dev/null"
    wait "$inside" || code=$?
    return "$code"
}

can_have_private_network() {
    local flags=(-nm)
    ((EUID == 0)) || flags=(-Urnm)
    unshare "${flags[@]}" --pid --fork --mount-proc sh -c 'mount -t tmpfs tmpfs /run && ip netns add try && ip link add try0 type veth peer name try1' >/dev/null 2>&1
}

# nginx_config NAME EVENTS_AND_HTTP : prints a configuration that writes below $work/NAME only.
# No tcp_nopush: with it small answers wait for the other end's delayed acknowledgement.
nginx_config() {
    mkdir -p "$work/$1"
    cat <<END
worker_processes 1;
daemon off;
pid $work/$1/pid;
error_log $work/$1/error.log;
events { worker_connections 4096; }
http {
    default_type application/octet-stream;
    client_body_temp_path $work/$1/body;
    proxy_temp_path $work/$1/proxy;
    fastcgi_temp_path $work/$1/fastcgi;
    uwsgi_temp_path $work/$1/uwsgi;
    scgi_temp_path $work/$1/scgi;
    sendfile on;
    tcp_nodelay on;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    log_format asked '\$body_bytes_sent \$status \$request';
$2
}
END
}

# run_nginx CONFIG : what to give to `start`. The workers stay who we are: inside a user namespace
# there is nobody else to become.
run_nginx() {
    exec nginx -g "user $(id -un) $(id -gn);" -e "$1.err" -c "$1"
}

# binaries : builds the daemon and the lab, or takes HEARSAY_BIN and what stands beside it; their
# paths go to $hearsay and $lab.
binaries() {
    hearsay=${HEARSAY_BIN:-}
    if [[ -z $hearsay ]]; then
        need cargo
        say "building the daemon and the lab (release) …"
        (cd "$root" && cargo build --release --locked --quiet -p daemon -p lab)
        hearsay=${CARGO_TARGET_DIR:-$root/target}/release/hearsay
    fi
    lab=${hearsay%/*}/hearsay-lab
    local program
    for program in "$hearsay" "$lab"; do
        [[ -x $program ]] || die "$program is not an executable: unset HEARSAY_BIN or build it"
    done
    export hearsay lab HEARSAY_BIN=$hearsay
}

# Shell functions that the scripts share. To be sourced by bash; it does nothing by itself.

set -Eeuo pipefail

# Debian installs nft, ip, nginx and squid outside ordinary users' PATH.
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() {
    warn "${0##*/}: $*"
    exit 1
}

# need PROGRAM... : ends the script with advice if one of them is not installed.
need() {
    local program
    for program; do
        command -v "$program" >/dev/null || die "$program is not installed: run scripts/setup${need_hint:-}"
    done
}

# on_exit COMMAND : runs a command when the script ends, for whatever reason; the latest is run first.
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

# make_workspace : makes a directory, sets $work to it, and removes it when the script ends.
make_workspace() {
    work=$(mktemp -d "${TMPDIR:-/tmp}/hearsay.XXXXXX")
    export work
    # Programs that drop their privileges (squid) must still reach their own part of it.
    chmod 755 "$work"
    on_exit 'rm -rf "$work"'
}

# wait_for SECONDS WHAT COMMAND... : waits until the command succeeds; fails at the deadline.
wait_for() {
    local deadline=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || {
            warn "timed out waiting for: $what"
            return 1
        }
        sleep 0.02
    done
}

# start NAME COMMAND... : starts a background process; its output goes to $work/NAME.log, its id to $started.
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

# in_private_network COMMAND... : runs a command in network, process and mount namespaces of its own, with its own
# /run. All that it starts and makes there ends with it, even if it is killed. Needs root, or user namespaces for
# an ordinary user.
in_private_network() {
    need unshare ip
    local flags=(-nm) inside code=0
    ((EUID == 0)) || flags=(-Urnm)
    flags+=(--pid --fork --mount-proc --kill-child)
    can_have_private_network || die "network namespaces are not allowed here: run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; in a container: --privileged)"
    # In the background, because unshare ignores signals.
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
# Without tcp_nopush, which would make small responses wait for the other end's delayed acknowledgement.
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

# run_nginx CONFIG : runs nginx; to be given to `start`. The workers keep our user, because a user namespace has no
# other.
run_nginx() {
    exec nginx -g "user $(id -un) $(id -gn);" -e "$1.err" -c "$1"
}

# corpora_folder : prints where `scripts/setup corpora` puts its pairs of versions.
corpora_folder() { say "${HEARSAY_CORPORA:-${XDG_CACHE_HOME:-$HOME/.cache}/hearsay/corpora}"; }

# binaries PROFILE : builds the daemon and the lab (dev: as the tests have them, release: as they are measured), or takes
# HEARSAY_BIN and the lab in the same folder; sets $hearsay and $lab to their paths.
binaries() {
    hearsay=${HEARSAY_BIN:-}
    if [[ -z $hearsay ]]; then
        need cargo
        say "building the daemon and the lab (profile $1) …"
        (cd "$root" && cargo build --profile "$1" --locked --quiet -p daemon -p lab)
        hearsay=${CARGO_TARGET_DIR:-$root/target}/${1/#dev/debug}/hearsay
    fi
    lab=${hearsay%/*}/hearsay-lab
    local program
    for program in "$hearsay" "$lab"; do
        [[ -x $program ]] || die "$program is not an executable: unset HEARSAY_BIN or build it"
    done
    export hearsay lab HEARSAY_BIN=$hearsay
}

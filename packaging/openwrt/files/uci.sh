# shellcheck shell=dash
# Turns /etc/config/hearsay into hearsay's own file. To be sourced after /lib/functions.sh. What is wrong is said on
# standard error, and nothing is written that the daemon would not take.

# Set by the functions below; `wrong` counts mistakes.
wrong=0
toml=''

# Says what is wrong with a value, and what to do.
complain() {
    echo "hearsay: /etc/config/hearsay: $*" >&2
    wrong=$((wrong + 1))
}

line() {
    toml="$toml$1
"
}

# quoted VALUE : sets $quoted to a TOML string; false if the value cannot be one.
quoted() {
    case $1 in
    *[\"\\]* | *'
'*) return 1 ;;
    esac
    quoted="\"$1\""
}

# text SECTION OPTION : adds `option = "value"` if it is set.
text() {
    local value
    config_get value "$1" "$2"
    [ -n "$value" ] || return 0
    if quoted "$value"; then
        line "$(key "$2") = $quoted"
    else
        complain "$1: option $2: quotes, backslashes and line ends are not allowed"
    fi
}

# path SECTION : adds the store's path, which has a default of its own.
path() {
    local value
    config_get value "$1" path /tmp/hearsay
    if quoted "$value"; then
        line "path = $quoted"
    else
        complain "$1: option path: quotes, backslashes and line ends are not allowed"
    fi
}

# number SECTION OPTION LARGEST : adds `option = number`.
number() {
    local value
    config_get value "$1" "$2"
    [ -n "$value" ] || return 0
    if is_number "$value" "$3"; then
        line "$(key "$2") = $value"
    else
        complain "$1: option $2: '$value' is not a number from 1 to $3"
    fi
}

is_number() {
    case $1 in
    *[!0-9]* | '' | 0* | ??????????*) return 1 ;;
    esac
    [ "$1" -le "$2" ]
}

# list SECTION OPTION [LARGEST] : adds `option = [values]`: numbers if there is a largest one, else texts.
list() {
    items=''
    config_list_foreach "$1" "$2" item "$1" "$2" "${3:-}"
    [ -z "$items" ] || line "$(key "$2") = [${items#, }]"
}

item() {
    if [ -n "$4" ]; then
        if is_number "$1" "$4"; then
            items="$items, $1"
        else
            complain "$2: list $3: '$1' is not a number from 1 to $4"
        fi
    elif quoted "$1"; then
        items="$items, $quoted"
    else
        complain "$2: list $3: quotes, backslashes and line ends are not allowed"
    fi
}

# The ports to intercept: a list of numbers, or the word.
ports() {
    items=''
    config_list_foreach intercept ports word
    case $items in
    ' all') line 'ports = "all"' ;;
    *) list intercept ports 65535 ;;
    esac
}

word() { items="$items $1"; }

# flag SECTION OPTION : whether it is 1; complains about other values than 0 and 1.
flag() {
    local value
    config_get value "$1" "$2" 0
    case $value in
    1 | on | true | yes | enabled) return 0 ;;
    0 | off | false | no | disabled) return 1 ;;
    esac
    complain "$1: option $2: '$value' is neither 0 nor 1"
    return 1
}

# UCI's names have no hyphens.
key() { echo "$1" | tr _ -; }

# The file system that holds a path, whose end may not exist yet.
file_system() {
    local path=$1
    while [ ! -e "$path" ]; do path=$(dirname "$path"); done
    df -P "$path" | awk 'NR == 2 { print $1 " " $6 }'
}

# The store's path must be absolute, and not on the flash unless the operator has said so.
check_store() {
    local path on
    config_get path store path /tmp/hearsay
    case $path in
    memory) return 0 ;;
    /*) ;;
    *)
        complain "store: option path: '$path' is neither a path that begins with / nor 'memory'"
        return 0
        ;;
    esac
    # Read first, so that a wrong value is not hidden by a good path.
    if flag store on_flash; then
        return 0
    fi
    on=$(file_system "$path")
    case $on in
    overlayfs:* | /dev/mtdblock* | /dev/ubi* | ubi* | *" /overlay" | *" /")
        complain "store: option path: '$path' is on the router's own flash, which a cache wears out: name a disk or a" \
            "stick, or /tmp/hearsay, or say option on_flash '1'"
        ;;
    esac
}

# A misspelt option would otherwise do nothing, and nobody would know.
known='main.enabled main.allow main.listen main.name main.memory main.drain store.path store.size store.policy
store.object_max store.on_flash access.out access.private access.ports intercept.interfaces intercept.ports
intercept.port intercept.http mirror.listen mirror.allow mesh.interfaces mesh.babeld mesh.gateway mesh.scheme mesh.key_file
mesh.gateways mesh.port mesh.direct uplink.far uplink.far_key metrics.listen
log.requests log.format log.clients log.size log.keep'

# The names come from `uci show`, as it prints them: hearsay.store.path='…'.
check_names() {
    local name
    for name in $(uci -q show hearsay | sed -n "s/^hearsay\.\([A-Za-z0-9_@]*\(\[[0-9]*\]\)\{0,1\}\.[A-Za-z0-9_]*\)=.*/\1/p"); do
        echo "$known" | tr ' ' '\n' | grep -qx "$name" ||
            complain "unknown option $name: see the comments in the file"
    done
}

# native_file FILE : writes the daemon's file; false if a value is wrong, and the file is then as it was.
native_file() {
    wrong=0 toml=''
    config_load hearsay
    check_names
    check_store
    line "# Made from /etc/config/hearsay at each start: changes here are lost."
    # procd and the daemon must agree on the place.
    line 'control = "/var/run/hearsay/control.sock"'
    text main name
    text main memory
    text main drain
    list main listen
    list main allow
    line '[store]'
    path store
    text store size
    text store policy
    text store object_max
    line '[access]'
    list access out
    list access private
    list access ports 65535
    line '[intercept]'
    list intercept interfaces
    number intercept port 65535
    ports
    list intercept http 65535
    line '[mirror]'
    list mirror listen
    list mirror allow
    line '[mesh]'
    list mesh interfaces
    text mesh babeld
    text mesh gateway
    text mesh scheme
    text mesh key_file
    list mesh gateways
    number mesh port 65535
    list mesh direct
    line '[uplink]'
    text uplink far
    text uplink far_key
    line '[metrics]'
    text metrics listen
    line '[log]'
    text log requests
    text log format
    text log clients
    text log size
    number log keep 99
    [ "$wrong" = 0 ] || return 1
    (umask 077 && printf '%s' "$toml" >"$1.new")
    # The daemon's own rules: sizes, addresses, what fits together.
    if ! "${HEARSAY:-/usr/bin/hearsay}" check-config "$1.new" >/dev/null; then
        complain "the daemon refuses these values; the lines above name them, by the names of hearsay.toml"
        rm -f "$1.new"
        return 1
    fi
    mv "$1.new" "$1"
}

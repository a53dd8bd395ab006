# shellcheck shell=dash
# A stand-in for OpenWrt's /lib/functions.sh and uci(1): what packaging/openwrt/files/uci.sh uses of them, for named
# sections, on the file $UCI_FILE. Values are in single quotes or bare, and span no lines.

# Prints a line `SECTION KIND OPTION VALUE` for each option.
uci_values() {
    awk '$1 == "config" { section = $3; gsub(/\047/, "", section) }
        $1 == "option" || $1 == "list" {
            value = $0
            sub(/^[ \t]*[a-z]+[ \t]+[^ \t]+[ \t]+/, "", value)
            if (value ~ /^\047/) { sub(/^\047/, "", value); sub(/\047[ \t]*$/, "", value) }
            print section, $1, $2, value
        }' "$UCI_FILE"
}

config_load() { [ "$1" = hearsay ] && [ -r "$UCI_FILE" ]; }

# config_get VARIABLE SECTION OPTION [DEFAULT]
config_get() {
    local found
    # shellcheck disable=SC2034
    found=$(uci_values | sed -n "s/^$2 option $3 //p" | tail -n 1)
    eval "$1=\${found:-\${4:-}}"
}

# config_list_foreach SECTION OPTION FUNCTION [ARGUMENT]...
config_list_foreach() {
    local section=$1 option=$2 function=$3 value values
    shift 3
    values=$(uci_values | sed -n "s/^$section list $option //p")
    while IFS= read -r value; do
        [ -z "$value" ] || "$function" "$value" "$@"
    done <<END
$values
END
}

# uci -q show hearsay
uci() {
    uci_values | while read -r section _ option value; do
        echo "hearsay.$section.$option='$value'"
    done
}

# df -P PATH, as on a router: /tmp is in memory, a stick is at /mnt, and the rest is the flash.
df() {
    echo "Filesystem 1024-blocks Used Available Capacity Mounted on"
    case $2 in
    /tmp*) echo "tmpfs 60000 100 59900 1% /tmp" ;;
    /mnt*) echo "/dev/sda1 60000000 100 59999900 1% /mnt" ;;
    *) echo "overlayfs:/overlay 8000 100 7900 2% /" ;;
    esac
}

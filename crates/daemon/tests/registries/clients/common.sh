# What the clients' scripts share. To be sourced; it does nothing by itself.
#
# Each script runs a real package manager with a home of its own, and prints a line "SHA-256 NAME" for each file that it
# got. Variables:
#   MIRROR    the mirror's address, like http://10.1.0.1:3142; without it, the registry is asked itself
#   PROXY     an explicit proxy, like http://10.1.0.1:3128
#   CA        the CA that is trusted, as PEM
#   HOME      an empty folder
#   PACKAGES  what is fetched instead of the test's own packages, in the client's own words
set -euo pipefail

MIRROR=${MIRROR:-} PROXY=${PROXY:-} CA=${CA:-/etc/ssl/certs/ca-certificates.crt}
: "${HOME:?}"
authority=${MIRROR#http://}
export LC_ALL=C HOME
# No settings of the machine's.
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY
unset "${!PIP_@}" "${!npm_config_@}" "${!NPM_CONFIG_@}" "${!GO@}" "${!XDG_@}" "${!MAVEN_@}" NODE_EXTRA_CA_CERTS
unset REQUESTS_CA_BUNDLE SSL_CERT_DIR CURL_CA_BUNDLE
export SSL_CERT_FILE=$CA
[[ -z $PROXY ]] || export http_proxy=$PROXY https_proxy=$PROXY
cd "$HOME"

# sums FILE... : prints the digest and the last part of the name of each file.
sums() {
    local file
    for file; do printf '%s %s\n' "$(sha256sum <"$file" | cut -d ' ' -f 1)" "${file##*/}"; done
}

#!/usr/bin/env bash
# pip: a wheel and what it depends on, installed into a folder.
. "$(dirname "$0")/common.sh"

index=${MIRROR:+$MIRROR/pypi/simple/}
options=(--isolated --disable-pip-version-check --no-input --retries 0 --cache-dir "$HOME/cache" --only-binary :all:
    --index-url "${index:-https://pypi.org/simple/}" --cert "$CA")
[[ -z $MIRROR ]] || options+=(--trusted-host "${authority%:*}")
[[ -z $PROXY ]] || options+=(--proxy "$PROXY")
pip=(python3 -m pip)
"${pip[@]}" --version >/dev/null 2>&1 || pip=(pip3)
"${pip[@]}" download -q "${options[@]}" --dest files ${PACKAGES:-hearsay-alpha} >&2
"${pip[@]}" install -q --isolated --disable-pip-version-check --no-index --find-links files --target here ${PACKAGES:-hearsay-alpha} >&2
sums files/*.whl

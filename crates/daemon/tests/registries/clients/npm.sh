#!/usr/bin/env bash
# npm: a package and what it depends on, installed. What is printed are the files inside.
. "$(dirname "$0")/common.sh"

registry=${MIRROR:+$MIRROR/npm/}
printf '%s\n' "registry=${registry:-https://registry.npmjs.org/}" audit=false fund=false update-notifier=false \
    "cache=$HOME/cache" "cafile=$CA" fetch-retries=0 >.npmrc
[[ -z $PROXY ]] || printf '%s\n' "proxy=$PROXY" "https-proxy=$PROXY" >>.npmrc
mkdir project
cd project
echo '{"name":"project","version":"1.0.0"}' >package.json
npm install --no-progress --loglevel=error --userconfig "$HOME/.npmrc" ${PACKAGES:-hearsay-alpha} >&2
find node_modules -name data -type f | while read -r file; do
    name=${file#node_modules/}
    sums "$file" | sed "s|data\$|$name|"
done

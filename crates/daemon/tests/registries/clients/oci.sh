#!/usr/bin/env bash
# skopeo: copies an image to a folder. What is printed are its configuration and layers.
. "$(dirname "$0")/common.sh"

options=(--insecure-policy --override-os linux --override-arch amd64 --registries-conf "$HOME/registries.conf")
: >registries.conf
image=${PACKAGES:-library/hearsay:1}
if [[ -n $MIRROR ]]; then
    skopeo "${options[@]}" copy -q --src-tls-verify=false "docker://$authority/$image" "dir:$HOME/image" >&2
else
    skopeo "${options[@]}" copy -q "docker://docker.io/$image" "dir:$HOME/image" >&2
fi
cd image
find . -type f -regextype posix-extended -regex '\./[0-9a-f]{64}' | sed 's|^\./||' | sort | while read -r file; do sums "$file"; done

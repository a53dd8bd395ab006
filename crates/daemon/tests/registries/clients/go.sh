#!/usr/bin/env bash
# The command `go`: downloads a project's modules.
. "$(dirname "$0")/common.sh"

proxy=${MIRROR:+$MIRROR/go}
export GOPROXY=${proxy:-https://proxy.golang.org} GOFLAGS=-mod=mod GOSUMDB=${SUMDB:-off} GOTOOLCHAIN=local GOENV=off
export GOPATH=$HOME/go GOCACHE=$HOME/cache GOTELEMETRY=off GOWORK=off
mkdir project
cd project
printf '%s\n' 'module project' 'go 1.19' >go.mod
go get ${PACKAGES:-example.test/hearsay/alpha@v1.0.0} >&2
go mod download >&2
find "$GOPATH/pkg/mod/cache/download" -name '*.zip' | sort | while read -r file; do
    module=${file%/@v/*}
    sums "$file" | sed "s| | ${module##*/}@|"
done
# Modules are read-only, and their folders could not be removed.
chmod -R u+w "$GOPATH"

#!/usr/bin/env bash
# Cargo: fetches a project's dependencies from the sparse index.
. "$(dirname "$0")/common.sh"

# The toolchain is the machine's, the registry's cache is not.
export RUSTUP_HOME=${RUSTUP_HOME:-$(getent passwd "$(id -u)" | cut -d : -f 6)/.rustup}
export CARGO_HOME=$HOME/cargo CARGO_TERM_PROGRESS_WHEN=never CARGO_NET_RETRY=0
mkdir -p cargo src
: >src/lib.rs
printf '[http]\ncainfo = "%s"\n' "$CA" >cargo/config.toml
[[ -z $PROXY ]] || printf 'proxy = "%s"\n' "$PROXY" >>cargo/config.toml
[[ -z $MIRROR ]] || cat >>cargo/config.toml <<END
[source.crates-io]
replace-with = "mirror"
[source.mirror]
registry = "sparse+$MIRROR/cargo/"
END
printf '%s\n' '[package]' 'name = "project"' 'version = "1.0.0"' 'edition = "2021"' '[dependencies]' >Cargo.toml
printf '%s\n' "${PACKAGES:-hearsay-alpha = \"1\"}" >>Cargo.toml
"${CARGO:-cargo}" fetch -q >&2
sums cargo/registry/cache/*/*.crate

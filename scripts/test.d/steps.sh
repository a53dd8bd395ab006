#!/usr/bin/env bash
# One step of scripts/test: bash scripts/test.d/steps.sh NAME. run.py calls it; the test programs are no steps.
. "$(dirname "$0")/../lib.sh"

cd "$root"

formatting() { cargo fmt --all --check; }

scripts_parse() {
    local script bad=0 registries=crates/daemon/tests/registries
    for script in scripts/* scripts/*.d/* .ci/* "$registries"/*.py "$registries"/clients/*; do
        [[ -f $script ]] || continue
        case $(head -n 1 "$script")$script in
        *bash* | *.sh) bash -n "$script" || bad=1 ;;
        *.py) python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$script" || bad=1 ;;
        esac
    done
    return "$bad"
}

# What is installed, and run by other shells than bash.
shell_scripts() {
    local files=(packaging/debian/{postinst,prerm,postrm} packaging/container/rootfs crates/daemon/tests/package/systemctl)
    local openwrt=(packaging/openwrt/files/{uci.sh,hearsay.init} crates/daemon/tests/uci/functions.sh)
    if ! command -v shellcheck >/dev/null; then
        say "SKIPPED: shellcheck is not installed: run scripts/setup --long"
        return
    fi
    # `local`, which POSIX lacks, is in dash and in OpenWrt's ash.
    shellcheck "${files[@]}" && shellcheck --exclude=SC3043 "${openwrt[@]}"
}

# run.py says which packages, if not all.
lints() {
    local packages=(--workspace)
    [[ -z ${LINTED:-} ]] || read -ra packages <<<"$LINTED"
    cargo clippy "${packages[@]}" --all-targets --locked --quiet -- -D warnings
}

# What a router with little flash has: the rest must compile without warnings.
features() { cargo clippy -p daemon --locked --quiet --no-default-features -- -D warnings; }

all_features() {
    local features
    for features in completions man progress tls completions,man,progress; do
        cargo clippy -p daemon --locked --quiet --no-default-features --features "$features" -- -D warnings ||
            { say "with the features \"$features\""; return 1; }
    done
}

# The fuzz targets are a workspace of their own. They are only checked, not linked, so the fuzzer's C++ runtime is
# not needed; naming a path for it, which need not exist, avoids building it.
fuzz_targets() {
    make_workspace
    (cd fuzz && CUSTOM_LIBFUZZER_PATH=$work/libfuzzer.a cargo check --locked --offline --quiet)
}

documentation() { RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked --quiet; }

# Those in doc comments.
examples() { cargo test --doc --locked; }

demonstration() {
    if ! can_have_private_network; then
        say "SKIPPED: demonstration: network namespaces are not allowed here"
    elif [[ ! -r /dev/net/tun || ! -w /dev/net/tun ]]; then
        say "SKIPPED: demonstration: /dev/net/tun may not be used here"
    else
        scripts/demo
    fi
}

# Testing one crate compiles nothing that testing all of them has compiled.
compiled_once() {
    local manifest name messages
    for manifest in crates/*/Cargo.toml crates/*/tests/Cargo.toml; do
        name=$(sed -n 's/^name = "\(.*\)"/\1/p;T;q' "$manifest")
        messages=$(cargo test -p "$name" --no-run --locked --quiet --message-format=json)
        [[ $messages == *'"fresh":false'* ]] || continue
        say "cargo test -p $name compiles again what cargo test has compiled: add the feature to workspace-hack/Cargo.toml"
        return 1
    done
}

package() { scripts/package; }

# What the default suite ignores.
ignored_tests() { cargo test -p daemon --test daemon --locked --no-fail-fast -- --ignored --test-threads=1; }

# Tests choose a larger size without debug assertions.
larger_tests() {
    cargo test --profile long --locked --no-fail-fast -p store-tests -p link-tests
    cargo test --profile long --locked -p node-tests --test uplink a_million -- --ignored
}

"$1"

#!/bin/bash
# Installs narrows-cli from the packaged crates alone: they and their dependencies form a directory source in place of
# the registry. Arguments: the folder of the .crate files, a folder to work in, what to do: install, or check, which
# compiles nothing to the end, and a folder of cargo's results whose dependencies need no second check.
set -euo pipefail
crates=$(realpath "$1") work=$2 how=$3 built=$(realpath "$4")
rm -rf "$work/source" "$work/user"
mkdir -p "$work/source" "$work/user"
work=$(realpath "$work")
if [ "$how" = check ]; then
    rm -rf "$work/target"
    mkdir -p "$work/target/debug"
    for part in .fingerprint build deps; do
        [ ! -d "$built/debug/$part" ] || cp -al "$built/debug/$part" "$work/target/debug"
    done
fi
# For cargo a directory source never changes, so it would use what an earlier call compiled.
rm -rf "$work"/target/*/.fingerprint/narrows*
cargo vendor --locked --quiet "$work/source" >/dev/null
for crate in "$crates"/*.crate; do
    name=$(basename "$crate" .crate)
    tar -xzf "$crate" -C "$work/source"
    echo "{\"files\":{},\"package\":\"$(sha256sum "$crate" | cut -d' ' -f1)\"}" >"$work/source/$name/.cargo-checksum.json"
done
# Outside the workspace, so that nothing of it is found.
cd "$work/user"
source=(--config 'source.crates-io.replace-with = "here"' --config "source.here.directory = '$work/source'")
if [ "$how" = install ]; then
    cargo install narrows-cli --locked --offline --quiet "${source[@]}" --root "$work/user" --target-dir "$work/target"
    "$work/user/bin/narrows" compare --duration 2s --seeds 1 --protocols cubic,rrtp --out out >/dev/null
    test -s out/report.html
    echo "source: narrows-cli is installed from its package, and compares"
else
    cp -r "$work"/source/narrows-cli-*/. .
    echo "[workspace]" >>Cargo.toml
    # Its warnings without the feature `full`.
    cargo clippy --bins --locked --offline --quiet "${source[@]}" --target-dir "$work/target" -- -D warnings
    echo "source: narrows-cli is checked from its package"
fi

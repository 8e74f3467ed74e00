#!/bin/bash
# Runs the static command in a root that holds nothing else. Needs root. Argument: the folder of the packages.
set -euo pipefail
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
tar -xzf "$1"/narrows-*-linux-musl.tar.gz -C "$root" --strip-components=1 --wildcards '*/bin/narrows'
chroot "$root" /bin/narrows compare --duration 2s --seeds 1 --protocols cubic,bbr,rrtp --out /out >/dev/null
test -s "$root/out/report.html"
echo "static: compares in an empty root"

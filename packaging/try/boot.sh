#!/bin/bash
# Boots this system's systemd in an overlay, where inside.sh installs, runs and removes the packages. The machine
# itself stays as it is. Needs root and systemd-nspawn. Argument: the folder of the packages.
set -euo pipefail
packages=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
if [ -z "${NARROWS_IN_NAMESPACE:-}" ]; then
    NARROWS_IN_NAMESPACE=1 exec unshare --mount --propagation private bash "$0" "$packages"
fi
scratch=$(mktemp -d)
trap 'umount -l "$scratch"; rmdir "$scratch"' EXIT
mount -t tmpfs none "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$scratch/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$scratch/root"
root=$scratch/root
rm -f "$root/etc/machine-id"
mkdir -p "$root/packages"
cp "$packages"/*.deb "$root/packages/"
cp "$packages"/*.rpm "$root/packages/" 2>/dev/null || true
cp "$here/inside.sh" "$root/packages/"
cat >"$root/etc/systemd/system/try.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash /packages/inside.sh
StandardOutput=file:/packages/output
StandardError=file:/packages/output
ExecStopPost=/bin/sh -c 'echo $$SERVICE_RESULT >/packages/result; systemctl poweroff --force'
UNIT
# Without a systemd of its own the machine has no unit that nspawn could make.
unit=()
[ -d /run/systemd/system ] || unit=(--keep-unit)
timeout 300 systemd-nspawn --quiet --register=no "${unit[@]}" --private-network --directory "$root" \
    --boot systemd.unit=try.service >"$scratch/console" 2>&1 || true
cat "$root/packages/output" || tail -20 "$scratch/console"
test "$(cat "$root/packages/result")" = success

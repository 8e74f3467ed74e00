# The step of action.yml. Its inputs are the variables INPUT_*.
set -euo pipefail
refuse() {
    echo "narrows link: $1" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
[ -n "${INPUT_LINK:-}" ] || refuse "link is missing, such as link: lte,loss=1%"
[ -n "${INPUT_RUN:-}" ] || refuse "run is missing, such as run: ./test.sh"
[ "$(uname)" = Linux ] || refuse "needs Linux: runs-on: ubuntu-latest"

narrows=${INPUT_NARROWS:-}
if [ -z "$narrows" ]; then
    # Once per job.
    narrows=${RUNNER_TEMP:-/tmp}/narrows/bin/narrows
    [ -x "$narrows" ] || cargo install --quiet --locked --path "$here/../../apps/cli" --features full \
        --root "${narrows%/bin/narrows}"
fi
[ -x "$narrows" ] || refuse "no command at narrows: $narrows"

# Ubuntu 23.10 and newer.
restricted=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ "$(id -u)" != 0 ] && [ "$(cat $restricted 2>/dev/null)" = 1 ]; then
    sudo -n sysctl -q -w kernel.apparmor_restrict_unprivileged_userns=0 ||
        refuse "user namespaces are restricted, and sudo is not permitted"
fi

# Without a far end the command reaches the host's network: by pasta if not as root.
if [ -z "${INPUT_FAR:-}" ] && [ "$(id -u)" != 0 ] && ! command -v pasta >/dev/null; then
    sudo -n apt-get install -q -y passt >/dev/null ||
        refuse "needs far, root or the package passt"
fi

arguments=("$INPUT_LINK" --seed "${INPUT_SEED:-1}")
[ -z "${INPUT_BACK:-}" ] || arguments+=(--back "$INPUT_BACK")
[ -z "${INPUT_FAR:-}" ] || arguments+=(--far "$INPUT_FAR")
exec "$narrows" link "${arguments[@]}" -- bash -euo pipefail -c "$INPUT_RUN"

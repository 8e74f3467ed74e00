# Tries the step of action.yml. Argument: the command narrows, with all features.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
step() {
    env INPUT_NARROWS="$narrows" INPUT_LINK="$1" INPUT_RUN="$2" INPUT_BACK="${3:-}" INPUT_FAR="${4:-}" bash "$here/run.sh"
}
expect() {
    local wanted=$1 result=0
    shift
    "$@" >"$log" 2>&1 || result=$?
    [ "$result" = "$wanted" ] || { echo "code $result instead of $wanted: $*" && cat "$log" && exit 1; } >&2
}
narrows=$(realpath "$1")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Inputs that action.yml does not pass to the step would be ignored.
for name in $(sed -n '/^inputs:/,/^runs:/p' "$here/action.yml" | grep -oE '^  [a-z]+:' | tr -d ' :'); do
    grep -q "INPUT_${name^^}: \${{ inputs.$name }}" "$here/action.yml" || { echo "input $name is not passed" && exit 1; } >&2
done

expect 2 step "" true
expect 2 step 20Mbit/s,5ms ""
expect 2 step 20Mbit/s,5ms,los=1% true '' true
grep -q "did you mean 'loss'" "$log" || { cat "$log" && exit 1; } >&2
expect 2 env INPUT_LINK=lte INPUT_RUN=true INPUT_NARROWS=/nonexistent bash "$here/run.sh"
if ! "$narrows" link 20Mbit/s,5ms --far true -- true >"$log" 2>&1; then
    echo "action: inputs only, since this machine permits no links: $(head -1 "$log")"
    exit
fi
server='exec python3 -m http.server 8000 --bind 0.0.0.0'
# shellcheck disable=SC2016  # for the step's shell
test='for _ in $(seq 100); do curl -sf "http://$NARROWS_FAR:8000/" >/dev/null && exit 0; sleep 0.1; done; exit 1'
expect 0 step 20Mbit/s,5ms "$test" 20Mbit/s,5ms,loss=1% "$server"
expect 7 step 20Mbit/s,5ms 'exit 7' "" "$server"
# A pipe that fails, and text that a shell could take for commands.
expect 1 step 20Mbit/s,5ms 'false | true' "" "$server"
expect 2 step "20Mbit/s,5ms; touch $log.injected; #" true "" "$server"
[ ! -e "$log.injected" ]
echo "action: runs commands behind links"

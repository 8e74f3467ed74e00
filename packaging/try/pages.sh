#!/bin/bash
# Follows each task page with a package, from nothing to its answer, without Rust and with an empty home; prints the
# seconds. Needs namespaces for `link`. Arguments: the folder of the packages, and the pages, by default all.
set -euo pipefail
folder=$(realpath "$1") wanted=${*:2}
docs=$(realpath docs) notebook=$(realpath python/notebooks/teach_congestion_control.ipynb)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Until a file has this text; then the text.
await() {
    for _ in $(seq 600); do grep -ohE "$1" "$2" 2>/dev/null | head -1 | grep . && return; sleep 0.05; done
    echo "no '$1' in $2" >&2; cat "$2" >&2; return 1
}
# The page NAME: installs a package in a fresh home, and follows.
page() {
    [[ -z $wanted || " $wanted " == *" $1 "* ]] || return 0
    mkdir "$scratch/$1"
    local begun=$EPOCHREALTIME
    if ! (cd "$scratch/$1" && env -i HOME="$PWD" XDG_CONFIG_HOME="$PWD" LANG=C.UTF-8 DOCS="$docs" FOLDER="$folder" \
        NOTEBOOK="$notebook" PATH="$PWD/bin:/usr/bin:/bin:/usr/sbin" bash -euo pipefail -c "$(declare -f await); $2; $3" >log 2>&1)
    then cat "$scratch/$1/log"; return 1; fi
    printf '%-12s %5.1f s\n' "$1" "$(echo "$EPOCHREALTIME - $begun" | bc)"
}
command='tar -xzf "$FOLDER"/narrows-*-linux-*.tar.gz --strip-components=1; trap "kill \$(jobs -p) 2>/dev/null || true" EXIT'
wheel='python3 -m venv . && pip install --quiet "$(echo "$FOLDER"/narrows-*.whl)[plot]"'

page files "$command" '
mkdir inbox photos
for i in $(seq 150); do head -c 100000 /dev/urandom >photos/$i.jpg; done
narrows serve inbox --allow-put --listen 127.0.0.1:0 >served & at=$(await "127.0.0.1:[0-9]+" served)
narrows relay --listen 127.0.0.1:0 --to $at --link 20Mbit/s,25ms,loss=1% >relay 2>&1 & at=$(await "127.0.0.1:[0-9]+" relay)
narrows put photos rrtp://$at/
narrows get rrtp://$at/photos/ -o back
diff -r photos back'

page tunnel "$command" '
mkdir www; head -c 1000000 /dev/urandom >www/f
python3 -u -m http.server -b 127.0.0.1 0 -d www >web 2>&1 & port=$(await "port [0-9]+" web)
narrows key >friends.txt
narrows tunnel serve --listen 127.0.0.1:0 --clients friends.txt --allow "127.0.0.1:${port#* }" >far 2>&1 & url=$(await "rrtp://.*" far)
narrows tunnel connect $url --socks 0 >near 2>&1 & socks=$(await "127.0.0.1:[0-9]+ leads" near)
curl -sS --socks5-hostname ${socks% leads} http://127.0.0.1:${port#* }/f -o f
cmp f www/f'

page link "$command" '
mkdir www; head -c 1000000 /dev/urandom >www/f.bin
sed -n "/^\$ cat test.sh/,/^\$ narrows/{/^until\|^curl/p}" "$DOCS/link.md" >test.sh
narrows link 10Mbit/s,50ms --back 10Mbit/s,50ms,loss=2% --seed 1 \
    --far "python3 -m http.server 8000 -d www" -- sh test.sh >out
grep ", 200" out'

page kernel "$command" '
narrows compare --link 20Mbit/s,150ms,loss=0.5% --protocols cubic,bbr,rrtp --seeds 3 --duration 30s | tee out
grep "^Use " out
sysctl net.ipv4.tcp_available_congestion_control'

page live "$command" '
narrows compare --link lte --protocols cubic,bbr,rrtp --live >out 2>&1 & url=$(await "http://127.*" out)
curl -sSf "$url" -o page
grep -qi "<html" page'

page media "$command" '
narrows key >friends.txt
narrows media receive --listen 127.0.0.1:0 --clients friends.txt --to 45004 >receive 2>&1 & url=$(await "rrtp://.*" receive)
narrows media send $url --from 45000 --latency 300ms >send 2>&1 &
python3 -c "
import socket, time
into, out = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
into.bind((\"127.0.0.1\", 45004)); into.settimeout(.05)
for i in range(2000):
    out.sendto((b\"G\" + bytes(187)) * 7, (\"127.0.0.1\", 45000))
    try: print(len(into.recv(2000))); break
    except TimeoutError: pass
else: raise SystemExit(\"nothing arrives\")"'

page probe "$command" '
narrows speed --serve --listen 127.0.0.1:0 >served 2>&1 & at=$(await "127.0.0.1:[0-9]+" served)
narrows relay --listen 127.0.0.1:0 --to $at --link 4Mbit/s,20ms,loss=1% >relay 2>&1 & at=$(await "127.0.0.1:[0-9]+" relay)
narrows probe $at --save home --trace drive
narrows compare --link home --for calls'

page teach "$wheel" '
pip install --quiet nbclient ipykernel
python -c "
import nbclient, nbformat, sys
nbclient.NotebookClient(nbformat.read(sys.argv[1], 4), kernel_name=\"python3\").execute()" "$NOTEBOOK"'

page paper "$wheel" '
sed -n "/^\`\`\`python/,/^\`\`\`/p;/^\`\`\`console/q" "$DOCS/adding-a-controller.md" | grep -v "^\`\`\`" >paper.py
python paper.py
test -s cwnd.pdf'

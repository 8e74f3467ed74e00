# Runs in a booted scratch system: install, start, use, stop and remove. Prints one line for each result.
set -Eeuo pipefail
said() { printf '%s: %s\n' "$1" "${*:2}"; }
failed() {
    echo "failed at line $1"
    journalctl --no-pager --unit 'narrows-*' 2>/dev/null | tail -20
}
trap 'failed $LINENO' ERR
# Until the command succeeds, for 10 s.
await() {
    for _ in $(seq 100); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
    "$@"
}
# Succeeds if the command fails; `! command` would not stop this script.
never() { if "$@" >/dev/null 2>&1; then return 1; fi; }
# The public key of a file, of a copy if it is another user's.
key_of() {
    cp "$1" /root/copy.key
    narrows key --identity /root/copy.key | grep -oE '[A-Za-z0-9_-]{43,}' | head -1
}
export HOME=/root XDG_CONFIG_HOME=/root/.config
cd /packages

dpkg --install ./*.deb
said deb "$(narrows --version), installed"
man -w narrows-compare >/dev/null
narrows compare --duration 2s --seeds 1 --protocols cubic,rrtp --out /tmp/out >/dev/null
for unit in narrows-serve narrows-tunnel narrows-connect@x narrows-media-receive@x narrows-media-send@x; do
    systemd-analyze verify "$unit.service"
    exposure=$(systemd-analyze security "$unit.service" --no-pager | grep -oE 'level for .*: [0-9.]+' | grep -oE '[0-9.]+$')
    said "$unit" "exposure $exposure"
    [ "${exposure%.*}" -lt 3 ]
done

# Without its configuration a service fails, once, and its line names the file.
never systemctl start narrows-serve
[ "$(systemctl is-failed narrows-serve)" = failed ]
grep -q '/etc/narrows/serve.toml: no such file' <<<"$(journalctl --no-pager --unit narrows-serve)"
said serve "without serve.toml it does not start, and says so"

# Keys of an earlier package, whose services shared the user narrows, go on with their new owners.
useradd --system narrows
install -d -o narrows -g narrows /var/lib/narrows/serve /var/lib/narrows/tunnel
narrows key --identity /root/server.key >/dev/null
install -o narrows -m 600 /root/server.key /var/lib/narrows/serve/server.key
server=$(key_of /root/server.key)

mkdir -p /srv/files
echo 'a file' >/srv/files/file
narrows key --identity /root/client.key >/etc/narrows/clients
cp /etc/narrows/serve.toml.example /etc/narrows/serve.toml
systemctl start narrows-serve
[ "$(key_of /var/lib/narrows/serve/server.key)" = "$server" ]
await narrows get "rrtp://$server@127.0.0.1:47470/file" --identity /root/client.key --output /tmp/got
cmp /srv/files/file /tmp/got
never narrows get "rrtp://$server@127.0.0.1:47470/file" --output /tmp/other
said serve "a file fetched from the service by a listed client, with the key of an earlier package"

# The near side's key is made by its first start, so the far side's list is written after that.
echo 'server = "rrtp://127.0.0.1:47471"
tcp = ["8081:127.0.0.1:8080"]' >/etc/narrows/connect-x.toml
systemctl start narrows-connect@x
await test -s /var/lib/narrows/connect-x/client.key
echo "$server" >/etc/narrows/friends.txt
echo 'listen = "127.0.0.1:47471"
clients = "/etc/narrows/friends.txt"
allow = ["127.0.0.1:8080"]' >/etc/narrows/tunnel.toml
systemctl start narrows-tunnel
key_of /var/lib/narrows/connect-x/client.key >/etc/narrows/friends.txt
# As on a system without procps.
mv /bin/kill /bin/kill.absent
systemctl reload narrows-tunnel
mv /bin/kill.absent /bin/kill
(cd /srv/files && exec python3 -m http.server --bind 127.0.0.1 8080) >/dev/null 2>&1 &
systemctl restart narrows-connect@x
through() { python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=3).read().decode(), end="")' "$1"; }
await through http://127.0.0.1:8081/file
[ "$(through http://127.0.0.1:8081/file)" = 'a file' ]
said tunnel "a page fetched through both services, with a key that a reload brought"

cp /etc/narrows/friends.txt /etc/narrows/senders.txt
echo 'clients = "/etc/narrows/senders.txt"
listen = "127.0.0.1:47472"' >/etc/narrows/receive-x.toml
systemctl start narrows-media-receive@x
await test -s /var/lib/narrows/receive-x/server.key
receiver=$(key_of /var/lib/narrows/receive-x/server.key)
echo "receiver = \"rrtp://$receiver@127.0.0.1:47472\"" >/etc/narrows/send-x.toml
systemctl start narrows-media-send@x
await test -s /var/lib/narrows/send-x/client.key
key_of /var/lib/narrows/send-x/client.key >/etc/narrows/senders.txt
systemctl restart narrows-media-receive@x narrows-media-send@x
sleep 1
systemctl is-active narrows-media-receive@x narrows-media-send@x >/dev/null
said media "both ends run"

# Each service has a user of its own, which reads no other service's key.
users=$(systemctl show --property UID --value narrows-serve narrows-tunnel narrows-connect@x | grep . | sort -u)
[ "$(wc -l <<<"$users")" = 3 ]
as_service() { nsenter --target "$(systemctl show --property MainPID --value narrows-tunnel)" --mount \
    setpriv --reuid "$(systemctl show --property UID --value narrows-tunnel)" --clear-groups "$@"; }
as_service test -r /var/lib/narrows/tunnel/server.key
for key in serve/server.key connect-x/client.key; do
    [ -s /var/lib/narrows/$key ]
    never as_service test -r /var/lib/narrows/$key
done
said keys "read by their own service only"

dpkg --remove narrows
never systemctl is-active narrows-serve
never pgrep -x narrows
[ -s /var/lib/narrows/serve/server.key ]
dpkg --purge narrows 2>/dev/null || true
[ ! -e /var/lib/private/narrows ]
[ -e /etc/narrows/serve.toml ] && [ ! -e /etc/narrows/serve.toml.example ]
[ -z "$(find /usr /lib /etc/systemd -name '*narrows*' -not -path '*/src/*' 2>/dev/null)" ]
said deb "stopped and removed; nothing is left"

if [ -n "$(ls ./*.rpm 2>/dev/null)" ]; then
    rpm --install --nodeps ./*.rpm
    said rpm "$(narrows --version), installed"
    [ -s /etc/narrows/serve.toml.example ]
    systemctl start narrows-serve
    systemctl is-active narrows-serve >/dev/null
    rpm --erase narrows
    never pgrep -x narrows
    [ ! -e /usr/bin/narrows ]
    said rpm "stopped and removed"
fi

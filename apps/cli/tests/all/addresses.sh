# Dials names with an IPv6 address where no server answers, and an IPv4 address where one does. At `dead` packets vanish;
# at `refusing` they are refused. Run in namespaces of its own.
ip link set lo up
ip -6 addr add fd98::1/128 dev lo nodad
ip tuntap add dev hole mode tun && ip link set hole up
ip -6 route add fd98::66 dev hole
printf '127.0.0.1 localhost\nfd98::66 dead\n127.0.0.1 dead\n::1 refusing\n127.0.0.1 refusing\n' > hosts
mount --bind hosts /etc/hosts
until_says() { for _ in $(seq 600); do grep -q "$1" "$2" 2>/dev/null && return; sleep 0.1; done; cat "$2" >&2; }
within() { timeout 60 "$NARROWS" "$@"; }

"$NARROWS" key > friends
mkdir files && echo hello > files/f
listen() { name=$1; shift; "$NARROWS" "$@" > "$name" 2>&1 & pids="$pids $!"; until_says ":4747" "$name"; }
listen files.log serve files --listen 0.0.0.0:47470
listen tunnel.log tunnel serve --listen 0.0.0.0:47471 --clients friends --allow '127.0.0.1:*'
listen media.log media receive --listen 0.0.0.0:47472 --clients friends --to 47480
listen speed.log speed --serve --listen 0.0.0.0:47473
listen web.log relay --tcp --listen 127.0.0.1:47474 --to refusing:47470 --link 10Mbit/s,1ms

within probe dead:47470 > probe.log 2>&1 & probed=$!
for host in dead refusing; do
    for scheme in rrtp tcp; do echo "$host $scheme $(within get $scheme://$host:47470/f -o - 2>/dev/null)"; done
    within speed $host:47473 --duration 1kB > out 2>&1; echo "$host speed $?"
    within probe --tcp $host:47470 > out 2>&1; echo "$host probe --tcp $?"
    # A log of its own for each command: an old one would be read before the command has emptied it.
    near="$host-tunnel.log"
    "$NARROWS" tunnel connect rrtp://$host:47471 --tcp 0:127.0.0.1:47470 > "$near" 2>&1 & near_pid=$!
    until_says "connected to 127.0.0.1:47471" "$near"; kill $near_pid
    grep -o "connected to .*[0-9]: " "$near"
    near="$host-media.log"
    "$NARROWS" media send rrtp://$host:47472 --from 47490 > "$near" 2>&1 & near_pid=$!
    until_says "connected to 127.0.0.1:47472" "$near"; kill $near_pid
    grep -o "connected to .*[0-9]: " "$near"
done
echo "relay $(within get tcp://127.0.0.1:47474/f -o - 2>/dev/null)"
wait $probed; echo "dead probe $?"
kill $pids

# A host of its own (this shell's namespaces), whose resolver listens on 127.0.0.53, and an outside behind it: what a
# command behind a link reaches there, by name, IPv4 and IPv6. NARROWS is the program under test.
set -e
outside=nw-test-$$
servers=
file=$(mktemp)
trap 'kill $servers; ip netns del $outside; rm -f "$file"' EXIT
ip link set lo up
ip netns add $outside
ip -n $outside link set lo up
ip link add nwt0 type veth peer name nwt1 netns $outside
ip addr add 10.99.0.1/24 dev nwt0
ip addr add fd99::1/64 dev nwt0 nodad
ip -n $outside addr add 10.99.0.2/24 dev nwt1
ip -n $outside addr add fd99::2/64 dev nwt1 nodad
ip link set nwt0 up
ip -n $outside link set nwt1 up
printf 'nameserver 127.0.0.53\n' > "$file"
mount --bind "$file" /etc/resolv.conf
python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('127.0.0.53', 53))
while True:
    q, peer = s.recvfrom(512)
    end = q.index(b'\0', 12) + 5
    a = b'\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4' + socket.inet_aton('10.99.0.2') if q[end-4:end-2] == b'\0\1' else b''
    s.sendto(q[:2] + b'\x81\x80\0\1' + (b'\0\1' if a else b'\0\0') + b'\0\0\0\0' + q[12:end] + a, peer)
" > /dev/null &
servers=$!
ip netns exec $outside python3 -c "
import socket
s = socket.create_server(('::', 9000), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    c, peer = s.accept()
    c.send(peer[0].encode())
    c.close()
" > /dev/null &
servers="$servers $!"
settings() { cat /proc/sys/net/ipv[46]/conf/*/*forwarding; }
before=$(settings)
"$NARROWS" link 100Mbit/s,20ms --quiet -- python3 -c "
import socket, time
for host in ('server.test', '10.99.0.2', 'fd99::2'):
    for _ in range(1200):
        try:
            began = time.time()
            with socket.create_connection((host, 9000)) as c:
                print(host, c.recv(100).decode(), time.time() - began >= 0.04)
            break
        except OSError: time.sleep(0.05)
"
[ "$(settings)" = "$before" ] && echo "settings as before"

#!/usr/bin/env python3
"""One TCP flow (the kernel's CUBIC) through `tunnel --tun`, beside the same through `--tcp`, and without a tunnel.

    python3 tools/tunnel/measure_tun.py target/release/narrows 20Mbit/s,25ms,loss=10% [seconds]

Both ends and `narrows link` (needs root), which loses each way, are on this machine. A flow is counted from its connection on.
Beside it 40 bytes are echoed over UDP ten times a second, where there is a way for datagrams: p50 and p95 of the second half.
"""

import os, shlex, socket, subprocess, sys, tempfile, threading, time

PORT, INSIDE, TUNNEL = 5001, 5002, 47471


def far(narrows, folder):
    listener = socket.create_server(("0.0.0.0", PORT))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")

    def flood(sock):
        try:
            while True:
                sock.sendall(bytes(1 << 16))
        except OSError:
            sock.close()

    def accept():
        while True:
            threading.Thread(target=flood, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("0.0.0.0", PORT))

    def echo():
        while True:
            said, who = datagrams.recvfrom(2000)
            datagrams.sendto(said, who)

    threading.Thread(target=echo, daemon=True).start()
    subprocess.run(
        [narrows, "tunnel", "serve", "--listen", f"0.0.0.0:{TUNNEL}", "--clients", f"{folder}/clients"]
        + ["--identity", f"{folder}/server.key", "--log", f"{folder}/far.log", "--tun", "10.77.0.0/24"]
        + ["--allow", "10.77.0.1:*", f"127.0.0.1:{PORT}"]
    )


class Echoes(threading.Thread):
    """Echoes of datagrams until it is told to stop."""

    def __init__(self, to):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(to)
        self.socket.settimeout(0.1)
        self.stop, self.took = False, []
        self.start()

    def run(self):
        due = time.monotonic()
        while not self.stop:
            if time.monotonic() >= due:
                due += 0.1
                self.socket.send(f"{time.monotonic():.6f}".ljust(40).encode())
            try:
                left = float(self.socket.recv(100))
                self.took.append(time.monotonic() - left)
            except (TimeoutError, ConnectionError):
                pass

    def told(self):
        self.stop = True
        self.join()
        late = sorted(self.took[len(self.took) // 2 :])
        if not late:
            return "no echo"
        at = lambda q: 1e3 * late[int(q * (len(late) - 1))]
        return f"echo p50 {at(0.5):.0f} ms, p95 {at(0.95):.0f} ms ({len(late)})"


def near(narrows, folder, key, seconds):
    at = os.environ["NARROWS_FAR"]
    tunnel = subprocess.Popen(
        [narrows, "tunnel", "connect", f"rrtp://{key}@{at}:{TUNNEL}", "--identity", f"{folder}/client.key"]
        + ["--log", f"{folder}/near.log", "--tun", "--tcp", f"{INSIDE}:127.0.0.1:{PORT}"],
        stdout=subprocess.DEVNULL,
    )
    while not os.path.exists(f"{folder}/near.log") or "packets: " not in open(f"{folder}/near.log").read():
        time.sleep(0.1)
    # The path's MTU is found by then.
    time.sleep(5)
    for name, to in [("--tun", ("10.77.0.1", PORT)), ("--tcp", ("127.0.0.1", INSIDE)), ("no tunnel", (at, PORT))]:
        echoes = None if name == "--tcp" else Echoes(to)
        begun, came = time.monotonic(), 0
        sock = socket.create_connection(to)
        sock.settimeout(0.1)
        while time.monotonic() < begun + seconds:
            try:
                came += len(sock.recv(1 << 16))
            except TimeoutError:
                pass
        sock.close()
        beside = f"; {echoes.told()}" if echoes else ""
        print(f"{name}: {came * 8e-6 / seconds:.2f} Mbit/s{beside}", flush=True)
        # What was under way is over.
        time.sleep(5)
    tunnel.terminate()


def main(narrows, link, seconds):
    narrows = os.path.abspath(narrows)
    with tempfile.TemporaryDirectory() as folder:
        key = lambda name: subprocess.check_output(
            [narrows, "key", "--identity", f"{folder}/{name}.key"], text=True
        ).split()[-1]
        with open(f"{folder}/clients", "w") as clients:
            clients.write(key("client") + "\n")
        me = [sys.executable, os.path.abspath(__file__)]
        there = shlex.join(me + ["far", narrows, folder])
        here = me + ["near", narrows, folder, key("server"), seconds]
        subprocess.run([narrows, "link", link, "--back", link, "--quiet", "--far", there, "--"] + here)


if __name__ == "__main__":
    if sys.argv[1] == "far":
        far(*sys.argv[2:4])
    elif sys.argv[1] == "near":
        near(*sys.argv[2:5], float(sys.argv[5]))
    else:
        main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "30")

#!/usr/bin/env python3
"""`narrows media` with three layers through an emulated link: which are sent, and what is late of each.

    python3 tools/media/layers.py target/debug/narrows [--link 3Mbit/s,25ms,queue=50kB,loss=1%] [--seconds 60]

Layers of 0.5, 1 and 2 Mbit/s, 25 frames a second each. Prints the receiver's measures and the sender's counters. Uses the
standard library alone.
"""

import argparse, os, signal, socket, subprocess, tempfile, threading, time

RATES = [0.5e6, 1e6, 2e6]


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def source(port, rate, seconds):
    """RTP: a frame each 40 ms, its packets over half of that time."""
    sock, begun, owed = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.monotonic(), 0.0
    for frame in range(int(seconds * 25)):
        owed += rate / 25 / 8 / 1200
        count = max(int(owed), 1)
        owed -= count
        for n in range(count):
            time.sleep(max(0.0, begun + (frame + 0.5 * n / count) / 25 - time.monotonic()))
            sock.sendto(b"\x80\x60\0\0" + (frame + 1).to_bytes(4, "big") + bytes(1192), ("127.0.0.1", port))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("narrows")
    parser.add_argument("--link", default="3Mbit/s,25ms,queue=50kB,loss=1%")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--latency", default="300ms")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        env = os.environ | {"HOME": home, "XDG_CONFIG_HOME": home}
        start = lambda *args: subprocess.Popen((a.narrows, *args), stdout=subprocess.PIPE, text=True, env=env)
        with open(f"{home}/clients", "w") as file:
            file.write(subprocess.run([a.narrows, "key"], env=env, capture_output=True, text=True).stdout)
        to = ",".join(str(free_port()) for _ in RATES)
        receiver = start("media", "receive", "--listen", "127.0.0.1:0", "--clients", f"{home}/clients", "--to", to)
        url = next(line for line in receiver.stdout if "rrtp://" in line).strip()
        name, at = url.rsplit("@", 1)
        port = free_port()
        relay = start("relay", "--listen", f"127.0.0.1:{port}", "--to", at, "--link", a.link)
        time.sleep(1)
        ports = [free_port() for _ in RATES]
        layers = [text for port, rate in zip(ports, RATES) for text in ("--layer", f"{port}:{rate / 1e6}Mbit/s")]
        sender = start("media", "send", f"{name}@127.0.0.1:{port}", "--latency", a.latency, "--json", *layers)
        time.sleep(1)
        sources = [threading.Thread(target=source, args=(*of, a.seconds)) for of in zip(ports, RATES)]
        [each.start() for each in sources]
        [each.join() for each in sources]
        for process in (sender, receiver, relay):
            process.send_signal(signal.SIGINT)
            print(process.communicate(timeout=60)[0].strip() if process != relay else "")


main()

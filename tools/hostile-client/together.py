# SPDX-License-Identifier: MIT OR Apache-2.0
"""All attacks at once, from a network namespace of their own, and what honest clients and the server's memory
make of it. Needs root, Linux with tc's htb, and a built narrows.

    python3 together.py path/to/narrows [--gets 10] [--attacks all]

Four namespaces: the server's, the attackers' (ten addresses), that of a client elsewhere, and between server and
attackers a router with 10 Mbit/s in all, each way. Honest clients get 1 MB through `narrows relay --link 20Mbit/s,25ms`: one from elsewhere, and a
neighbour whose relay sends from the attackers' own first address, past their bottleneck (another machine behind
one NAT). The namespaces and all processes are gone at the end.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from attacks import ATTACKS

HERE = pathlib.Path(__file__).parent
SERVER, ATTACK, CLIENT = "narrows-server", "narrows-attack", "narrows-client"
ROUTER = "narrows-router"
NAMESPACES = (SERVER, ROUTER, ATTACK, CLIENT)
PORT, RELAY = 47470, 47471
LINK, BOTTLENECK = "20Mbit/s,25ms", "10mbit"
# What the goals say: times the quiet time, seconds more.
GOALS = {"elsewhere": (3, 0), "neighbour": (10, 2)}


def sh(line):
    subprocess.run(line.split(), check=True, capture_output=True)


def connect(network, name, device, other, other_device):
    """A cable between two namespaces: addresses .1 and .2 of the network."""
    sh(f"ip link add {device} netns {name} type veth peer name {other_device} netns {other}")
    for last, space, end in ((1, name, device), (2, other, other_device)):
        sh(f"ip -n {space} addr add {network}.{last}/24 dev {end}")
        sh(f"ip -n {space} link set {end} up")


def make_network():
    for name in NAMESPACES:
        sh(f"ip netns add {name}")
        sh(f"ip -n {name} link set lo up")
    connect("10.99.2", SERVER, "client", CLIENT, "out")
    connect("10.99.1", SERVER, "router", ROUTER, "server")
    connect("10.99.3", ROUTER, "attack", ATTACK, "out")
    for last in range(3, 12):
        sh(f"ip -n {ATTACK} addr add 10.99.3.{last}/24 dev out")
    sh(f"ip -n {ATTACK} route add 10.99.1.0/24 via 10.99.3.1")
    sh(f"ip -n {SERVER} route add 10.99.3.0/24 via 10.99.1.2")
    write(ROUTER, "/proc/sys/net/ipv4/ip_forward", "1")
    # Attackers bind to ports below 49152, the neighbour's relay does not: the bottleneck tells them apart.
    write(ATTACK, "/proc/sys/net/ipv4/ip_local_port_range", "49152 65535")
    # Not at the server: packets that wait there would fill its socket, and all clients would wait behind them.
    for device, port in (("server", "sport"), ("attack", "dport")):
        tc = f"ip netns exec {ROUTER} tc"
        sh(f"{tc} qdisc add dev {device} root handle 1: htb default 10")
        sh(f"{tc} class add dev {device} parent 1: classid 1:10 htb rate {BOTTLENECK}")
        sh(f"{tc} class add dev {device} parent 1: classid 1:20 htb rate 1gbit")
        sh(f"{tc} qdisc add dev {device} parent 1:10 pfifo limit 200")
        sh(f"{tc} filter add dev {device} parent 1: protocol ip u32 match ip {port} 49152 0xc000 flowid 1:20")


def write(namespace, file, text):
    subprocess.run(["ip", "netns", "exec", namespace, "sh", "-c", f"echo {text} > {file}"], check=True)


def remove_network():
    for name in NAMESPACES:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Bench:
    """The processes of one run."""

    def __init__(self, narrows, folder):
        self.narrows, self.folder, self.processes = narrows, folder, []
        self.env = {**os.environ, "XDG_CONFIG_HOME": str(folder / "home"), "PYTHONDONTWRITEBYTECODE": "1"}

    def start(self, where, *command, **options):
        line = ["ip", "netns", "exec", where, *map(str, command)]
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
        process = subprocess.Popen(line, env=self.env, text=True, **options)
        self.processes.append(process)
        return process

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait()

    def get(self, where):
        """How long one get of 1 MB takes; None if it fails, and why."""
        begun = time.monotonic()
        got = self.folder / "got"
        shutil.rmtree(got, ignore_errors=True)
        got.mkdir()
        line = ["ip", "netns", "exec", where, self.narrows, "get", f"rrtp://127.0.0.1:{RELAY}/one"]
        done = subprocess.run(line + ["-o", f"{got}/"], env=self.env, capture_output=True, text=True)
        took = time.monotonic() - begun
        whole = done.returncode == 0 and (got / "one").stat().st_size == 1_000_000
        return (took, None) if whole else (None, done.stderr.strip())


def status(pid):
    """Resident and anonymous memory in MB, threads."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    field = {words[0]: words[1] for words in map(str.split, text.splitlines()) if len(words) > 1}
    return int(field["VmRSS:"]) / 1024, int(field["RssAnon:"]) / 1024, int(field["Threads:"])


def processor_time(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def at_server():
    """Datagrams that came, TCP connections that stand, as the server's kernel counts them."""

    def run(*line):
        line = ["ip", "netns", "exec", SERVER, *line]
        return subprocess.run(line, capture_output=True, text=True).stdout

    udp = [line.split() for line in run("cat", "/proc/net/snmp").splitlines() if line.startswith("Udp:")]
    came = int(dict(zip(*udp))["InDatagrams"])
    return came, len(run("ss", "-Htn", "state", "established").splitlines())


def said(kind, all_of_them):
    """Times of gets, and failures, in one line; their median."""
    times = sorted(took for took, _ in all_of_them if took is not None)
    median = statistics.median(times) if times else float("inf")
    listed = " ".join(f"{t:.2f}" for t in times)
    print(f"{kind}: {len(times)} of {len(all_of_them)}, median {median:.2f} s ({listed})", flush=True)
    for _, why in all_of_them:
        if why is not None:
            print(f"    failed: {why}")
    return median


def measure(narrows, gets, attacks):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="narrows-together-"))
    bench = Bench(narrows, folder)
    remove_network()
    try:
        make_network()
        (folder / "files").mkdir()
        (folder / "files/one").write_bytes(os.urandom(1_000_000))
        with open(folder / "files/big", "wb") as big:
            big.truncate(200_000_000)
        serve = ("serve", folder / "files", "--listen", f"0.0.0.0:{PORT}", "--log", folder / "log")
        server = bench.start(SERVER, narrows, *serve)
        for n, where in ((2, CLIENT), (1, ATTACK)):
            to = ("--listen", f"127.0.0.1:{RELAY}", "--to", f"10.99.{n}.1:{PORT}")
            bench.start(where, narrows, "relay", *to, "--link", LINK)
        time.sleep(1)
        sides = {"elsewhere": CLIENT, "neighbour": ATTACK}
        quiet = {side: [] for side in sides}
        for _ in range(gets):
            for side, where in sides.items():
                quiet[side].append(bench.get(where))
        quiet = {side: said(f"quiet, {side}", times) for side, times in quiet.items()}
        print("server quiet: %.1f MB resident, %.1f of it anonymous, %d threads" % status(server.pid))

        half = len(attacks) // 2
        where = (f"10.99.1.1:{PORT}", 100_000, "--from", "10.99.3.2", "--json")
        crowds = [
            bench.start(ATTACK, sys.executable, HERE / "attacks.py", *where, *names, stdout=subprocess.PIPE)
            for names in (attacks[:half], attacks[half:])
            if names
        ]
        latest = [{} for _ in crowds]

        def follow(n):
            for line in crowds[n].stdout:
                latest[n] = json.loads(line)

        for n in range(len(crowds)):
            threading.Thread(target=follow, args=(n,), daemon=True).start()
        time.sleep(15)  # 512 connections at 70 a second, and a while to stand.
        begun, used, (came, _) = time.monotonic(), processor_time(server.pid), at_server()
        before = {k: v for part in latest for k, v in part.items()}
        watched, done = [], threading.Event()

        def watch():
            while not done.wait(0.2):
                watched.append(status(server.pid))

        threading.Thread(target=watch, daemon=True).start()
        loud = {side: [] for side in sides}
        for _ in range(gets):
            for side, space in sides.items():
                loud[side].append(bench.get(space))
        done.set()
        took = time.monotonic() - begun
        after = {k: v for part in latest for k, v in part.items()}
        datagrams, tcp = at_server()
        print(f"\nthe attacks, over {took:.0f} s:")
        for name in attacks:
            now, then = after.get(name, {}), before.get(name, {})
            rates = {k: (v - then.get(k, 0)) / took for k, v in now.items() if k != "standing"}
            per_second = ", ".join(f"{k} {v:.3g}/s" for k, v in rates.items() if v)
            print(f"    {name:13} {now.get('standing', 0):4} connections stand; {per_second}")
        print(f"at the server: {(datagrams - came) / took:.0f} datagrams a second, {tcp} TCP", end=" ")
        print(f"connections, {(processor_time(server.pid) - used) / took:.0%} of a processor")
        names = ("resident MB", "anonymous MB", "threads")
        for name, seen in zip(names, zip(*watched)):
            print(f"    {name}: median {statistics.median(seen):.1f}, at most {max(seen):.1f}")
        is_good = True
        for side, times in loud.items():
            median = said(f"attacked, {side}", times)
            factor, more = GOALS[side]
            goal = factor * quiet[side] + more
            good = median <= goal and all(why is None for _, why in times)
            is_good &= good
            print(f"    {median / quiet[side]:.1f} times the quiet time;", end=" ")
            print(f"at most {goal:.2f} s wanted: {'met' if good else 'NOT MET'}")
        return is_good
    finally:
        bench.stop()
        remove_network()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("narrows", help="the program")
    parser.add_argument("--gets", type=int, default=10, help="gets of either client, quiet and attacked")
    parser.add_argument("--attacks", default="all", help="names of attacks.py, with commas")
    a = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("together.py: network namespaces need root")
    attacks = list(ATTACKS) if a.attacks == "all" else a.attacks.split(",")
    sys.exit(not measure(str(pathlib.Path(a.narrows).resolve()), a.gets, attacks))


if __name__ == "__main__":
    main()

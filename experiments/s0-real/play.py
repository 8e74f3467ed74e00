#!/usr/bin/env python3
"""S0's chapters 5 and 6 with the kernel's TCP over emulated links. As root, from this folder:

    play.py NARROWS [CASE…]     plays the cases (all), several at once, and writes data/CASE-CONTROL-SEED.csv and summary.csv

Within a link it is called as `play.py send …` and `play.py receive …`."""
import csv, os, select, socket, struct, subprocess, sys, time

PORT = 9000
STPD = "nw_s0_stpd"  # narrows kernel load stpd --as nw_s0_stpd
# Link, bytes of a transfer (0: for 30 s), starts of the senders.
SERIAL = {
    "f5.11-115k": ("92.16kbit/s,0ms,queue=21p", [0]),
    "f5.13-38k-80ms": ("30.72kbit/s,80ms,queue=21p", [0]),
    "f5.15-38k-250ms": ("30.72kbit/s,250ms,queue=21p", [0]),
    "f5.20": ("30.72kbit/s,180ms,queue=21p", [0, 20]),
    "f5.23": ("30.72kbit/s,250ms,queue=21p,loss=10%", [0]),
    "f5.24": ("30.72kbit/s,250ms,queue=21p,loss=1%", [0]),
    "f5.25": ("30.72kbit/s,80ms,queue=21p,loss=10%", [0]),
    "f5.26": ("30.72kbit/s,80ms,queue=21p,loss=1%", [0]),
}
# Scenario, and who sends from where from when: S1 is Reno, `each` is Reno or ST-PD.
SHARED = {
    "f6.2a": ("f6.2.toml", [("R1", "reno", 0), ("S2", "each", 5)]),
    "f6.2b": ("f6.2.toml", [("R1", "reno", 0), ("S2", "each", 5), ("R1", "reno", 10)]),
    "f6.3": ("f6.3.toml", [("R1", "reno", 0), ("S2", "each", 5)]),
    "f6.5": ("f6.5.toml", [("R1", "reno", 0), ("S2", "each", 5)]),
}
SEEDS = 3
AT_ONCE = 16


def send(to, control, segment, total, seconds, start, out):
    """Writes the CSV: seconds since the connection began, bytes acknowledged, SRTT, cwnd, segments sent again."""
    time.sleep(start)
    while True:
        s = socket.socket()
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment)
        s.setsockopt(socket.IPPROTO_TCP, 13, control.encode())  # TCP_CONGESTION
        began = time.time()
        if not s.connect_ex((to, PORT)):
            break
        s.close()
        time.sleep(0.05)  # The receiver is not there yet.
    s.setblocking(False)
    left, sampled = total or 1 << 60, 0.0
    end = began + seconds
    # A line at a time: whoever still sends when the first sender ends is ended.
    with open(out, "w", newline="", buffering=1) as f:
        rows = csv.writer(f, lineterminator="\n")
        rows.writerow(["seconds", "acked_bytes", "srtt_ms", "cwnd", "retransmissions"])
        while True:
            now = time.time()
            try:
                left -= s.send(bytes(min(left, 65536)))
            except BlockingIOError:
                pass
            info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
            (rtt,) = struct.unpack_from("I", info, 68)
            (cwnd,) = struct.unpack_from("I", info, 80)
            (again,) = struct.unpack_from("I", info, 100)
            (acked,) = struct.unpack_from("Q", info, 120)
            acked = max(0, acked - 1)  # without SYN
            done = now >= end or (total and acked >= total)
            if done or now - sampled >= 0.1:
                rows.writerow([f"{now - began:.3f}", acked, f"{rtt / 1e3:.1f}", cwnd, again])
                sampled = now
            if done:
                return
            time.sleep(0.01)


def receive():
    server = socket.create_server(("", PORT), backlog=16)
    connections = []
    while True:
        for s in select.select([server, *connections], [], [])[0]:
            if s is server:
                connections.append(server.accept()[0])
            elif not s.recv(65536):
                connections.remove(s)
            else:
                # S0's receiver acknowledges every packet.
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def summary(files):
    """A line for each transfer: when it was done (or what it moved in time), the RTT's median and most, what was sent again."""
    out = []
    for name in sorted(files):
        with open(name) as f:
            rows = [[float(x) for x in row] for row in list(csv.reader(f))[1:]]
        rtts = sorted(r[2] for r in rows if r[1] > 0) or [0.0]
        last = rows[-1]
        case = os.path.basename(name)[:-4]
        out.append([case, f"{last[0]:.2f}", int(last[1]), f"{rtts[len(rtts) // 2]:.1f}", f"{rtts[-1]:.1f}", int(last[4])])
    with open("summary.csv", "w", newline="") as f:
        rows = csv.writer(f, lineterminator="\n")
        rows.writerow(["case", "seconds", "acked_bytes", "srtt_median_ms", "srtt_most_ms", "retransmissions"])
        rows.writerows(out)


def main(narrows, cases):
    os.makedirs("data", exist_ok=True)
    me = os.path.abspath(__file__)
    jobs = []
    for case, (link, starts) in SERIAL.items():
        for control in ("reno", STPD):
            for seed in range(1, (SEEDS if "loss" in link else 1) + 1):
                name = f"{case}-{'reno' if control == 'reno' else 'stpd'}-{seed}"
                # 100 bytes of payload and 12 of timestamps.
                each = [
                    f"python3 {me} send $NARROWS_FAR {control} 112 100000 400 {start} data/{name}{'' if n == 0 else f'-{n + 1}'}.csv"
                    for n, start in enumerate(starts)
                ]
                inside = " & ".join(each) + (" & wait" if len(each) > 1 else "")
                jobs.append((case, ["link", link, "--seed", str(seed), "--quiet", "--far", f"exec python3 {me} receive", "--", "sh", "-c", inside]))
    for case, (file, senders) in SHARED.items():
        for control in ("reno", STPD):
            for seed in range(1, SEEDS + 1):
                name = f"{case}-{'reno' if control == 'reno' else 'stpd'}-{seed}"
                args = ["link", "--scenario", file, "--seed", str(seed), "--quiet", "--at", f"R2=exec python3 {me} receive"]
                for n, (node, own, start) in reversed(list(enumerate(senders))):
                    chosen = control if own == "each" else own
                    out = f"data/{name}-{n + 1}.csv"
                    args += ["--at", f"{node}=exec python3 {me} send R2 {chosen} 960 0 {30 - start} {start} {out}"]
                jobs.append((case, args))
    wanted = [args for case, args in jobs if not cases or case in cases]
    running = []
    while wanted or running:
        while wanted and len(running) < AT_ONCE:
            args = wanted.pop(0)
            running.append((args, subprocess.Popen([narrows, *args])))
        time.sleep(0.2)
        for args, process in running:
            if process.poll():
                print("failed:", process.returncode, args, file=sys.stderr)
        running = [(a, p) for a, p in running if p.poll() is None]
    summary(os.path.join("data", f) for f in os.listdir("data"))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["send", to, control, segment, total, seconds, start, out]:
            send(to, control, int(segment), int(total), float(seconds), float(start), out)
        case ["receive"]:
            receive()
        case [narrows, *cases]:
            main(os.path.abspath(narrows), cases)
        case _:
            sys.exit(__doc__)

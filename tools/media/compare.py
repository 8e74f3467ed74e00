#!/usr/bin/env python3
"""`narrows media` beside SRT in live mode, through the same emulated link, with the same latency.

    python3 tools/media/compare.py target/debug/narrows [--seconds 60] [--links 12M,wifi,i,ii,narrow] [--losses 1%,5%]
                                   [--protocol rrtp] [--only narrows|srt|adaptive] [--seed 1] [--guard 3]

A source sends MPEG-TS with 25 frames a second, each datagram with its number and time; a sink counts what comes out.
Late is a datagram that does not come out. After its time is one that comes out more than 50 ms later than the link's delay
and the latency say. The delays are those of what comes out. `--stop relay:200` stops the link (or the receiver or the
sender) for 200 ms every 5 s, as a busy machine or a radio does; `--stop sender:2000@8` does so once, 8 s after the start.
`adaptive` runs `narrows media` with a source that follows --rate-lines. SRT is Debian's srt-live-transmit (package
srt-tools). Everything is on this machine; `narrows relay` is the link. Uses the standard library alone.
"""

import argparse, contextlib, json, os, signal, socket, struct, subprocess, tempfile, threading, time

# Link, its one-way delay and rate, and what a source sends without knowing of it; for adaptive sources: least and most.
LINKS = {
    "12M": ("12Mbit/s,30ms,queue=500p,reverse-rate=5Mbit/s", 0.030, 12e6, 4e6, 1e6, 8e6),
    "wifi": ("11Mbit/s,5ms,queue=100p", 0.005, 11e6, 4e6, 1e6, 8e6),
    "i": ("20Mbit/s,25ms,queue=125kB", 0.025, 20e6, 4e6, 1e6, 8e6),
    "narrow": ("4Mbit/s,25ms,queue=50kB", 0.025, 4e6, 2e6, 0.5e6, 8e6),
    "far": ("8Mbit/s,75ms,queue=150kB", 0.075, 8e6, 4e6, 1e6, 8e6),
    "ii": ("1.5Mbit/s,250ms,queue=93.75kB", 0.250, 1.5e6, 0.6e6, 0.3e6, 1.2e6),
}
FPS, TS, EACH = 25, 188, 7
TOLERANCE = 0.05


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def datagram(number, stamp, frame, begins):
    """Seven packets of MPEG-TS; the first says number, frame and time."""
    head = bytes([0x47, 0x41 if begins else 0x01, 0x00, 0x10])
    pes = b"\0\0\1\xe0\0\0" if begins else bytes(6)
    said = head + pes + struct.pack("!QQd", number, frame, stamp)
    rest = bytes([0x47, 0x01, 0x00, 0x10]) + b"\xff" * (TS - 4)
    return said + b"\xff" * (TS - len(said)) + rest * (EACH - 1)


class Source(threading.Thread):
    def __init__(self, port, rate, seconds):
        super().__init__(daemon=True)
        self.to, self.rate, self.seconds, self.frames = ("127.0.0.1", port), rate, seconds, {}
        self.sent, self.bytes = {}, 0

    def run(self):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        begun, number, frame, owed = time.monotonic(), 0, 0, 0.0
        while time.monotonic() - begun < self.seconds:
            owed += self.rate / FPS / 8 / (TS * EACH)
            count = max(int(owed), 1)
            owed -= count
            for n in range(count):
                # Spread over half of the frame's time, as encoders with a rate control do.
                at = begun + (frame + 0.5 * n / count) / FPS
                time.sleep(max(0.0, at - time.monotonic()))
                now = time.monotonic()
                sock.sendto(datagram(number, now, frame, n == 0), self.to)
                self.sent[number] = (now, frame)
                number += 1
            frame += 1
        self.lasted = time.monotonic() - begun


class Sink(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.sock.bind(("127.0.0.1", 0))
        self.port, self.came = self.sock.getsockname()[1], {}

    def run(self):
        while True:
            data = self.sock.recv(65536)
            now = time.monotonic()
            for at in range(0, len(data), TS * EACH):
                number, frame, stamp = struct.unpack_from("!QQd", data, at + 10)
                self.came.setdefault(number, now - stamp)


def start(*args, **options):
    return subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options)


def until(process, text):
    for line in process.stdout:
        if text in line:
            return line.strip()
    raise SystemExit(f"{process.args[:3]} ended without '{text}'")


def stop(process):
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=20)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def relay(narrows, to, link, loss, seed):
    spec = f"{link},loss={loss}"
    port = free_port()
    process = start(narrows, "relay", "--json", "--listen", f"127.0.0.1:{port}", "--to", f"127.0.0.1:{to}",
                    "--link", spec, "--seed", str(seed))
    time.sleep(1.0)
    return process, port


def judged(source, sink, latency, delay, guard):
    start_at = min(at for at, _ in source.sent.values())
    begun, end = start_at + guard, start_at + source.lasted - latency - 1.0
    counted = {n: s for n, s in source.sent.items() if begun <= s[0] <= end}
    late = [n for n in counted if n not in sink.came]
    took = sorted(sink.came[n] for n in counted if n in sink.came)
    # What comes out, but after its time: the link's delay, the latency, and what schedulers and timers take.
    delayed = [n for n in counted if sink.came.get(n, 0.0) > latency + delay + TOLERANCE]
    frames, late_frames = {s[1] for s in counted.values()}, {counted[n][1] for n in late}
    pick = lambda share: took[min(len(took) - 1, int(share * len(took)))] * 1e3 if took else float("nan")
    return {
        "packets": len(counted), "late": len(late), "delayed": len(delayed), "late_share": len(late) / max(len(counted), 1),
        "frames": len(frames), "late_frames": len(late_frames), "frame_share": len(late_frames) / max(len(frames), 1),
        "p50_ms": pick(0.5), "p95_ms": pick(0.95), "last_ms": pick(1.0),
        "mbit": len([n for n in counted if n not in set(late)]) * TS * EACH * 8 / (end - begun) / 1e6,
    }


def offered(process):
    """Bytes that entered the link."""
    text = stop(process)
    with contextlib.suppress(ValueError):
        return json.loads(text[text.index("{") :])["there"]["offered_bytes"]


def stops(processes, text, source):
    """Stops a process for so many ms every 5 s, or once."""
    who, _, when = text.partition(":")
    ms, _, once = when.partition("@")

    def run():
        while source.is_alive():
            time.sleep(float(once or 5))
            processes[who].send_signal(signal.SIGSTOP)
            time.sleep(float(ms) / 1e3)
            processes[who].send_signal(signal.SIGCONT)
            if once:
                return
    if text:
        threading.Thread(target=run, daemon=True).start()


def by_narrows(a, link, loss, protocol, adaptive):
    spec, delay, _, rate, least, most = LINKS[link]
    latency = round(a.rtts * 2 * delay + a.extra, 3)
    sink = Sink()
    sink.start()
    with tempfile.TemporaryDirectory() as home:
        env = os.environ | {"HOME": home, "XDG_CONFIG_HOME": home}
        key = subprocess.run([a.narrows, "key"], env=env, capture_output=True, text=True).stdout
        with open(f"{home}/clients", "w") as file:
            file.write(key)
        receiver = start(a.narrows, "media", "receive", "--listen", "127.0.0.1:0", "--clients", f"{home}/clients",
                         "--to", str(sink.port), env=env)
        url = until(receiver, "rrtp://")
        name, at = url.rsplit("@", 1)
        link_process, port = relay(a.narrows, at.rsplit(":", 1)[1], spec, loss, a.seed)
        from_port = free_port()
        sender = start(a.narrows, "media", "send", f"{name}@127.0.0.1:{port}", "--from", str(from_port), "--protocol",
                       protocol, "--latency", f"{round(latency * 1000)}ms", "--rate-lines", "--max-rate",
                       f"{most / 1e6}Mbit/s", "--min-rate", f"{least / 1e6}Mbit/s", *a.hints.split(), env=env)
        first = float(until(sender, "rate ").split()[1])
        source = Source(from_port, first if adaptive else rate, a.seconds)
        changes = []

        def follow():
            for line in sender.stdout:
                changes.append((time.monotonic(), float(line.split()[1])))
                if adaptive:
                    source.rate = changes[-1][1]

        threading.Thread(target=follow, daemon=True).start()
        source.start()
        stops({"receiver": receiver, "relay": link_process, "sender": sender}, a.stop, source)
        source.join()
        time.sleep(latency + 1)
        sender.send_signal(signal.SIGINT)
        result = judged(source, sink, latency, delay, a.guard)
        time.sleep(1)
        result["receiver"] = stop(receiver)
        result["relay"] = offered(link_process)
        sender.kill()
        result["media_bytes"] = len(source.sent) * TS * EACH
        result["changes"] = len(changes)
        return result


def by_srt(a, link, loss):
    spec, delay, _, rate, _, _ = LINKS[link]
    latency = round(a.rtts * 2 * delay + a.extra, 3)
    sink = Sink()
    sink.start()
    to, from_port, ms = free_port(), free_port(), round(latency * 1000)
    receiver = start("srt-live-transmit", "-q", f"srt://127.0.0.1:{to}?mode=listener&latency={ms}",
                     f"udp://127.0.0.1:{sink.port}")
    link_process, port = relay(a.narrows, to, spec, loss, a.seed)
    sender = start("srt-live-transmit", "-q", f"udp://127.0.0.1:{from_port}",
                   f"srt://127.0.0.1:{port}?mode=caller&latency={ms}")
    time.sleep(2)
    source = Source(from_port, rate, a.seconds)
    source.start()
    stops({"receiver": receiver, "relay": link_process, "sender": sender}, a.stop, source)
    source.join()
    time.sleep(latency + 1)
    result = judged(source, sink, latency, delay, a.guard)
    stop(sender), stop(receiver)
    result["relay"] = offered(link_process)
    result["media_bytes"] = len(source.sent) * TS * EACH
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("narrows")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--links", default="12M,wifi,i,ii")
    parser.add_argument("--losses", default="1%,5%")
    parser.add_argument("--protocol", default="rrtp")
    parser.add_argument("--only", default="narrows,srt,adaptive")
    parser.add_argument("--rtts", type=float, default=4, help="the latency in round trips")
    parser.add_argument("--extra", type=float, default=0.1, help="... and so many seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--guard", type=float, default=3, help="seconds at the beginning that do not count")
    parser.add_argument("--hints", default="", help="further options of media send, as '--rate 8Mbit/s --rtt 150ms'")
    parser.add_argument("--stop", default="", metavar="WHO:MS[@S]", help="relay, receiver or sender")
    parser.add_argument("--json", help="append each result to this file")
    a = parser.parse_args()
    a.narrows = os.path.abspath(a.narrows)
    print("| link | loss | what | late packets | after their time | late frames | p50, p95 ms | Mbit/s | bytes on the link per byte |")
    print("|---|---|---|---|---|---|---|---|---|")
    for link in a.links.split(","):
        for loss in a.losses.split(","):
            for what in a.only.split(","):
                run = {"srt": lambda: by_srt(a, link, loss)}.get(
                    what, lambda: by_narrows(a, link, loss, a.protocol, what == "adaptive"))
                r = run()
                offered_bytes = r.pop("relay")
                share = f"{offered_bytes / r['media_bytes']:.3f}" if offered_bytes else "?"
                name = {"srt": "SRT"}.get(what, a.protocol + (", adaptive" if what == "adaptive" else ""))
                print(f"| {link} | {loss} | {name} | {r['late']} of {r['packets']} ({r['late_share']:.3%}) | {r['delayed']} | "
                      f"{r['late_frames']} of {r['frames']} ({r['frame_share']:.2%}) | {r['p50_ms']:.0f}, {r['p95_ms']:.0f} | "
                      f"{r['mbit']:.2f} | {share} |", flush=True)
                if a.json:
                    with open(a.json, "a") as file:
                        file.write(json.dumps({"link": link, "loss": loss, "what": name, "offered_bytes": offered_bytes} | r) + "\n")


if __name__ == "__main__":
    main()

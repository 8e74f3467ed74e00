# SPDX-License-Identifier: MIT OR Apache-2.0
"""Authentic packets whose fields have the largest and oddest values that the format permits.

    python3 extremes.py PORT PID [SECONDS for each, 10] [NAME]...      (all)

PID is the server's process, on this machine; its folder must hold `big`, a large file. One line for each
attack: what it sent, the server's processor time and memory meanwhile, and how its connections ended. `new-path`
and `moves` are measured as in liar.py, behind a link of 1 Mbit/s that is played here.
"""

import os
import random
import struct
import sys
import time

from rrtp import GET, LIST, Connection, Link, request, run, tune, varint
from together import processor_time, status

BIG = (1 << 62) - 1
ODD = (0, 1, 2, 63, 64, 255, 1023, 1024, 16383, 16384, 65535, 1 << 30, (1 << 31) - 1, 1 << 32, 1 << 61, BIG)
odd = lambda: varint(random.choice(ODD))
extension = lambda kind, value: bytes([kind, len(value)]) + value


def numbers(c):
    """Packet numbers that leap, and claims that all below was left out or does not count."""
    c.next += random.choice((1, 2, 3, 1000, 1 << 20, (1 << 31) - 2))
    kind = random.choice((0x43, 0x45))
    c.send(b"\x01" + extension(kind, varint(random.choice((1, 2, 1000, 1 << 20, 1 << 40, c.next, BIG)))))
    if c.next > 1 << 60:
        c.closed = ("done", "")


def holes(c):
    """Every other number left out, so that each report has as many runs as it can."""
    for _ in range(40):
        c.next += 1
        c.send(b"\x01")


def reports(c):
    """Reports of one packet with odd times and marks, 50 in a packet."""
    if not c.seen:
        return
    n = c.highest
    head = lambda m: bytes([2, 4 if m else 0]) + varint(n) + struct.pack(">I", random.getrandbits(32))
    frame = lambda m: head(m) + odd() + (odd() if m else b"") + bytes([c.nonces[n], 1, 0, 0])
    for _ in range(4):
        c.send(b"".join(frame(random.random() < 0.5) for _ in range(50)))


def blocked(c):
    """Claims to wait, which are answered at once by larger windows."""
    if c.next_stream == 0:
        c.stream(request(GET, "big"))
    for _ in range(10):
        c.send(b"".join(b"\x0a" + odd() + b"\x0b\0" + odd() + b"\x0c" + odd() + b"\x0d" + odd() for _ in range(40)))


def windows(c):
    """Windows that rise by a byte, a thousand times a second, and unread answers."""
    if c.next_stream == 0:
        c.window = 1 << 20
        for _ in range(100):
            c.stream(request(GET, "big"))
    frames = b""
    for _ in range(60):
        c.window += 1
        sid = varint(4 * random.randrange(100))
        frames += b"\x06" + varint(c.window) + b"\x07" + sid + varint(c.window)
    c.send(frames)


def stops(c):
    """Requests that are stopped before their answer, for ever new ones."""
    frames = b""
    ask = request(GET, "big")
    while c.next_stream // 4 < c.streams_granted and len(frames) < 1000:
        sid, c.next_stream = varint(c.next_stream), c.next_stream + 4
        frames += b"\xe7" + sid + varint(len(ask)) + ask + b"\x13" + sid + odd()
    if frames:
        c.send(frames)


def keys(c):
    """A new key as often as it may be: 1024 numbers."""
    for _ in range(30):
        c.send(b"\x01")
    if c.acked >= 0 and c.next - getattr(c, "since", 0) > 1100 and c.acked > getattr(c, "since", 0):
        c.since = c.next
        c.out.update()


def frames_at_random(c):
    """Any frames with any values; flow control and states are broken soon, and it begins again."""
    kinds = (0, 1, 6, 7, 8, 9, 0xA, 0xB, 0xC, 0xD, 0x12, 0x13, 0x43, 0x44, 0x45, 0x7F, 5, 3)
    for _ in range(5):
        frames = b""
        for _ in range(20):
            kind = random.choice(kinds)
            values = {0: 0, 1: 0, 7: 2, 0xB: 2, 0x12: 3, 0x13: 2}.get(kind, 1)
            if kind >= 0x40:
                frames += extension(kind, odd())
            elif kind in (5, 3):
                frames += bytes([kind, 9]) + os.urandom(9)
            else:
                frames += bytes([kind]) + b"".join(odd() for _ in range(values))
        c.send(frames)


def messages(c):
    """Unread messages, empty and full ones."""
    for _ in range(20):
        c.send(b"\x05\0" * 200)
        c.send(b"\x04" + bytes(1100))


def lists(c):
    """Requests without end on one stream, none of whose answers is read."""
    if c.next_stream == 0:
        c.sid = c.stream(request(LIST))
        c.at = len(request(LIST))
    data = request(LIST) * 100
    if c.at + len(data) < min(c.granted, 1 << 20):
        c.stream(data, sid=c.sid, offset=c.at)
        c.at += len(data)


def runs(c):
    """Reports of every other packet, as many runs as they may have, ten in a packet and a thousand a second."""
    if c.next_stream == 0:
        c.stream(request(GET, "big"))
    some = sorted(n for n in c.seen if n >= c.floor)[-64::2]
    if not some:
        return
    for _ in range(2):
        c.send(b"".join(c.report(some) for _ in range(10)))


def streams(c):
    """STREAM, RESET_STREAM and STOP with odd ids, offsets, lengths and ends; it begins again when that is found out."""
    ids = lambda: random.choice((*range(12), *range(12), 508, 512, 1 << 20, BIG))
    for _ in range(4):
        frames = b""
        for _ in range(20):
            sid, offset = varint(ids()), random.choice((0, 0, 1, 2, 100, 1000, 1 << 16, 1 << 32, BIG))
            data = os.urandom(random.choice((0, 0, 1, 1, 9)))
            fin = random.choice((0, 0, 0, 0x40))
            place = struct.pack(">Q", offset)
            frames += bytes([0x80 | 0x38 | 7 | fin]) + sid + place + varint(len(data)) + data
            if random.random() < 0.1:
                frames += b"\x12" + sid + odd() + odd() + b"\x13" + varint(ids()) + odd()
        c.send(frames)


ATTACKS = {
    f.__name__.replace("_", "-"): f
    for f in (numbers, holes, reports, blocked, windows, stops, keys, frames_at_random, messages, lists, runs, streams)
}
# Controllers that a client may name, with values at the ends of their ranges, or that are none.
NAMES = (
    "rrtp", "vegas(alpha=1,beta=1000000)", "rrtp+cubic(beta=0.000001)", "rrtp+cubic(c=1e300)", "tfrc", "stpd",
    "rrtp+westwood", "rrtp+bbr", "rrtp(" + "(" * 100, "rrtp+" * 25, "x" * 128, "rrtp+reno(window=1e18)",
    "rrtp(rate=1Tbit/s)", "rrtp(rate=1bit/s)", "rrtp+fixed(rate=1Tbit/s)", "tear-reliable", "rrtp-lasthop",
)


def attacked(port, pid, name, act, seconds, **options):
    """Sixteen connections, again as they end."""
    connections, ends, opened, sent = [], {}, 0, 0
    used, (before, _, _), most = processor_time(pid), status(pid), 0

    def each(now):
        nonlocal opened, sent, most
        for c in [c for c in connections if c.closed or now - c.began > 12 and not c.is_live()]:
            end = c.closed[0] if c.closed else "no answer"
            ends[end] = ends.get(end, 0) + 1
            sent += c.bytes_out
            c.forget()
            c.port.sock.close()
            connections.remove(c)
        while len(connections) < 16:
            source = f"127.0.{1 + opened // 250 % 250}.{1 + opened % 250}"
            chosen = {k: v() for k, v in options.items()}
            connections.append(Connection(("127.0.0.1", port), source, **chosen))
            opened += 1
        for c in connections:
            if c.is_live():
                act(c)
        most = max(most, status(pid)[0])

    begun = time.monotonic()
    run(connections, seconds, each)
    took = time.monotonic() - begun
    sent += sum(c.bytes_out for c in connections)
    for c in connections:
        c.close()
        c.port.sock.close()
    print(f"{name:18} {opened:5} opened, {sent / took / 1e6:6.2f} MB/s sent, processor", end=" ")
    print(f"{(processor_time(pid) - used) / took:4.0%}, resident {before:.1f} MB, at most {most:.1f},", end=" ")
    print(f"ends {ends}", flush=True)


def new_path(c, now, count):
    c.send(b"\x01" + extension(0x44, varint(count)))


def moves(c, now, count):
    c.move(f"127.0.{60 + count // 250}.{1 + count % 250}")
    c.send(b"\x01")


def driven(port, name, act, every, seconds):
    """What is sent to a client that claims another path every so often."""
    rate, window = 1e6, 1.2
    link = Link(rate, 0.02, rate * 0.04)
    c = Connection(("127.0.0.1", port), "127.0.0.9", link=link, limits=(1 << 40, 1 << 40, 1000, 1000))
    c.stream(tune(10**12, 40_000_000, 0) + request(GET, "big"))
    count, due = 0, time.monotonic() + 1

    def each(now):
        nonlocal count, due
        if c.state == "open" and now > due and not c.closed:
            count, due = count + 1, now + every
            act(c, now, count)

    run([c], seconds, each)
    begun, end = c.arrivals[0][0], c.arrivals[-1][0]
    shares, at = [], begun + 2 * window
    while at < end:
        shares.append(sum(n for t, n in c.arrivals if at - window < t <= at) / (rate / 8 * window))
        at += 0.25
    print(f"{name:18} every {every} s: {count} times, sent/carried most {max(shares, default=0):.2f},", end=" ")
    print(f"mean {sum(shares) / max(1, len(shares)):.2f}, closed {c.closed}", flush=True)


def main():
    port, pid = int(sys.argv[1]), int(sys.argv[2])
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 10
    names = sys.argv[4:] or [*ATTACKS, "controllers", "new-path", "moves"]
    for name in names:
        if name == "controllers":
            label = lambda: random.choice(NAMES).encode()[:128]
            start = lambda c: c.next_stream or c.stream(request(GET, "big"))
            attacked(port, pid, name, start, seconds, controller=label)
        elif name in ("new-path", "moves"):
            for every in (0.01, 0.3, 1.1):
                driven(port, name, new_path if name == "new-path" else moves, every, seconds)
        else:
            attacked(port, pid, name, ATTACKS[name], seconds)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many connections that hold places and move little. Arguments: the port, the attack, seconds, its share of 10 Mbit/s (10: a tenth), for `moving` addresses. SRC=ADDRESS: all from there."""

import sys
from rrtp import *
import random

S = ("127.0.0.1", int(sys.argv.pop(1)))
which = sys.argv[1]
secs = float(sys.argv[2])
RATE = 10e6 / 8 / float(sys.argv[3])  # share of 10 Mbit/s
cs = []
tokens = [0.0, time.monotonic()]


def allow(n):
    now = time.monotonic()
    tokens[0] = min(20000, tokens[0] + (now - tokens[1]) * RATE)
    tokens[1] = now
    if tokens[0] < n:
        return False
    tokens[0] -= n
    return True


OV = os.environ.get("SRC")


def spawn(src, **k):
    src = OV or src
    c = Connection(S, src, **k)
    c.n = 0
    cs.append(c)
    return c


def live(c):
    return c.state in ("open", "finishing") and not c.closed


def reap(src, want, **k):
    for i, c in enumerate(cs):
        if c.closed or (c.state != "open" and time.monotonic() - c.began > 12):
            c.sock.close()
            cs.remove(c)
    while len(cs) < want and allow(1600):
        spawn(src, **k)


if which == "conns":

    def each(now):
        reap("127.0.1.1", 512, reports=None)
        for c in random.sample(cs, min(8, len(cs))):
            if live(c) and allow(60):
                c.send(b"\x01")

elif which == "moving":  # each moves 8 kB in 10 s
    srcs = sys.argv[4].split(",")

    def each(now):
        dead = [c for c in cs if c.closed or (c.state != "open" and now - c.began > 12)]
        for c in dead:
            c.sock.close()
            cs.remove(c)
        for s in srcs:
            k = sum(1 for c in cs if c.src == s)
            if k < 256 and allow(1600):
                spawn(s).src = s
        for c in cs:
            if live(c) and now - getattr(c, "last", 0) > 9 / 8 and allow(1300):
                c.last = now
                c.stream(request(LIST, "x" * 1000), fin=True)  # 1 kB each second of stream bytes
                c.send(b"\x06" + varint(1 << 40))

elif which == "streams":

    def each(now):
        reap("127.0.1.2", 9, reports=None)
        for c in cs:
            if live(c) and c.n < 128 and allow(60):
                c.n += 1
                c.stream(b"N")

elif which == "false":

    def each(now):
        reap("127.0.1.3", 1)
        for c in cs:
            if live(c) and c.n < 20 and allow(200):
                c.n += 1
                c.stream(
                    request(GET, "big", struct.pack(">Q", 10**8 + random.randrange(10**8)) + os.urandom(32))
                )
            if c.n == 20 and now - c.began > 5:
                c.close()
                c.closed = (0, "")

elif which == "reset":

    def each(now):
        reap("127.0.1.4", 1)
        for c in cs:
            k = 0
            while live(c) and k < 40 and allow(80):
                k += 1
                sid = c.next_stream
                c.next_stream += 4
                kind = bytes([0x80 | 7 | 0x20]) + varint(sid) + varint(1) + b"N"
                c.send(kind + b"\x12" + varint(sid) + b"\x00" + varint(1))

elif which == "window":

    def each(now):
        reap("127.0.1.5", 16, reports=None)
        for c in cs:
            if live(c) and c.n < 100 and allow(70):
                w = read_varint(c.peer[4], 0)[0]
                c.n += 1
                c.stream(b"x", offset=w // 100 * 0 + min(w, read_varint(c.peer[3], 0)[0] // 100) - 1)

elif which == "tune":

    def each(now):
        reap("127.0.1.6", 4)
        for c in cs:
            if live(c) and allow(900):
                c.n += 1
                c.stream(
                    tune(
                        random.choice((1, 10**12, 10**18)),
                        random.choice((1, 10**9, 10**15)),
                        random.randrange(10**9),
                    )
                    * 18,
                    fin=True,
                )

elif which == "starts":
    n = [0]

    def each(now):
        for c in list(cs):
            if c.state == "finishing" or c.closed or now - c.began > 2:
                c.sock.close()
                cs.remove(c)
        k = 0
        while k < 2 and len(cs) < 300 and allow(250):
            k += 1
            n[0] += 1
            c = spawn("127.0.2.%d" % (n[0] % 9 + 1), reports=None)
            c.retry_ = 1

elif which == "tcp":
    socks = []

    def each(now):
        if len(socks) < 512 and allow(300):
            s = socket.socket()
            s.bind((OV or "127.0.1.7", 0))
            s.setblocking(False)
            try:
                s.connect(S)
            except BlockingIOError:
                pass
            socks.append(s)
        for s in list(socks):
            try:
                d = s.recv(100)
                if d == b"":
                    s.close()
                    socks.remove(s)
                elif len(sys.argv) > 4:
                    s.send(b"\0\x20" + b"x" * 10)
            except BlockingIOError:
                if not hasattr(s, "x") and len(sys.argv) > 4:
                    try:
                        s.send(b"NRWT\1\1")
                    except OSError:
                        pass
            except OSError:
                s.close()
                socks.remove(s)

elif which == "slow":  # readers that read a large file at a trickle: flow windows open a byte at a time

    def each(now):
        reap("127.0.1.8", 64, limits=(4096, 4096, 0, 0))
        for c in cs:
            if live(c) and c.n == 0 and allow(100):
                c.n = 4096
                c.stream(request(GET, "big"), fin=True)
            elif live(c) and now - getattr(c, "t", 0) > 1 and allow(60):
                c.t = now
                c.n += 1
                c.send(b"\x06" + varint(c.n) + b"\x07\x00" + varint(c.n))


run(cs, secs, each)
st = {}
for c in cs:
    x = (c.state, str(c.closed), str(getattr(c, "fault", ""))[:40])
    st[x] = st.get(x, 0) + 1
print(which, len(cs), st, "in", sum(c.bytes_in for c in cs), "out", sum(c.bytes_out for c in cs), flush=True)

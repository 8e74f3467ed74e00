# SPDX-License-Identifier: MIT OR Apache-2.0
"""Bytes from the server per byte of a client that proves or acknowledges nothing. Arguments: the port; /big must be a large file."""

import sys
from rrtp import *

S = ("127.0.0.1", int(sys.argv[1]))


def ratio(name, c, secs, each=None):
    log = []
    worst = [0]

    def e(now):
        r = c.bytes_in / max(1, c.bytes_out)
        worst[0] = max(worst[0], r)
        if each:
            each(now)

    run([c], secs, e, until=lambda: False)
    e(0)
    print(
        f"{name:36} in {c.bytes_in} out {c.bytes_out} ratio {c.bytes_in/c.bytes_out:.2f} worst {worst[0]:.2f} closed {c.closed} {c.state}",
        flush=True,
    )


# before validation: SYNs and STARTs only
c = Connection(S, "127.0.0.3", reports=None)
c.on_long = lambda d: None
ratio("SYN only", c, 2)


class HalfOpen(Connection):
    def on_long(self, d):
        if d[0] == 0x84:
            return
        super().on_long(d)


c = HalfOpen(S, "127.0.0.4", reports=None)
ratio("START repeated, START-ECHO ignored", c, 4, lambda now: c.retry())


def noack(name, secs, do, **k):
    c = Connection(S, "127.0.0.5", reports=None, **k)
    c.n = 0
    ratio(name, c, secs, lambda now: do(c))


def once(c):
    if c.n == 0:
        c.n = 1
        c.stream(request(GET, "big"))


noack("one GET, silent", 15, once)


def many(c):
    if c.state in ("open", "finishing") and c.n < 100:
        c.n += 1
        c.stream(request(GET, "big"))


noack("100 GETs", 10, many)


def pings(c):
    if c.state in ("open", "finishing"):
        if not c.n:
            c.n = 1
            c.stream(request(GET, "big"))
        c.send(b"\x01")


noack("GET, PING each 10 ms", 10, pings)


def pc(c):
    if c.state in ("open", "finishing"):
        if not c.n:
            c.n = 1
            c.stream(request(GET, "big"))
        c.send(b"\x10" + os.urandom(8))
        c.send((b"\x10" + os.urandom(8)) * 3)


noack("GET, PATH_CHALLENGE floods", 10, pc)


def tunes(c):
    if c.state in ("open", "finishing"):
        if not c.n:
            c.n = 1
            c.stream(request(GET, "big"))
        c.n += 1
        if c.n % 4 == 0 and c.n < 1000:
            c.stream(tune(10**12, 1, 0) * 3)


noack("GET, TUNE storm 1 Tbit/s", 10, tunes)


def mv(c):
    if c.state in ("open", "finishing"):
        if not c.n:
            c.n = 1
            c.stream(request(GET, "big"))
        c.n += 1
        if c.n % 10 == 0:
            c.bind("127.0.0.%d" % (5 + c.n // 10 % 100))
            c.send(b"\x01")


# moved: socket changes, run must see the new one
noack("GET, moving each 0.1 s", 10, mv)

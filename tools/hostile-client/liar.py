# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is sent to a client that lies in its reports, behind a link of 1 Mbit/s that the client plays itself. Arguments: the port; /big must be a large file."""

import sys
from rrtp import *

S = ("127.0.0.1", int(sys.argv[1]))


def windows(arr, t0, t1, w):
    # bytes in the densest window of w that ends within t0..t1
    best = 0
    i = 0
    s = 0
    for j, (t, n) in enumerate(arr):
        s += n
        while arr[i][0] <= t - w:
            s -= arr[i][1]
            i += 1
        if t0 <= t <= t1:
            best = max(best, s)
    return best


def liar(name, rate, delay, mode, src, controller=b"", secs=12, hello=None, queue=40000):
    link = Link(rate, delay, queue)
    c = Connection(S, src, reports=None, link=link, controller=controller)
    c.stream(b"".join([tune(10**12, int(2e9 * delay) + 1, 0)]) + request(GET, "big"))
    st = {"n": 0}

    def each(now):
        if c.state not in ("open",) or not c.seen:
            return
        hi = c.highest
        if st["n"] == c.packets_in:
            return
        st["n"] = c.packets_in
        lo = max(0, hi - 3000)
        if mode == "honest":
            c.send(c.report())
        elif mode == "conceal":
            c.send(c.report([x for x in range(lo, hi + 1) if x not in c.skipped]))
        elif mode == "lone":
            s = set(c.seen)
            l = sorted(s)[-3000:]
            s2 = set(l)
            for x in l:
                if x + 2 in s and x + 1 not in c.skipped:
                    s2.add(x + 1)
            c.seen = list(s2)
            c.send(c.report(list(s2)))
        elif mode == "radio":
            numbers = sorted(set(c.seen), reverse=True)
            c.send(c.report(delay=10**6))
        elif mode == "ahead":  # beyond what came
            c.send(c.report(list(range(lo, hi + 20))))
        elif mode == "advice":
            c.send(c.report(advice=b"\xff" * 16))
        elif mode == "echo":
            c.echo = (int(time.monotonic() * 1e6)) & 0x3FFFFFFF
            c.send(c.report(delay=2**40))
        elif mode == "burst":  # acks only every second
            if now - st.get("t", 0) > 1:
                st["t"] = now
                c.send(c.report())

    run([c], secs, each, until=lambda: c.closed and not link.waiting)
    if not c.arrivals:
        print(name, "nothing")
        return
    w = max(1, 3 * 2 * delay + 3 * queue * 8 / rate)
    t0 = c.arrivals[0][0]
    end = c.arrivals[-1][0]
    worst = 0
    at = 0
    sent = c.arrivals
    import bisect

    out = []
    t = t0 + w
    while t < end:
        b = sum(n for x, n in sent if t - w < x <= t)
        out.append(b / (rate / 8 * w))
        t += 0.25
    print(
        f"{name:26} sent/capacity per {w:.1f} s: "
        + " ".join(f"{x:.1f}" for x in out[:: max(1, len(out) // 12)])
        + f"  max {max(out,default=0):.2f} closed {c.closed} after {end-t0:.1f} s, total {sum(n for _,n in sent)}, dropped {link.dropped}",
        flush=True,
    )


import threading

jobs = []
i = 20
for rate, delay in ((1e6, 0.02),):
    for mode in ("honest", "conceal", "lone", "ahead", "advice", "echo", "burst", "radio"):
        i += 1
        jobs.append((f"{mode} {rate/1e6:g}M", rate, delay, mode, f"127.0.0.{i}"))
    for ctl in (b"rrtp", b"vegas", b"stpd", b"rrtp+cubic", b"rrtp+bbr", b"tfrc"):
        for mode in ("conceal", "lone", "advice"):
            i += 1
            jobs.append((f"{mode} {ctl.decode()}", rate, delay, mode, f"127.0.0.{i}", ctl))
import os

# four processes at a time would disturb the clock; two
procs = []
for j in jobs:
    pid = os.fork()
    if pid == 0:
        try:
            liar(*j)
        except Exception as e:
            print(j[0], "fault", repr(e))
        os._exit(0)
    procs.append(pid)
    if len(procs) >= 4:
        os.waitpid(procs.pop(0), 0)
for p in procs:
    os.waitpid(p, 0)

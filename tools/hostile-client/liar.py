# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is sent to a client that lies in its reports, behind a bottleneck that the client plays itself.

    python3 liar.py PORT [RATE in Mbit/s]...       (1)

The server's folder must hold `big`, a large file. One line for each lie and controller: what the server sent,
of what the link carries, in windows of the longer of 1 s and three round trips with their queue; and the most of it
without the first 64 packets, an initial window and a train of probes. If that is more than twice what the link
carries, it ends with 1.
"""

import os
import sys

from rrtp import GET, Connection, Link, request, run, tune

SECONDS, DELAY = 12, 0.02


def honest(c, now):
    return c.report()


def conceal(c, now):
    """All losses arrived, but for the numbers that are known to be left out."""
    lowest = max(0, c.highest - 3000)
    return c.report([n for n in range(lowest, c.highest + 1) if n not in c.skipped])


def lone(c, now):
    """Losses between two arrivals arrived."""
    seen = set(c.seen)
    for n in sorted(seen)[-3000:]:
        if n + 2 in seen and n + 1 not in c.skipped:
            seen.add(n + 1)
    c.seen = list(seen)
    return c.report(sorted(seen)[-3000:])


def ahead(c, now):
    """What has not yet come arrived."""
    return c.report(range(max(0, c.highest - 3000), c.highest + 20))


def feedback(c, now):
    return c.report(feedback=b"\xff" * 16)


def delay(c, now):
    """All of the round trip was this end's delay."""
    return c.report(delay=10**6)


def echo(c, now):
    """No time has passed."""
    c.echo = int(now * 1e6) & 0x3FFFFFFF
    return c.report(delay=2**40)


def marks(c, now):
    """No queue ever, all packets marked, by turns."""
    return c.report(marks=c.packets_in if int(now) % 2 else 0)


def burst(c, now):
    """Acknowledgements once a second."""
    if now - getattr(c, "reported", 0) > 1:
        c.reported = now
        return c.report()
    return None


LIES = (honest, conceal, lone, ahead, feedback, delay, echo, marks, burst)
CONTROLLERS = (b"rrtp", b"vegas", b"stpd", b"rrtp+cubic", b"rrtp+bbr", b"tfrc")


def measure(port, rate, lie, source, controller):
    queue = rate * 0.04  # bytes: 0.32 s
    link = Link(rate, DELAY, queue)
    c = Connection(("127.0.0.1", port), source, reports=None, link=link, controller=controller)
    c.stream(tune(10**12, int(2e9 * DELAY) + 1, 0) + request(GET, "big"))
    reported = 0

    def each(now):
        nonlocal reported
        if c.state == "open" and c.seen and c.packets_in > reported:
            reported = c.packets_in
            report = lie(c, now)
            if report:
                c.send(report)

    run([c], SECONDS, each, until=lambda: c.closed and not link.waiting)
    name = f"{lie.__name__} {controller.decode()} {rate / 1e6:g} Mbit/s"
    window = max(1, 3 * 2 * DELAY + 3 * queue * 8 / rate)
    begun, end = c.arrivals[0][0], c.arrivals[-1][0]

    def windows(arrivals):
        shares, at = [], begun + window
        while at < max(end, begun + window) + 0.25:
            sent = sum(n for t, n in arrivals if at - window < t <= at)
            shares.append(sent / (rate / 8 * window))
            at += 0.25
        return shares

    # Handshake packets are among the first.
    shares, beyond = windows(c.arrivals), max(windows(c.arrivals[66:]))
    listed = " ".join(f"{x:.1f}" for x in shares[:: max(1, len(shares) // 12)])
    print(f"{name:32} sent/carried per {window:.1f} s: {listed}  most {max(shares):.2f}, {beyond:.2f} without the first", end=" ")
    print(f"closed {c.closed} after {end - begun:.1f} s, sent {sum(n for _, n in c.arrivals)}", flush=True)
    return beyond <= 2


def main():
    port, rates = int(sys.argv[1]), [float(r) * 1e6 for r in sys.argv[2:]] or [1e6]
    jobs = [(rate, lie, controller) for rate in rates for controller in CONTROLLERS for lie in LIES]
    running, good = [], True
    for n, (rate, lie, controller) in enumerate(jobs):
        pid = os.fork()
        if pid == 0:
            good = False
            try:
                good = measure(port, rate, lie, f"127.0.{1 + n // 200}.{1 + n % 200}", controller)
            except Exception as fault:
                print(lie.__name__, controller.decode(), repr(fault))
            os._exit(not good)
        running.append(pid)
        # More at a time would disturb each other's clock.
        if len(running) >= 4:
            good &= os.waitpid(running.pop(0), 0)[1] == 0
    good &= all([os.waitpid(pid, 0)[1] == 0 for pid in running])
    sys.exit(not good)


if __name__ == "__main__":
    main()

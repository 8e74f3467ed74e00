# SPDX-License-Identifier: MIT OR Apache-2.0
"""Bytes from the server for each byte of a client that proves or acknowledges nothing.

    python3 amplification.py PORT

The server's folder must hold `big`, a large file.
"""

import os
import sys

from rrtp import GET, Connection, request, run, tune


def measured(name, connection, seconds, each=None):
    """Serves the connection and prints the ratio: at the end, and the worst at any time."""
    worst = 0

    def step(now):
        nonlocal worst
        worst = max(worst, connection.bytes_in / max(1, connection.bytes_out))
        if each:
            each(connection)

    run([connection], seconds, step)
    came, left = connection.bytes_in, connection.bytes_out
    print(f"{name:36} in {came} out {left} ratio {came / left:.2f} worst {worst:.2f}", end=" ")
    print(f"closed {connection.closed} {connection.state}", flush=True)


def silent(name, seconds, act):
    """A client that opens a connection, asks for `big` and reports nothing; then `act`s every 10 ms."""

    def each(c):
        if not c.is_live():
            return
        if not hasattr(c, "steps"):
            c.steps = 0
            c.stream(request(GET, "big"))
        c.steps += 1
        act(c)

    measured(name, Connection(SERVER, "127.0.0.5", reports=None), seconds, each)


def challenges(c):
    c.send(b"\x10" + os.urandom(8))
    c.send((b"\x10" + os.urandom(8)) * 3)


SERVER = ("127.0.0.1", int(sys.argv[1]))

# Before the address is validated.
asking = Connection(SERVER, "127.0.0.3", reports=None)
asking.on_long = lambda data: None
measured("SYN only", asking, 2)
half_open = Connection(SERVER, "127.0.0.4", reports=None, finishes=False)
measured("START repeated, START-ECHO ignored", half_open, 4, lambda c: c.retry())

# After it, over the connection's life.
silent("one GET, silent", 15, lambda c: None)
silent("100 GETs", 10, lambda c: c.steps < 100 and c.stream(request(GET, "big")))
silent("GET, PING each 10 ms", 10, lambda c: c.send(b"\x01"))
silent("GET, PATH_CHALLENGE floods", 10, challenges)
silent("GET, TUNE storm 1 Tbit/s", 10, lambda c: c.steps % 4 == 0 and c.stream(tune(10**12, 1, 0) * 3))


def moves(c):
    if c.steps % 10 == 0:
        c.move(f"127.0.0.{5 + c.steps // 10 % 100}")
        c.send(b"\x01")


silent("GET, moving each 0.1 s", 10, moves)

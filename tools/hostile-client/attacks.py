# SPDX-License-Identifier: MIT OR Apache-2.0
"""Attacks on a server that serves everybody, each at the rate that is written in its class.

    python3 attacks.py HOST:PORT SECONDS [--from ADDRESS] [--json] NAME...     (all: every one of them)

Several run side by side in one process. Every second each says how it stands (connections that the server
holds, what it sent): `--json` as a line of JSON. The server's folder must hold `big`, a large file.
"""

import argparse
import errno
import json
import os
import random
import socket
import struct
import time

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from rrtp import (
    GET, LIST, PUT, Connection, Noise, Port, bind, read_varint, request, run, tune, varint,
)

TCP_ESTABLISHED = 1


class Attack:
    """`step` is called every 10 ms. `rate` bounds what begins in a second."""

    rate = 70
    want = 1  # connections at a time
    options = {}

    def __init__(self, server, source):
        self.server, self.source = server, source
        self.connections, self.counts = [], {}
        self.tokens, self.last = 0.0, time.monotonic()
        self.prepare()

    def prepare(self):
        """What it needs before its first step."""

    def count(self, what, n=1):
        self.counts[what] = self.counts.get(what, 0) + n

    def allowed(self):
        """Whether one more thing may begin now."""
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def connect(self, **options):
        connection = Connection(self.server, self.source, **{**self.options, **options})
        connection.used = 0
        self.connections.append(connection)
        self.count("opened")
        return connection

    def tick(self, now):
        self.tokens = min(self.rate * 0.2 + 1, self.tokens + (now - self.last) * self.rate)
        self.last = now
        for c in [c for c in self.connections if self.is_over(c, now)]:
            self.count(f"ended: {c.closed[0] if c.closed else 'no answer'}")
            c.forget()
            if not c.port.open and not c.port.opening:
                c.port.sock.close()
            self.connections.remove(c)
        while len(self.connections) < self.want and self.allowed():
            self.connect()
        self.step(now)

    def is_over(self, c, now):
        return c.closed or (c.state != "open" and now - c.began > 12)

    def step(self, now):
        for c in self.connections:
            if c.is_live():
                self.act(c, now)

    def act(self, c, now):
        """Done with every live connection every 10 ms."""

    def standing(self):
        """Connections that the server holds, as far as this end knows."""
        return sum(c.is_live() for c in self.connections)


class Idle(Attack):
    """512 connections from one address and port within 7.3 s, and again as they end."""

    want = 512

    def prepare(self):
        self.port = Port(self.server, self.source)
        self.options = {"reports": None, "port": self.port}


class Moving(Attack):
    """256 connections that each move a little: 1 kB a second."""

    want = 256

    def act(self, c, now):
        if now - c.used > 9 / 8:
            c.used = now
            c.stream(request(LIST, "x" * 1000), fin=True)
            c.send(b"\x06" + varint(1 << 40))


class OneByteRequests(Attack):
    """9 connections with 128 streams each, of one byte of a request."""

    want = 9
    options = {"reports": None}

    def act(self, c, now):
        for _ in range(4):
            if c.used < 128:
                c.used += 1
                c.stream(b"N")
                self.count("streams")


class HalfOpen(Attack):
    """150 STARTs a second from 9 addresses (.2 to .10 of the source's /24), none of them finished."""

    rate, want = 150, 600
    options = {"finishes": False}

    def connect(self):
        n = self.counts.get("opened", 0) % 9 + 2
        connection = super().connect()
        connection.move(self.source.rsplit(".", 1)[0] + f".{n}")
        connection.retry()

    def is_over(self, c, now):
        if c.state == "half open" and not c.used:
            c.used = 1
            self.count("half open")
        return c.state == "half open" or now - c.began > 2

    def standing(self):
        return 0


class WindowsEnd(Attack):
    """The last byte of what flow control permits, again whenever it permits more, on 16 connections."""

    want = 16

    def act(self, c, now):
        if c.used < c.granted:
            window = read_varint(c.peer[4], 0)[0]
            at = min(c.granted - c.used, window)
            c.used += at
            c.stream(b"x", offset=at - 1)
            self.count("bytes ahead", at)


class Unread(Attack):
    """10 kB of requests with unacknowledged answers: 100 GETs of a large file on each of 3 connections."""

    want = 3
    options = {"reports": None}

    def act(self, c, now):
        while c.used < 100:
            c.used += 1
            c.stream(request(GET, "big"))
            self.count("requests")


class FalseHeld(Attack):
    """20 GETs that claim to hold some 200 MB, again every 5 s."""

    def act(self, c, now):
        while c.used < 20:
            c.used += 1
            held = 10**8 + random.randrange(10**8)
            c.stream(request(GET, "big", struct.pack(">Q", held) + os.urandom(32)))
            self.count("claims")
        if now - c.began > 5:
            c.close()
            c.closed = ("done", "")


class Resets(Attack):
    """4,000 streams a second that are opened and reset at once, 40 in a packet."""

    rate = 100

    def act(self, c, now):
        while c.next_stream // 4 + 40 <= c.streams_granted and self.allowed():
            frames = b""
            for _ in range(40):
                sid, c.next_stream = c.next_stream, c.next_stream + 4
                frames += bytes([0x80 | 7 | 0x20]) + varint(sid) + varint(1) + b"N"
                frames += b"\x12" + varint(sid) + b"\x00" + varint(1)
            c.send(frames)
            self.count("resets", 40)


class Tune(Attack):
    """TUNE with 1 Tbit/s, 60 s, loss 0.999 and 20 GETs, no reports, and TUNE again ten times a second."""

    want = 4
    options = {"reports": None}

    def act(self, c, now):
        if c.used == 0:
            c.stream(tune(10**12, 60 * 10**9, 999 * 10**6))
            for _ in range(20):
                c.stream(request(GET, "big"), fin=True)
        if now - c.used > 0.1:
            c.used = now
            c.stream(tune(10**12, 60 * 10**9, 999 * 10**6), fin=True)
            self.count("tunes")


class AheadOfArrival(Attack):
    """ACKs of packets that never came, on 4 connections; again when found out."""

    want, rate = 4, 20
    options = {"reports": None}

    def act(self, c, now):
        if c.used == 0:
            c.used = 1
            c.stream(request(GET, "big"))
        elif c.seen and c.highest >= c.used:
            c.used = c.highest + 1
            last = c.highest + 20
            c.send(c.report(range(max(0, last - 3000), last)))
            self.count("false reports")


class Slow(Attack):
    """Readers of a large file whose windows open by a byte a second, on 64 connections."""

    want = 64
    options = {"limits": (4096, 4096, 0, 0)}

    def act(self, c, now):
        if c.used == 0:
            c.used, c.opened = now, 4096
            c.stream(request(GET, "big"), fin=True)
        elif now - c.used > 1:
            c.used, c.opened = now, c.opened + 1
            c.send(b"\x06" + varint(c.opened) + b"\x07\x00" + varint(c.opened))


class Uploads(Attack):
    """PUTs of 3 GB under new names, of which a byte a second comes, on 8 connections of 16 streams."""

    want = 8

    def act(self, c, now):
        if c.used == 0 or now - c.used > 1:
            fresh, c.used = c.used == 0, now
            for n in range(16):
                if fresh:
                    body = request(PUT, f"{os.urandom(6).hex()}", struct.pack(">Q", 3 << 30))
                    c.uploads = getattr(c, "uploads", []) + [len(body) + 12]
                    c.stream(body + b"\x06\0\0\x08" + bytes(8))
                else:
                    c.stream(b"\x02\0\0\x01x", sid=4 * n, offset=c.uploads[n])
                    c.uploads[n] += 5


class Lists(Attack):
    """LISTs of `many`, a folder of many entries, on 2 connections of 8 streams; none of the answers is read."""

    want = 2
    options = {"limits": (8192, 512, 0, 0)}

    def act(self, c, now):
        while c.used < 8:
            c.used += 1
            c.stream(request(LIST, "many"), fin=True)
            self.count("requests")


class Tcp(Attack):
    """512 TCP connections that say nothing."""

    want, says_hello, asks = 512, False, b""

    def connect(self):
        sock = socket.socket()
        sock.setblocking(False)
        bind(sock, self.source)
        if sock.connect_ex(self.server) not in (0, errno.EINPROGRESS):
            sock.close()
            return
        self.connections.append(TcpConnection(sock, self.says_hello, self.asks))
        self.count("opened")

    def tick(self, now):
        self.tokens = min(self.rate * 0.2 + 1, self.tokens + (now - self.last) * self.rate)
        self.last = now
        for c in list(self.connections):
            c.read()
            if c.is_over:
                c.sock.close()
                self.connections.remove(c)
                self.count("ended")
        while len(self.connections) < self.want and self.allowed():
            self.connect()

    def standing(self):
        return sum(c.is_ready for c in self.connections)


class TcpUnlisted(Tcp):
    """512 TCP connections with a handshake by new keys, and no request."""

    says_hello = True


class TcpUnread(Tcp):
    """200 TCP connections that ask for `big`, by new keys, and read nothing of it."""

    want, says_hello, asks = 200, True, request(GET, "big")


class TcpConnection:
    """TCP, and Noise if it says hello."""

    def __init__(self, sock, says_hello, asks=b""):
        self.sock, self.says_hello, self.said, self.received = sock, says_hello, 0, b""
        self.asks = asks
        self.is_over, self.began = False, time.monotonic()

    @property
    def is_ready(self):
        return self.said == (2 if self.says_hello else 0) and not self.is_over

    def read(self):
        try:
            if self.says_hello and self.said == 0:
                self.noise = Noise(b"NRWT\x01\x01")
                first = self.noise.first()
                self.sock.send(b"NRWT\x01\x01" + struct.pack(">H", len(first)) + first)
                self.said = 1
            if self.asks and self.said == 2:
                # An unread answer; that the server has hung up shows behind what it has sent.
                info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
                self.is_over = info[0] != TCP_ESTABLISHED
                return
            data = self.sock.recv(4096)
            if not data:
                self.is_over = True
            self.received += data
            if self.said == 1 and len(self.received) >= 7:
                size = struct.unpack(">H", self.received[5:7])[0]
                if len(self.received) >= 7 + size:
                    self.noise.second(self.received[7 : 7 + size])
                    third = self.noise.third(b"")
                    self.sock.send(struct.pack(">H", len(third)) + third)
                    self.said = 2
                    if self.asks:
                        key = AESGCM(self.noise.split()[0])
                        sealed = key.encrypt(bytes(12), self.asks, b"")
                        self.sock.send(struct.pack(">H", len(sealed)) + sealed)
        except BlockingIOError:
            pass
        except OSError as fault:
            # Not yet connected; else the server has hung up.
            self.is_over = fault.errno != errno.ENOTCONN


# What runs together: everything but what needs a rule of its own at the server.
ATTACKS = {
    "idle": Idle,
    "requests": OneByteRequests,
    "tcp": Tcp,
    "tcp-unlisted": TcpUnlisted,
    "half-open": HalfOpen,
    "window": WindowsEnd,
    "unread": Unread,
    "held": FalseHeld,
    "resets": Resets,
    "tune": Tune,
    "ahead": AheadOfArrival,
}
OTHERS = {
    "moving": Moving,
    "slow": Slow,
    "uploads": Uploads,
    "lists": Lists,
    "tcp-unread": TcpUnread,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("server")
    parser.add_argument("seconds", type=float)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--from", dest="source", default="127.0.0.1")
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    host, port = a.server.rsplit(":", 1)
    known = {**ATTACKS, **OTHERS}
    names = list(ATTACKS) if a.names == ["all"] else a.names
    attacks = {name: known[name]((host, int(port)), a.source) for name in names}
    connections, reported = [], 0

    def each(now):
        nonlocal reported
        connections.clear()
        for attack in attacks.values():
            attack.tick(now)
            if not isinstance(attack, Tcp):
                connections.extend(attack.connections)
        if now - reported > 1:
            reported = now
            state = {n: {"standing": x.standing(), **x.counts} for n, x in attacks.items()}
            state["in, out"] = [sum(c.bytes_in for c in connections), sum(c.bytes_out for c in connections)]
            if a.json:
                print(json.dumps(state), flush=True)
            else:
                print(*(f"{n}: {s}" for n, s in state.items()), sep="\n", flush=True)

    run(connections, a.seconds, each)


if __name__ == "__main__":
    main()

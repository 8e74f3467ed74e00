# SPDX-License-Identifier: MIT OR Apache-2.0
"""A small client of rrtp and of the file service, written from docs/rrtp.md and docs/files.md alone.

It keeps no promise to its peer: what it reports, asks for and permits is up to the script that uses it. A
`Port` is a UDP socket with any number of connections; `Connection` opens, seals and reads, and never
closes for a violation; `run` serves connections and calls the script every 10 ms; `Link` is a bottleneck that is played here.
"""

import hashlib
import hmac
import os
import random
import select
import socket
import struct
import time

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION = b"RRT\1"
APPLICATION = b"narrows-files"
TICK = 0.01
# Scripts bind below, so that a router can tell them from programs that let the system choose.
FIRST_PORT, LAST_PORT = 10000, 49151


def mac(key, data):
    return hmac.digest(key, data, "sha256")


def expand(secret, info):
    return mac(secret, info + b"\x01")


def bind(sock, address):
    """Binds to a port between FIRST_PORT and LAST_PORT."""
    for _ in range(100):
        try:
            sock.bind((address, random.randint(FIRST_PORT, LAST_PORT)))
            return
        except OSError as busy:
            fault = busy
    raise fault


def varint(n):
    """The variable-length integer of RFC 9000 section 16."""
    for bits, tag, size in ((6, 0, 1), (14, 1, 2), (30, 2, 4), (62, 3, 8)):
        if n < 1 << bits:
            return (n | tag << (size * 8 - 2)).to_bytes(size, "big")


def read_varint(data, at):
    """The value, and where the next field begins."""
    size = 1 << (data[at] >> 6)
    return int.from_bytes(data[at : at + size], "big") & (1 << (size * 8 - 2)) - 1, at + size


class Noise:
    """The initiator of Noise_XX_25519_AESGCM_SHA256."""

    def __init__(self, prologue):
        self.h = self.ck = b"Noise_XX_25519_AESGCM_SHA256".ljust(32, b"\0")
        self.mix_hash(prologue)
        self.e, self.s = X25519PrivateKey.generate(), X25519PrivateKey.generate()

    def mix_hash(self, data):
        self.h = hashlib.sha256(self.h + data).digest()

    def mix_key(self, ours, theirs):
        secret = mac(self.ck, ours.exchange(X25519PublicKey.from_public_bytes(theirs)))
        self.ck = expand(secret, b"")
        self.key, self.n = AESGCM(mac(secret, self.ck + b"\x02")), 0

    def nonce(self):
        self.n += 1
        return struct.pack(">4xQ", self.n - 1)

    def seal(self, data):
        sealed = self.key.encrypt(self.nonce(), data, self.h)
        self.mix_hash(sealed)
        return sealed

    def open(self, sealed):
        data = self.key.decrypt(self.nonce(), sealed, self.h)
        self.mix_hash(sealed)
        return data

    def first(self):
        e = self.e.public_key().public_bytes_raw()
        self.mix_hash(e)
        self.mix_hash(b"")
        return e

    def second(self, message):
        self.mix_hash(message[:32])
        self.mix_key(self.e, message[:32])
        server = self.open(message[32:80])
        self.mix_key(self.e, server)
        self.re = message[:32]
        return self.open(message[80:])

    def third(self, payload):
        s = self.seal(self.s.public_key().public_bytes_raw())
        self.mix_key(self.s, self.re)
        return s + self.seal(payload)

    def split(self):
        secret = mac(self.ck, b"")
        first = expand(secret, b"")
        return first, mac(secret, first + b"\x02")


class Key:
    """One direction's keys."""

    def __init__(self, h, k):
        self.secret, self.phase = mac(h, k), 0
        self.aead = AESGCM(expand(self.secret, b"rrtp0 key"))

    def update(self):
        self.secret, self.phase = expand(self.secret, b"rrtp0 next"), self.phase ^ 1
        self.aead = AESGCM(expand(self.secret, b"rrtp0 key"))


class Port:
    """A UDP socket to one server, for any number of connections."""

    def __init__(self, server, source="127.0.0.1"):
        self.server, self.opening, self.open = server, {}, {}
        self.move(source)

    def move(self, source):
        """Another socket, from this address: all its connections have moved."""
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        bind(self.sock, source)
        self.sock.connect(self.server)
        self.sock.setblocking(False)

    def send(self, data):
        try:
            self.sock.send(data)
        except OSError:
            pass  # As if the path had lost it.

    def receive(self):
        """Hands what waits, up to 64 datagrams, to the connections it is for."""
        for _ in range(64):
            try:
                data = self.sock.recv(2048)
            except OSError:
                return
            if data[0] & 0x80 == 0:
                whose = [self.open.get(data[1:5])]
            elif data[0] == 0x87:
                whose = list(self.open.values())  # A RESET carries a token, and no connection.
            else:
                whose = [self.opening.get(data[5:21])]
            for connection in filter(None, whose):
                connection.on_datagram(data)

    def forget(self, connection):
        self.opening.pop(connection.nonce, None)
        self.open.pop(connection.id, None)


class Connection:
    """One connection. `reports`: None never reports; `finishes`: whether the handshake is ended; `limits`:
    parameters 3 to 6; `link`: a bottleneck that what comes has to cross."""

    def __init__(
        self,
        server,
        source="127.0.0.1",
        reports="all",
        limits=(1 << 40, 1 << 40, 1000, 1000),
        message=65535,
        controller=b"",
        link=None,
        port=None,
        finishes=True,
    ):
        self.reports, self.link, self.finishes = reports, link, finishes
        self.limits, self.message, self.controller = limits, message, controller
        self.bytes_in = self.bytes_out = self.packets_in = 0
        self.state, self.nonce, self.closed, self.fault = "asking", os.urandom(16), None, None
        self.id, self.token = os.urandom(4), None
        self.next, self.seen, self.highest, self.since_report = 0, [], -1, 0
        self.nonces, self.floor = {}, 0
        self.streams, self.echo, self.skipped = {}, None, set()
        self.granted = self.streams_granted = 0
        self.arrivals, self.acked, self.next_stream = [], -1, 0
        self.began = time.monotonic()
        self.waiting = []
        self.port = port or Port(server, source)
        self.port.opening[self.nonce] = self
        self.retry()

    def move(self, source):
        """A change of address."""
        self.port.move(source)

    def forget(self):
        """Ends it without a word."""
        self.port.forget(self)
        self.closed = self.closed or ("forgotten", "")

    def is_live(self):
        return self.state in ("open", "finishing") and not self.closed

    def send_raw(self, data):
        self.bytes_out += len(data)
        self.port.send(data)

    def retry(self):
        """Sends what the opening waits with."""
        self.tried = time.monotonic()
        if self.state == "asking":
            self.send_raw((b"\x81" + VERSION + self.nonce).ljust(64, b"\0"))
        elif self.state in ("proving", "half open", "finishing"):
            self.send_raw(self.opening)

    # Opening

    def on_long(self, data):
        kind = data[0]
        if kind == 0x87:
            if self.token and data[5:21] == self.token:
                self.closed = ("reset", "")
        elif data[5:21] != self.nonce:
            return
        elif kind == 0x82 and self.state == "asking":
            clear = b"\x83" + VERSION + b"\x01" + self.nonce + data[21:57]
            self.noise = Noise(clear)
            self.opening, self.state = clear + self.noise.first(), "proving"
            self.retry()
        elif kind == 0x84 and self.state == "proving" and not self.finishes:
            self.state = "half open"
        elif kind == 0x84 and self.state == "proving":
            hello = self.noise.second(data[21:])
            self.peer_id, self.peer = hello[:4], {}
            at = 4
            while at < len(hello):
                self.peer[hello[at]] = hello[at + 2 : at + 2 + hello[at + 1]]
                at += 2 + hello[at + 1]
            self.token, self.granted = self.peer.get(9), read_varint(self.peer[3], 0)[0]
            self.streams_granted = read_varint(self.peer[5], 0)[0]
            self.port.open[self.id] = self
            mine = [(1, varint(60000)), (2, varint(1472))]
            mine += [(3 + i, varint(n)) for i, n in enumerate(self.limits)]
            mine += [(7, varint(self.message)), (8, VERSION)]
            mine += [(10, self.controller)] if self.controller else []
            mine += [(11, bytes([len(APPLICATION)]) + APPLICATION)]
            mine = self.id + b"".join(bytes([k, len(v)]) + v for k, v in mine)
            self.opening = b"\x85" + VERSION + self.peer_id + self.noise.third(mine)
            keys = [Key(self.noise.h, k) for k in self.noise.split()]
            self.out, self.in_ = keys
            self.state = "finishing"
            self.retry()
            self.send(b"\x01", pad=1200)
            for frames in self.waiting:
                self.send(frames)
        elif kind == 0x88:
            self.closed = self.closed or ("busy", "")

    # Packets

    def send(self, frames, pad=0):
        """Seals a packet of these frames; before the handshake is over they wait."""
        if self.state in ("asking", "proving"):
            self.waiting.append(frames)
            return
        header = (
            bytes([0x20 | self.out.phase << 6]) + self.peer_id + struct.pack(">I", self.next & 0xFFFFFFFF)
        )
        stamp = int(time.monotonic() * 1e6) & 0x3FFFFFFF
        plain = struct.pack(">I", stamp) + frames
        plain = plain.ljust(max(4, pad - len(header) - 16), b"\0")
        sealed = self.out.aead.encrypt(struct.pack(">4xQ", self.next), plain, header)
        self.next += 1
        self.send_raw(header + sealed)

    def on_short(self, data):
        wide = data[0] & 0x20
        size = 9 if wide else 8
        low, bits = int.from_bytes(data[5:size], "big"), 32 if wide else 24
        expected = self.highest + 1
        number = expected & ~((1 << bits) - 1) | low
        if number + (1 << bits - 1) <= expected:
            number += 1 << bits
        elif number > expected + (1 << bits - 1) and number >= 1 << bits:
            number -= 1 << bits
        if data[0] >> 6 & 1 != self.in_.phase:
            self.in_.update()
        plain = self.in_.aead.decrypt(struct.pack(">4xQ", number), data[size:], data[:size])
        self.state = "open"
        self.packets_in += 1
        self.highest = max(self.highest, number)
        if self.echo is None:
            self.echo = struct.unpack(">I", plain[:4])[0] & 0x3FFFFFFF
        asks = self.frames(plain, 4 + (0, 1, 2, 4)[plain[0] >> 6], number)
        self.seen.append(number)
        # What proves that the packet came; and below what reports speak of nothing.
        self.nonces[number] = data[-1]
        size = (0, 1, 2, 4)[plain[0] >> 6]
        self.floor = max(self.floor, number - int.from_bytes(plain[4 : 4 + size], "big"))
        if len(self.nonces) > 20000:
            self.nonces = {n: x for n, x in self.nonces.items() if n >= self.floor}
        self.since_report += asks
        if self.reports and self.since_report >= (1 if number < 10 else 2):
            self.send(self.report())

    def report(self, numbers=None, feedback=b"", marks=None, delay=0):
        """A report of what was seen, or of `numbers`."""
        numbers = sorted(set(self.seen if numbers is None else numbers), reverse=True)
        numbers = [n for n in numbers if n >= self.floor]
        if len(self.seen) > 4000:
            self.seen = sorted(self.seen)[-1500:]
        runs, at, proof = [], 0, 0
        while at < len(numbers) and len(runs) < 32:
            end = at
            while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] - 1:
                end += 1
            for n in numbers[at : end + 1]:
                proof ^= self.nonces.get(n, 0)
            gap = numbers[end] - numbers[end + 1] - 1 if end + 1 < len(numbers) else 0
            runs.append(varint(end - at) + varint(2 * gap))
            at = end + 1
        if len(runs) == 32:
            runs[-1] = varint(read_varint(runs[-1], 0)[0]) + varint(0)
        frame = (
            bytes([2, (8 if feedback else 0) | (4 if marks is not None else 0)])
            + varint(numbers[0])
            + struct.pack(">I", self.echo or 0)
        )
        frame += varint(delay) + (varint(marks) if marks is not None else b"")
        frame += bytes([len(feedback)]) + feedback if feedback else b""
        self.echo, self.since_report = None, 0
        return frame + bytes([proof, len(runs)]) + b"".join(runs)

    def frames(self, p, at, number):
        """Reads a payload's frames; whether they ask for a report."""
        asks = 0
        while at < len(p):
            kind = p[at]
            at += 1
            asks |= kind not in (0, 2, 0x14, 0x43, 0x45)
            if kind & 0x80:
                sid = kind & 7
                if sid == 7:
                    sid, at = read_varint(p, at)
                size = (0, 3, 5, 8)[kind >> 3 & 3]
                offset, at = int.from_bytes(p[at : at + size], "big"), at + size
                length = len(p) - at
                if kind & 0x20:
                    length, at = read_varint(p, at)
                self.on_stream(sid, offset, p[at : at + length], kind & 0x40)
                at += length
            elif kind == 2:
                flags = p[at]
                self.acked, at = read_varint(p, at + 1)
                _, at = read_varint(p, at + 4)
                if flags & 4:
                    _, at = read_varint(p, at)
                if flags & 8:
                    at += 1 + p[at]
                count, at = p[at + 1], at + 2
                for _ in range(2 * count):
                    _, at = read_varint(p, at)
            elif kind == 3:
                at += 1 + p[at]
            elif kind == 4:
                at = len(p)
            elif kind == 5 or 0x40 <= kind < 0x80:
                length, at = read_varint(p, at)
                if kind == 0x43:
                    n, _ = read_varint(p, at)
                    self.skipped.update(range(number - n, number))
                at += length
            elif kind == 0x10:
                self.send(b"\x11" + p[at : at + 8])
                at += 8
            elif kind == 0x11:
                at += 8
            elif kind == 0x14:
                code, at = read_varint(p, at)
                self.closed = (code, p[at + 1 : at + 1 + p[at]].decode())
                return asks
            elif kind == 6:
                self.granted, at = read_varint(p, at)
            elif kind == 8:
                self.streams_granted, at = read_varint(p, at)
            elif kind in (7, 9, 0xA, 0xB, 0xC, 0xD, 0x12, 0x13):
                for _ in range({7: 2, 0xB: 2, 0x12: 3, 0x13: 2}.get(kind, 1)):
                    _, at = read_varint(p, at)
            elif kind not in (0, 1):
                raise ValueError(f"frame {kind:x}")
        return asks

    def on_stream(self, sid, offset, data, fin):
        s = self.streams.setdefault(sid, [0, False, []])
        s[0] = max(s[0], offset + len(data))
        s[1] |= bool(fin)
        s[2].append((offset, data[:64]))

    def on_datagram(self, data):
        now = time.monotonic()
        self.bytes_in += len(data)
        if self.link is None:
            self.handle(data)
        else:
            self.arrivals.append((now, len(data)))
            self.link.take(now, data)

    def handle(self, data):
        """A datagram that has crossed the link. What cannot be opened is kept as the connection's fault."""
        try:
            if data[0] & 0x80:
                self.on_long(data)
            elif self.state in ("finishing", "open"):
                self.on_short(data)
        except Exception as fault:
            self.fault = fault

    # What is asked for

    def stream(self, data, sid=None, offset=0, fin=False):
        """Sends a STREAM frame, on a new stream unless one is named."""
        if sid is None:
            sid, self.next_stream = self.next_stream, self.next_stream + 4
        kind = 0x80 | 7 | 0x20 | (0x40 if fin else 0) | (0x18 if offset else 0)
        self.send(
            bytes([kind])
            + varint(sid)
            + (struct.pack(">Q", offset) if offset else b"")
            + varint(len(data))
            + data
        )
        return sid

    def close(self):
        self.send(b"\x14\x00\x00")


LIST, GET, PUT, MKDIR, TUNE = 1, 2, 3, 4, 5


def request(kind, path="", rest=b""):
    """A request of the file service."""
    return _request(kind, struct.pack(">H", len(path.encode())) + path.encode() + rest)


def tune(rate, rtt, loss, controller=b"rrtp"):
    """TUNE: bit/s, ns, 10^-9."""
    return _request(TUNE, struct.pack(">QQQH", rate, rtt, loss, len(controller)) + controller)


def _request(kind, body):
    return b"NF" + bytes([2, kind]) + struct.pack(">H", len(body)) + body


def run(connections, seconds, each=None, until=None):
    """Serves `connections` (a list that may change) for so long; `each(now)` is called every 10 ms."""
    poll, known, end, tick = select.epoll(), {}, time.monotonic() + seconds, 0
    while (now := time.monotonic()) < end:
        if now - tick > TICK:
            tick = now
            for c in connections:
                fd = c.port.sock.fileno()
                if known.get(fd) is not c.port and fd >= 0:
                    try:
                        poll.register(fd, select.EPOLLIN)
                    except FileExistsError:
                        pass  # The socket of a port that has moved.
                    known[fd] = c.port
                if c.link:
                    c.link.release(now, c)
                if c.state in ("asking", "proving", "finishing") and now - c.tried > 1:
                    c.retry()
                elif c.reports and c.since_report and c.seen:
                    c.send(c.report())
            if each:
                each(now)
            if until and until():
                return
        for fd, _ in poll.poll(0.005):
            known[fd].receive()


class Link:
    """A bottleneck before the client: what the server sends faster is lost or waits here."""

    def __init__(self, rate, delay, queue):
        self.rate, self.delay, self.limit = rate / 8, delay, queue
        self.free, self.waiting, self.delivered, self.dropped = 0, [], [], 0

    def take(self, now, data):
        """A datagram comes to the queue's end."""
        backlog = max(0, self.free - now) * self.rate
        if backlog > self.limit:
            self.dropped += 1
            return
        self.free = max(self.free, now) + len(data) / self.rate
        self.waiting.append((self.free + self.delay, data))

    def release(self, now, connection):
        """Hands over what has crossed it by now."""
        while self.waiting and self.waiting[0][0] <= now:
            at, data = self.waiting.pop(0)
            self.delivered.append((at, len(data)))
            connection.handle(data)

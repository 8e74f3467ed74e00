#!/usr/bin/env python3
"""What a tunnel adds: bulk beside `narrows get` through the same link, an echo alone and beside a full upload, a request,
and a page of 100 objects over six SOCKS connections.

    python3 tools/tunnel/measure.py target/release/narrows 20Mbit/s,25ms,loss=1% [megabytes [pages]]

Everything is on this machine; `narrows relay` is the link. Uses the standard library alone.
"""

import contextlib, os, re, socket, statistics, struct, subprocess, sys, tempfile, threading, time

NARROWS, LINK = os.path.abspath(sys.argv[1]), sys.argv[2]
SIZE = int(float(sys.argv[3]) * 1e6) if len(sys.argv) > 3 else 10_000_000
PAGES = int(sys.argv[4]) if len(sys.argv) > 4 else 10
OBJECT, OBJECTS, CONNECTIONS = 20_000, 100, 6


def exactly(sock, n):
    parts = []
    while n > 0:
        part = sock.recv(min(n, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def target():
    """For each eight bytes: so many bytes follow, so many are wanted back."""

    def serve(sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(EOFError, OSError):
            while True:
                came, wanted = struct.unpack("!II", exactly(sock, 8))
                exactly(sock, came)
                sock.sendall(bytes(wanted))

    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def ask(sock, sent, wanted):
    begun = time.monotonic()
    sock.sendall(struct.pack("!II", sent, wanted) + bytes(sent))
    exactly(sock, wanted)
    return time.monotonic() - begun


def connect(port):
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def socks(port, to):
    sock = connect(port)
    sock.sendall(bytes([5, 1, 0]))
    exactly(sock, 2)
    sock.sendall(bytes([5, 1, 0, 1, 127, 0, 0, 1]) + struct.pack("!H", to))
    assert exactly(sock, 10)[1] == 0
    return sock


def page(port, to):
    begun = time.monotonic()
    left, lock = [OBJECTS], threading.Lock()

    def one():
        sock = socks(port, to)
        while True:
            with lock:
                if not left[0]:
                    return sock.close()
                left[0] -= 1
            ask(sock, 400, OBJECT)

    threads = [threading.Thread(target=one) for _ in range(CONNECTIONS)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return time.monotonic() - begun


def echoes(sock, count, pause=0.05):
    times = []
    for _ in range(count):
        times.append(ask(sock, 40, 40) * 1e3)
        time.sleep(pause)
    times.sort()
    return f"p50 {statistics.median(times):.1f} ms, p95 {times[int(len(times) * 0.95)]:.1f} ms"


class Command:
    """One that runs until it is stopped; `line` is the first that has `mark`."""

    def __init__(self, home, mark, *args):
        env = dict(os.environ, HOME=home, XDG_CONFIG_HOME=home)
        log = open(os.path.join(home, args[0] + args[1].strip("-") + ".log"), "w+")
        self.process = subprocess.Popen(
            [NARROWS, *args], env=env, cwd=home, text=True, stdout=subprocess.PIPE, stderr=log
        )
        out = self.process.stdout if mark != "relaying" else None
        while True:
            if out is None:
                time.sleep(0.05)
                log.seek(0)
                self.line = log.read()
            else:
                self.line = out.readline()
            assert self.process.poll() is None, (args, self.line)
            if mark in self.line:
                return

    def stop(self):
        self.process.terminate()
        self.process.wait()


def through(home, at):
    relay = Command(home, "relaying", "relay", "--listen", "127.0.0.1:0", "--to", at, "--link", LINK)
    return relay, re.search(r"relaying (\S+)", relay.line)[1]


def main():
    running = []
    with tempfile.TemporaryDirectory() as far, tempfile.TemporaryDirectory() as near:
        try:
            env = dict(os.environ, HOME=near, XDG_CONFIG_HOME=near)
            key = subprocess.run([NARROWS, "key"], env=env, capture_output=True, text=True).stdout
            open(f"{far}/clients", "w").write(key)
            os.mkdir(f"{far}/files")
            open(f"{far}/files/file", "wb").write(os.urandom(SIZE))
            # The same bytes without a tunnel.
            files = Command(far, "rrtp://", "serve", "files", "--listen", "127.0.0.1:0")
            running.append(files)
            own, at = re.search(r"rrtp://(\w+)@([^/]+)", files.line).groups()
            relay, at = through(far, at)
            running.append(relay)
            begun = time.monotonic()
            get = [NARROWS, "get", f"rrtp://{own}@{at}/file", "-o", "file"]
            subprocess.run(get, env=env, cwd=near, check=True, capture_output=True)
            alone = time.monotonic() - begun
            print(f"get {SIZE / 1e6:.0f} MB: {alone:.2f} s, {SIZE * 8e-6 / alone:.2f} Mbit/s")
            port = target()
            args = ["tunnel", "serve", "--listen", "127.0.0.1:0", "--clients", "clients"]
            server = Command(far, "rrtp://", *args, "--allow", f"127.0.0.1:{port}")
            running.append(server)
            own, at = re.search(r"rrtp://(\w+)@(\S+)", server.line).groups()
            relay, at = through(far, at)
            running.append(relay)
            forward = ["--tcp", f"0:127.0.0.1:{port}", "--socks", "0"]
            client = Command(near, "leads to", "tunnel", "connect", f"rrtp://{own}@{at}", *forward)
            running.append(client)
            entrance = int(re.search(r":(\d+) leads to", client.line)[1])
            proxy = int(re.search(r":(\d+) leads to", client.process.stdout.readline())[1])
            ask(connect(entrance), 0, 1)
            print("echo alone:", echoes(connect(entrance), 40))
            took = [ask(connect(entrance), 100, 100) * 1e3 for _ in range(20)]
            print(f"a request on a new connection: median {statistics.median(took):.1f} ms")
            pages = [page(proxy, port) for _ in range(PAGES)]
            print(f"{OBJECTS} objects of {OBJECT} bytes: median {statistics.median(pages):.2f} s")
            took = ask(connect(entrance), 0, SIZE)
            print(f"tunnel down: {took:.2f} s, {SIZE * 8e-6 / took:.2f} Mbit/s, {alone / took:.3f} of get")
            terminal = connect(entrance)
            upload = threading.Thread(target=lambda: ask(connect(entrance), SIZE, 1))
            upload.start()
            time.sleep(1)
            count = 0
            times = []
            while upload.is_alive() and count < 200:
                times.append(ask(terminal, 40, 40) * 1e3)
                time.sleep(0.03)
                count += 1
            upload.join()
            times.sort()
            print(
                f"echo beside an upload: p50 {statistics.median(times):.1f} ms, "
                f"p95 {times[int(len(times) * 0.95)]:.1f} ms, {len(times)} echoes"
            )
        finally:
            [command.stop() for command in reversed(running)]


main()

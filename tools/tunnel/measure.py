#!/usr/bin/env python3
"""What a tunnel adds, over a link whose two ways both lose: bulk beside `narrows get`, an echo alone and beside a full
upload, a request, and a page of 100 objects over six SOCKS connections, beside its floor and the kernel's CUBIC.

    python3 tools/tunnel/measure.py target/release/narrows 20Mbit/s,25ms,loss=1% [megabytes [pages]]

Everything is on this machine; `narrows relay` is the tunnel's link, and `narrows link` CUBIC's (needs root; without it
its lines are left out). Uses the standard library alone.
"""

import contextlib, os, re, socket, statistics, struct, subprocess, sys, tempfile, threading, time

OBJECT, OBJECTS, CONNECTIONS, REQUEST = 20_000, 100, 6, 400
UNITS = {"k": 1e3, "M": 1e6, "G": 1e9, "": 1.0}


def exactly(sock, n):
    parts = []
    while n > 0:
        part = sock.recv(min(n, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def prepared(sock):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    return sock


def target():
    """For each eight bytes: so many bytes follow, so many are wanted back."""

    def serve(sock):
        prepared(sock)
        with contextlib.suppress(EOFError, OSError):
            while True:
                came, wanted = struct.unpack("!II", exactly(sock, 8))
                exactly(sock, came)
                sock.sendall(bytes(wanted))

    listener = prepared(socket.create_server(("127.0.0.1", 0), backlog=128))

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


def connect(port, host="127.0.0.1"):
    return prepared(socket.create_connection((host, port)))


def socks(port, to):
    sock = connect(port)
    sock.sendall(bytes([5, 1, 0]))
    exactly(sock, 2)
    sock.sendall(bytes([5, 1, 0, 1, 127, 0, 0, 1]) + struct.pack("!H", to))
    assert exactly(sock, 10)[1] == 0
    return sock


def page(open_one):
    begun = time.monotonic()
    left, lock = [OBJECTS], threading.Lock()

    def one():
        sock = open_one()
        while True:
            with lock:
                if not left[0]:
                    return sock.close()
                left[0] -= 1
            ask(sock, REQUEST, OBJECT)

    threads = [threading.Thread(target=one) for _ in range(CONNECTIONS)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return time.monotonic() - begun


def pages(open_one, count):
    times = [page(open_one) for _ in range(count)]
    return f"{statistics.median(times):.3f} s ({min(times):.3f} to {max(times):.3f})"


def rate_and_rtt(link):
    rate, unit = re.match(r"([\d.]+)([kMG]?)bit/s", link).groups()
    rate = float(rate) * UNITS[unit]
    delay, unit = re.match(r"[^,]+,([\d.]+)(m?)s", link).groups()
    return rate, 2 * float(delay) * (1e-3 if unit else 1.0)


def floor(link):
    """Bytes over the rate, or the round trips of six connections, whichever takes longer, and one to open them."""
    rate, rtt = rate_and_rtt(link)
    rounds = -(-OBJECTS // CONNECTIONS)
    return rtt + max(OBJECTS * OBJECT * 8 / rate + rtt, rounds * (rtt + OBJECT * 8 / rate))


def percentiles(times):
    times = sorted(times)
    p95 = times[min(len(times) - 1, int(len(times) * 0.95))]
    return f"p50 {statistics.median(times):.1f} ms, p95 {p95:.1f} ms, {len(times)} echoes"


def echoes_beside(terminal, bulk, settled):
    """Echoes one after the other while `bulk` runs, from `settled` seconds on."""
    upload = threading.Thread(target=bulk)
    upload.start()
    time.sleep(settled)
    times = []
    while upload.is_alive():
        times.append(ask(terminal, 40, 40) * 1e3)
        time.sleep(0.03)
    upload.join()
    return percentiles(times[:-1] or times)


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
    args = ["--to", at, "--link", LINK, "--link-back", LINK]
    relay = Command(home, "relaying", "relay", "--listen", "127.0.0.1:0", *args)
    return relay, re.search(r"relaying (\S+)", relay.line)[1]


def cubic(port):
    """The same without a tunnel, by the kernel."""
    this = [sys.executable, os.path.abspath(__file__), "--cubic", str(port), str(SIZE), str(PAGES)]
    args = [NARROWS, "link", LINK, "--back", LINK, "--quiet", "--", *this]
    done = subprocess.run(args, text=True, capture_output=True)
    print(done.stdout or f"CUBIC is left out: {done.stderr.strip()}\n", end="")


def behind_link(port, size, count):
    host = os.environ["NARROWS_HOST"]
    took = ask(connect(port, host), 0, size)
    print(f"CUBIC down: {took:.2f} s, {size * 8e-6 / took:.2f} Mbit/s")
    print("CUBIC's page:", pages(lambda: connect(port, host), count), flush=True)


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
            print(f"get {SIZE / 1e6:.0f} MB: {alone:.2f} s, {SIZE * 8e-6 / alone:.2f} Mbit/s", flush=True)
            port = target()
            args = ["tunnel", "serve", "--listen", "127.0.0.1:0", "--clients", "clients"]
            server = Command(far, "rrtp://", *args, "--allow", f"127.0.0.1:{port}")
            running.append(server)
            own, at = re.search(r"rrtp://(\w+)@(\S+)", server.line).groups()
            relay, at = through(far, at)
            running.append(relay)
            forward = ["--tcp", f"0:127.0.0.1:{port}", "--socks", "0"]
            # As with get, from the command's start on.
            begun = time.monotonic()
            client = Command(near, "leads to", "tunnel", "connect", f"rrtp://{own}@{at}", *forward)
            running.append(client)
            entrance = int(re.search(r":(\d+) leads to", client.line)[1])
            proxy = int(re.search(r":(\d+) leads to", client.process.stdout.readline())[1])
            ask(connect(entrance), 0, SIZE)
            took = time.monotonic() - begun
            print(f"tunnel down: {took:.2f} s, {SIZE * 8e-6 / took:.2f} Mbit/s, {alone / took:.3f} of get", flush=True)
            terminal = connect(entrance)
            ask(terminal, 40, 40)
            print("echo alone:", percentiles([ask(terminal, 40, 40) * 1e3 for _ in range(40)]), flush=True)
            took = [ask(connect(entrance), 100, 100) * 1e3 for _ in range(20)]
            print(f"a request on a new connection: median {statistics.median(took):.1f} ms", flush=True)
            print(f"floor of a page of {OBJECTS} objects of {OBJECT} bytes: {floor(LINK):.3f} s", flush=True)
            print("page:", pages(lambda: socks(proxy, port), PAGES), flush=True)
            upload = connect(entrance)
            # The upload is full once its controller has found the rate; before, see the second line.
            rate, rtt = rate_and_rtt(LINK)
            settled = 2 + 16 * rtt
            size = int(rate / 8 * (settled + 20))
            beside = echoes_beside(terminal, lambda: ask(upload, size, 1), settled)
            print(f"echo beside an upload: {beside}", flush=True)
            upload = connect(entrance)
            beside = echoes_beside(terminal, lambda: ask(upload, int(rate / 8 * settled), 1), 0.1)
            print(f"echo beside the beginning of an upload: {beside}", flush=True)
            cubic(port)
        finally:
            [command.stop() for command in reversed(running)]


if sys.argv[1] == "--cubic":
    behind_link(*map(int, sys.argv[2:]))
else:
    NARROWS, LINK = os.path.abspath(sys.argv[1]), sys.argv[2]
    SIZE = int(float(sys.argv[3]) * 1e6) if len(sys.argv) > 3 else 10_000_000
    PAGES = int(sys.argv[4]) if len(sys.argv) > 4 else 10
    main()

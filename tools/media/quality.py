#!/usr/bin/env python3
"""SSIM and PSNR of what comes out of `narrows media`, against the source, beside SRT in live mode through the same link.

    python3 tools/media/quality.py target/debug/narrows [--links 12M,wifi,i,ii] [--losses 1%,5%] [--seconds 30]
                                   [--rtts 4] [--extra 0.1] [--only narrows|srt] [--seed 1]

ffmpeg makes a clip (a moving test picture with noise, x264, a key frame each second, MPEG-TS of a constant rate). It is sent as it
is, 1316 bytes a datagram, and what comes out is decoded by ffmpeg and compared with the picture before it was encoded, frame by
frame of the source: a frame that is missing is judged as the one before it, which a player shows then. The clip's own values are
the most that can be had. Damaged is a frame whose SSIM is more than 0.01 below the clip's. Needs Debian's ffmpeg, and srt-tools
for SRT; without ffmpeg it says so and ends. Everything is on this machine; `narrows relay` is the link.
"""

import argparse, math, os, shutil, socket, subprocess, tempfile, threading, time

from compare import LINKS, EACH, TS, free_port, relay, start, stop, until

SIZE, FPS, START = "640x360", 25, 3.0  # So many seconds of noise precede the clip: both transports start up.
DAMAGED = 0.01
RATES = {"ii": 0.5e6}  # Where 4 Mbit/s do not fit: the video's rate.


def ffmpeg(*args):
    done = subprocess.run(["ffmpeg", "-hide_banner", "-nostdin", "-y", *args], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"ffmpeg {' '.join(args)}: {done.stderr.strip().splitlines()[-1]}")


def picture(seconds):
    return f"testsrc2=size={SIZE}:rate={FPS}:duration={seconds},noise=alls=6:allf=t:all_seed=1,format=yuv420p"


def make(folder, rate, seconds):
    """The clip, and the rate of its transport stream."""
    clip, muxed = f"{folder}/clip.ts", rate * 1.15
    ffmpeg("-f", "lavfi", "-i", picture(seconds), "-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-g", str(FPS),
           "-b:v", str(rate), "-maxrate", str(rate), "-bufsize", str(rate / FPS * 4), "-f", "mpegts", "-muxrate", str(int(muxed)),
           "-muxdelay", "0.4", clip)
    return clip, int(muxed)


def first_time(clip):
    """The first picture's time in the stream, in seconds."""
    said = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "stream=start_time", "-of", "csv=p=0",
                           clip], capture_output=True, text=True).stdout
    return float(said.split()[0].strip(","))


def judged(folder, stream, begins, seconds):
    """SSIM and PSNR of each frame of the source."""
    graph = (f"[1:v]setpts=PTS-{begins}/TB,split[a][b];[0:v]split[c][d];[c][a]ssim=stats_file={folder}/ssim[x];"
             f"[d][b]psnr=stats_file={folder}/psnr[y]")
    ffmpeg("-copyts", "-f", "lavfi", "-i", picture(seconds), "-copyts", "-i", stream, "-lavfi", graph, "-map", "[x]", "-f", "null", "-",
           "-map", "[y]", "-f", "null", "-")
    read = lambda name, key: [float(line.split(key)[1].split()[0]) for line in open(f"{folder}/{name}")]
    return read("ssim", "All:"), read("psnr", "psnr_avg:")


class Sink(threading.Thread):
    """Writes what comes out."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.sock.bind(("127.0.0.1", 0))
        self.port, self.file = self.sock.getsockname()[1], open(path, "wb")

    def run(self):
        while True:
            self.file.write(self.sock.recv(65536))


def send(clip, muxed, port):
    """Sends the clip in its own time, after packets without content."""
    sock, size = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), TS * EACH
    null = (bytes([0x47, 0x1F, 0xFF, 0x10]) + b"\xff" * (TS - 4)) * EACH
    data, empty = open(clip, "rb").read(), int(START * muxed / 8 / size)
    all_of_it = [null] * empty + [data[at:at + size] for at in range(0, len(data), size)]
    begun = time.monotonic()
    for n, datagram in enumerate(all_of_it):
        time.sleep(max(0.0, begun + n * size * 8 / muxed - time.monotonic()))
        sock.sendto(datagram, ("127.0.0.1", port))


def by_narrows(a, folder, sink, link, loss, latency, play):
    spec, env = LINKS[link][0], os.environ | {"HOME": folder, "XDG_CONFIG_HOME": folder}
    with open(f"{folder}/clients", "w") as file:
        file.write(subprocess.run([a.narrows, "key"], env=env, capture_output=True, text=True).stdout)
    receiver = start(a.narrows, "media", "receive", "--listen", "127.0.0.1:0", "--clients", f"{folder}/clients", "--to",
                     str(sink.port), env=env)
    name, at = until(receiver, "rrtp://").rsplit("@", 1)
    link_process, port = relay(a.narrows, at.rsplit(":", 1)[1], spec, loss, a.seed)
    from_port = free_port()
    sender = start(a.narrows, "media", "send", f"{name}@127.0.0.1:{port}", "--from", str(from_port), "--latency",
                   f"{round(latency * 1000)}ms", "--rate-lines", env=env)
    until(sender, "rate ")
    threading.Thread(target=sender.stdout.read, daemon=True).start()
    play(from_port)
    time.sleep(latency + 1)
    for process in (sender, receiver, link_process):
        stop(process)


def by_srt(a, folder, sink, link, loss, latency, play):
    to, from_port, ms = free_port(), free_port(), round(latency * 1000)
    receiver = start("srt-live-transmit", "-q", f"srt://127.0.0.1:{to}?mode=listener&latency={ms}", f"udp://127.0.0.1:{sink.port}")
    link_process, port = relay(a.narrows, to, LINKS[link][0], loss, a.seed)
    sender = start("srt-live-transmit", "-q", f"udp://127.0.0.1:{from_port}", f"srt://127.0.0.1:{port}?mode=caller&latency={ms}")
    time.sleep(2)
    play(from_port)
    time.sleep(latency + 1)
    for process in (sender, receiver, link_process):
        stop(process)


def row(link, loss, what, found, best):
    (ssim, psnr), (own, _) = found, best
    # Before the first picture that comes there is none.
    none = [0.0] * (len(own) - len(ssim))
    ssim, psnr = none + ssim, none + psnr
    damaged = sum(a < b - DAMAGED for a, b in zip(ssim, own))
    low = sorted(ssim)[int(0.01 * len(ssim))]
    capped = [min(x, 100.0) if not math.isinf(x) else 100.0 for x in psnr]
    print(f"| {link} | {loss} | {what} | {sum(ssim) / len(ssim):.4f} | {low:.4f} | {sum(capped) / len(capped):.2f} | "
          f"{damaged} of {len(own)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("narrows")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--links", default="12M,wifi,i,ii")
    parser.add_argument("--losses", default="1%,5%")
    parser.add_argument("--only", default="narrows,srt")
    parser.add_argument("--rtts", type=float, default=4, help="the latency in round trips")
    parser.add_argument("--extra", type=float, default=0.1, help="... and so many seconds")
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    a.narrows = os.path.abspath(a.narrows)
    if not shutil.which("ffmpeg"):
        print("skipped: there is no ffmpeg to make, decode and compare pictures with (Debian's package ffmpeg)")
        return
    wanted = a.only.split(",")
    if "srt" in wanted and not shutil.which("srt-live-transmit"):
        print("without SRT: there is no srt-live-transmit (Debian's package srt-tools)")
        wanted.remove("srt")
    print("| link | loss | what | SSIM, mean | of the worst 1% at most | PSNR, mean, dB | damaged frames |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        clips = {}
        for link in a.links.split(","):
            rate = RATES.get(link, 3.5e6)
            if rate not in clips:
                clip, muxed = make(folder, rate, a.seconds)
                clip = shutil.move(clip, f"{folder}/{rate:.0f}.ts")
                begins = first_time(clip)
                clips[rate] = clip, muxed, begins, judged(folder, clip, begins, a.seconds)
                row("-", "-", f"the clip of {rate / 1e6} Mbit/s itself", clips[rate][3], clips[rate][3])
            clip, muxed, begins, best = clips[rate]
            latency = round(a.rtts * 2 * LINKS[link][1] + a.extra, 3)
            for loss in a.losses.split(","):
                for what in wanted:
                    sink = Sink(f"{folder}/out.ts")
                    sink.start()
                    by = by_srt if what == "srt" else by_narrows
                    by(a, folder, sink, link, loss, latency, lambda port: send(clip, muxed, port))
                    sink.file.flush()
                    row(link, loss, {"srt": "SRT"}.get(what, "rrtp"), judged(folder, f"{folder}/out.ts", begins, a.seconds), best)


if __name__ == "__main__":
    main()

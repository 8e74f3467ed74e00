#!/usr/bin/env python3
"""Drives a real encoder, x264 in GStreamer, by the rate that `narrows media send` says.

    narrows media receive --clients friends.txt --to 5004                  # there
    python3 tools/media/encode.py narrows rrtp://KEY@host:47472 [--source test|FILE|/dev/video0] [-- FLAGS…]

FLAGS go to `narrows media send`: --latency 300ms, --protocol scream, --max-rate 6Mbit/s. Needs Debian's python3-gi,
gir1.2-gstreamer-1.0, gstreamer1.0-plugins-base, -good, -bad and -ugly. The encoder's bitrate is set while it runs: no restart, and no
key frame. (ffmpeg's libx264 takes no new rate while it runs.)
"""

import argparse, signal, subprocess, sys, threading, time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

# Of the rate, what audio, MPEG-TS and its tables do not take.
VIDEO = 0.94


def source(text, size):
    width, height = size.split("x")
    size = f"video/x-raw,width={width},height={height},framerate=25/1"
    if text == "test":
        return f"videotestsrc is-live=true pattern=ball animation-mode=frames ! {size}"
    if text.startswith("/dev/"):
        return f"v4l2src device={text} ! videoconvert ! videoscale ! videorate ! {size}"
    return f'filesrc location="{text}" ! decodebin ! videoconvert ! videoscale ! videorate ! {size} ! identity sync=true'


def main():
    own, flags = sys.argv[1:], []
    if "--" in own:
        own, flags = own[: own.index("--")], own[own.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("narrows")
    parser.add_argument("url")
    parser.add_argument("--source", default="test")
    parser.add_argument("--size", default="1280x720")
    parser.add_argument("--noise", action="store_true", help="a picture that needs any rate")
    parser.add_argument("--port", type=int, default=5000)
    parser.add_argument("--speed-preset", default="veryfast")
    parser.add_argument("--seconds", type=float, default=0.0, help="end after so long")
    a = parser.parse_args(own)

    sender = subprocess.Popen([a.narrows, "media", "send", a.url, "--from", str(a.port), "--rate-lines", *flags],
                              stdout=subprocess.PIPE, text=True)
    first = sender.stdout.readline().split()
    if len(first) != 2:
        raise SystemExit(sender.wait())
    rate = float(first[1])

    Gst.init(None)
    picture = source(a.source, a.size).replace("pattern=ball", "pattern=snow" if a.noise else "pattern=ball")
    # Little buffer, no frames ahead, and a key frame each two seconds, for those who join.
    pipeline = Gst.parse_launch(
        f"{picture} ! videoconvert ! x264enc name=encoder tune=zerolatency speed-preset={a.speed_preset} key-int-max=50 "
        f"vbv-buf-capacity=200 bitrate={max(int(rate * VIDEO / 1000), 50)} ! h264parse config-interval=-1 ! mpegtsmux "
        f"alignment=7 ! udpsink host=127.0.0.1 port={a.port} sync=false name=out")
    encoder, out = pipeline.get_by_name("encoder"), pipeline.get_by_name("out")
    loop, begun = GLib.MainLoop(), time.monotonic()

    def follow():
        for line in sender.stdout:
            rate = float(line.split()[1])
            encoder.set_property("bitrate", max(int(rate * VIDEO / 1000), 50))
            print(f"{time.monotonic() - begun:7.1f} s: x264 encodes at {rate * VIDEO / 1e6:.2f} Mbit/s", flush=True)
        loop.quit()

    before = [0, begun]

    def measure():
        sent, now = out.get_property("bytes-served"), time.monotonic()
        print(f"{now - begun:7.1f} s: it sends {(sent - before[0]) * 8 / (now - before[1]) / 1e6:.2f} Mbit/s", flush=True)
        before[:] = sent, now
        return True

    pipeline.set_state(Gst.State.PLAYING)
    threading.Thread(target=follow, daemon=True).start()
    GLib.timeout_add_seconds(5, measure)
    GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGINT, loop.quit)
    if a.seconds:
        GLib.timeout_add(int(a.seconds * 1000), loop.quit)
    bus = pipeline.get_bus()
    bus.add_signal_watch()
    bus.connect("message::error", lambda _, message: (print(message.parse_error()[0].message, file=sys.stderr), loop.quit()))
    bus.connect("message::eos", lambda *_: loop.quit())
    loop.run()
    pipeline.set_state(Gst.State.NULL)
    sender.send_signal(signal.SIGINT)
    return sender.wait()


sys.exit(main())

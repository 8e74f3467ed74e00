"""Cost of a controller in Python: CPU time per acknowledgement, and seeds in parallel.

Run it with a release build installed: python python/benchmarks/controller.py
"""

from __future__ import annotations

import time
from typing import Any

import narrows

LINK = "50Mbit/s,10ms"
SEEDS = 8
TURNS = 7


class Window:
    """A constant window, to measure the call alone."""

    def __init__(self, window: float = 150.0) -> None:
        """Set a window that fills the link."""
        self.cwnd = window

    def on_ack(self, ack: narrows.Ack) -> None:
        """Do nothing."""


class Gentle:
    """The controller of docs/adding-a-controller.md; it reads six attributes of most acknowledgements."""

    def __init__(self, limit: float = 1.25) -> None:
        """Set the limit of the round-trip time, over its minimum."""
        self.limit = limit

    def on_start(self, start: narrows.Start) -> None:
        """Begin with the usual window."""
        self.cwnd, self.ssthresh = start.initial_window, start.initial_ssthresh

    def on_ack(self, ack: narrows.Ack) -> None:
        """Increase the window, or reduce it by a seventh."""
        if ack.in_recovery or not ack.window_limited:
            return
        if ack.rtt / max(ack.min_rtt, 1e-9) > self.limit and ack.round_start:
            self.cwnd = self.ssthresh = max(self.cwnd * 6 / 7, 2)
        elif self.cwnd < self.ssthresh:
            self.cwnd += ack.newly_acked
        else:
            self.cwnd += ack.newly_acked / self.cwnd

    def on_loss(self, loss: narrows.Loss) -> None:
        """Halve the window."""
        self.cwnd = self.ssthresh = max(loss.flight / 2, 2)

    def on_rto(self, timeout: narrows.Timeout) -> None:
        """Begin again with one segment."""
        self.ssthresh = max(timeout.flight / 2, 2)
        self.cwnd = 1


def acknowledgements(cls: type[narrows.Controller]) -> tuple[int, float]:
    """Return the number that a class gets in the comparison, and its share of the link."""
    count = 0

    class Counts(cls):  # type: ignore[misc, valid-type]
        def on_ack(self, ack: narrows.Ack) -> None:
            nonlocal count
            count += 1
            super().on_ack(ack)

    found = narrows.compare(LINK, protocols=[Counts], seeds=SEEDS, progress=False)
    return count, float(found.to_dict()["results"][0]["utilisation"]["mean"])


def measured(protocol: narrows.controller.ProtocolLike) -> tuple[float, float, dict[str, Any]]:
    """Return the minimum CPU and wall seconds of several comparisons, and the result."""
    best_cpu = best_wall = float("inf")
    row: dict[str, Any] = {}
    for _ in range(TURNS):
        cpu, wall = time.process_time(), time.perf_counter()
        found = narrows.compare(LINK, protocols=[protocol], seeds=SEEDS, progress=False)
        best_cpu = min(best_cpu, time.process_time() - cpu)
        best_wall = min(best_wall, time.perf_counter() - wall)
        row = found.to_dict()["results"][0]
    return best_cpu, best_wall, row


def main() -> None:
    """Print the table."""
    acks, used = acknowledgements(Window)
    # One for each packet received: other protocols get as many as their share of the link implies.
    if abs(acknowledgements(Gentle)[0] / acknowledgements(Gentle)[1] / (acks / used) - 1) > 0.03:
        raise SystemExit("acknowledgements do not follow the part of the link that is used")
    protocols: dict[str, narrows.controller.ProtocolLike] = {
        "nothing, compiled": narrows.compiled(Window),
        "nothing, in Python": Window,
        "gentle, compiled": narrows.compiled(Gentle),
        "gentle, in Python": Gentle,
        "reno (built in)": "reno",
        "cubic (built in)": "cubic",
    }
    print(f"{LINK}, {SEEDS} seeds, {acks} acknowledgements of a fixed window, least of {TURNS}")
    print(f"{'':20} {'CPU us/ACK':>10} {'over compiled':>14} {'CPU/wall':>9}")
    base, digests = 0.0, {}
    for label, protocol in protocols.items():
        cpu, wall, row = measured(protocol)
        digests[label] = row["digest"]
        each = cpu / (acks * row["utilisation"]["mean"] / used) * 1e6
        over = f"{each - base:14.2f}" if label.endswith("in Python") else f"{'':14}"
        base = each
        print(f"{label:20} {each:10.2f} {over} {cpu / wall:9.2f}")
    for name in ("nothing", "gentle"):
        if digests[f"{name}, compiled"] != digests[f"{name}, in Python"]:
            raise SystemExit(f"{name}: compiled and in Python have different runs")


if __name__ == "__main__":
    main()

"""Steps per second of the vector environment in Python.

With --engine target/release/examples/steps, that program simulates the same links without steps, in
alternation with the environments here: the engine alone.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time

import numpy as np
from narrows.env import VectorCongestionEnv


def stepped(rtt_ms: int, num_envs: int, steps: int, threads: int) -> float:
    """Return steps per second, including the reset and all Python code."""
    envs = VectorCongestionEnv(
        num_envs,
        link=f"10Mbit/s,{rtt_ms * 500}us",
        packet=1500,
        action="window",
        steps=steps,
        threads=threads,
    )
    # One BDP on the link, and half a BDP in the queue.
    window = np.ceil(1.5 * 10e6 * rtt_ms * 1e-3 / 12_000)
    actions = np.full((num_envs, 1), window, dtype=np.float32)
    begin = time.perf_counter()
    envs.reset(seed=0)
    for _ in range(steps):
        envs.step(actions)
    seconds = time.perf_counter() - begin
    means = envs.means()
    if means["throughput"].min() < 0.98:
        raise SystemExit("a link was not kept full")
    return num_envs * steps / seconds


def main() -> None:
    """Print a line per round trip time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", help="the example 'steps' of the crate env, built for release")
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for rtt_ms in (20, 50):
        alone, own = [], []
        for _ in range(options.rounds):
            if options.engine:
                numbers = [rtt_ms, options.num_envs, options.steps, options.threads, 1]
                command = [options.engine, *map(str, numbers), "alone"]
                told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                alone.append(float(told.split("=")[1]))
            own.append(stepped(rtt_ms, options.num_envs, options.steps, options.threads))
        line = f"RTT {rtt_ms} ms: {statistics.median(own):,.0f} steps/s"
        if alone:
            ratios = [a / b for a, b in zip(own, alone, strict=True)]
            line += (
                f", engine alone {statistics.median(alone):,.0f}, "
                f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            )
        print(line, flush=True)


if __name__ == "__main__":
    main()

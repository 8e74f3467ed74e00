"""A sweep of 10,000 points on four Dask workers, one of which is killed in the middle.

    python python/benchmarks/cluster.py

in an environment with this package, built for release, and distributed. Prints the times of one, two and four workers,
and whether the table is bit for bit that of threads of this process.
"""

from __future__ import annotations

import os
import sys
import time

import narrows
from distributed import Client, LocalCluster

SWEEP = {
    "link": "10Mbit/s,20ms,queue=1bdp",
    "vary": {
        "loss": "0.01%..5%:log:100",
        "delay": "5ms..100ms:log:25",
        "rate": "5Mbit/s,10Mbit/s,20Mbit/s,40Mbit/s",
    },
    "protocols": "cubic",
    "duration": "20s",
    "seeds": 1,
}
BEFORE = {**SWEEP, "vary": "loss=1%,2%"}


def seconds(workers: int, *, kill: bool = False) -> tuple[float, narrows.Sweep]:
    """Return the duration of a sweep on so many workers, and its results."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        # Workers import the package in their first batch.
        narrows.sweep(**BEFORE, client=client, progress=False)
        begun = time.perf_counter()
        sweep = narrows.sweep(**SWEEP, client=client, progress=False, wait=False)
        if kill:
            while sweep.done < sweep.total // 2:
                time.sleep(0.05)
            victim = next(iter(cluster.workers.values()))
            victim.process.process._process.kill()
            print(f"  killed a worker after {sweep.done} of {sweep.total} runs")
        sweep.wait()
        return time.perf_counter() - begun, sweep


if __name__ == "__main__":
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    print(f"{cores} cores")
    begun = time.perf_counter()
    alone = narrows.sweep(**SWEEP, progress=False)
    print(f"{alone.total} runs by threads of this process: {time.perf_counter() - begun:.1f} s")
    for workers in (1, 2, 4):
        took, _ = seconds(workers)
        print(f"{workers} workers: {took:.1f} s")
    took, shared = seconds(4, kill=True)
    same = shared.runs.to_dict() == alone.runs.to_dict()
    print(f"4 workers, one killed: {took:.1f} s, {shared.done} runs, same table: {same}")
    assert same

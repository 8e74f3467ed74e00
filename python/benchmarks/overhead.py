"""Cost of the package, compared with the command and with threads of one process.

    cargo build --release
    python python/benchmarks/overhead.py target/release/narrows

in an environment with a release build of this package from the same sources. The comparison is measured in CPU time,
in alternation; sweeps are measured in wall-clock time, so the machine should be idle.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

import narrows

TURNS = 5
WORKERS = 2
SWEEP = {
    "link": "10Mbit/s,20ms,queue=1bdp",
    "vary": {"loss": "0.01%..5%:log:100", "delay": "5ms..100ms:log:10", "rate": "5Mbit/s,10Mbit/s"},
    "protocols": "cubic",
    "duration": "10s",
    "seeds": 1,
}


def import_ms() -> float:
    """Return the minimum duration of an import in fresh interpreters, in milliseconds."""
    code = "import time; t = time.perf_counter(); import narrows; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True) for _ in range(10)]
    return 1e3 * min(float(run.stdout) for run in runs)


def compare_ratio(command: str) -> float:
    """Return the CPU time of a comparison here over the command's: the median of several turns."""
    ratios = []
    for _ in range(TURNS):
        before = os.times()
        with tempfile.TemporaryDirectory() as folder:
            words = [command, "compare", "--json", "--out", folder]
            subprocess.run(words, check=True, capture_output=True)
        between = os.times()
        narrows.compare(progress=False).to_dict()
        after = os.times()
        theirs = between.children_user + between.children_system
        theirs -= before.children_user + before.children_system
        ratios.append((after.user + after.system - between.user - between.system) / theirs)
    return statistics.median(ratios)


def sweep_seconds() -> tuple[float, float, int]:
    """Return the seconds of a sweep by threads of this process and by Dask, and the number of runs."""
    from distributed import Client, LocalCluster

    begun = time.perf_counter()
    alone = narrows.sweep(**SWEEP, jobs=WORKERS, progress=False)
    threads_s = time.perf_counter() - begun
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        # Workers import the package in their first batch.
        narrows.sweep(**{**SWEEP, "vary": "loss=1%,2%"}, client=client, progress=False)
        begun = time.perf_counter()
        shared = narrows.sweep(**SWEEP, client=client, progress=False)
        dask_s = time.perf_counter() - begun
    assert shared.runs.to_dict() == alone.runs.to_dict()
    return threads_s, dask_s, alone.total


if __name__ == "__main__":
    print(f"import narrows: {import_ms():.0f} ms")
    print(f"compare over the command: {compare_ratio(sys.argv[1]):.3f} of its CPU time")
    threads_s, dask_s, runs = sweep_seconds()
    each_ms = 1e3 * (dask_s - threads_s) * WORKERS / runs
    print(f"sweep of {runs} runs: {threads_s:.2f} s by {WORKERS} threads, {dask_s:.2f} s by Dask")
    print(f"  {100 * (dask_s / threads_s - 1):.1f}% more, {each_ms:.3f} ms a run")

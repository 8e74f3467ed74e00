"""Distribution of a sweep's runs to workers of a cluster or of this machine."""

from __future__ import annotations

import os
import time
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from typing import Any

from . import _narrows
from .controller import lending

#: Target duration of a batch in seconds, far above a scheduler's overhead of a few milliseconds.
_BATCH_S = 1.0
#: Assumed work per second before the first measurement: low, so that the first batches return soon.
_FIRST_RATE = 2e4
#: Retries of a batch after an exception; batches of a killed worker are run elsewhere in any case.
_RETRIES = 3
#: Interval of checks of the number of workers, in seconds.
_LOOK_S = 2.0

_Task = tuple[int, int, float]


def run_batch(
    pairs: list[tuple[str, str]],
    text: tuple[str, str] | None,
    tasks: list[tuple[int, int, bool]],
    own: list[Any],
) -> tuple[list[str], float]:
    """Run a batch at a worker; return the runs and their duration in seconds."""
    begun = time.perf_counter()
    with lending(own):
        return _narrows.sweep_runs(pairs, text, tasks), time.perf_counter() - begun


class Pool:
    """A Dask client or an executor, and the size of its batches."""

    def __init__(self, client: object, own: list[Any]) -> None:
        """Use a ``distributed.Client`` or a ``concurrent.futures.Executor``, with controllers for the workers."""
        self._own = own
        self._client: Any = None
        if isinstance(client, Executor):
            self._executor: Any = client
        elif hasattr(client, "get_executor") and hasattr(client, "nthreads"):
            self._client = client
            self._executor = client.get_executor(pure=False, retries=_RETRIES)
        else:
            kind = type(client).__name__
            message = "a distributed.Client or a concurrent.futures.Executor"
            raise _narrows.SpecError(f"--client: of type {kind}; expected {message}")
        self._workers = 0
        self._looked = float("-inf")
        self._rate = _FIRST_RATE

    def workers(self) -> int:
        """Return the number of batches that can run concurrently; it may change."""
        if time.monotonic() - self._looked > _LOOK_S:
            self._looked = time.monotonic()
            if self._client is None:
                self._workers = getattr(self._executor, "_max_workers", os.cpu_count() or 1)
            else:
                self._workers = sum(self._client.nthreads().values())
        return max(self._workers, 1)

    def batch(self, left: list[_Task]) -> list[_Task]:
        """Take the next runs from the end: a second's work, less towards the end, so that workers finish together."""
        most = max(len(left) // (4 * self.workers()), 1)
        batch = [left.pop()]
        work = batch[0][2]
        while left and len(batch) < most and work + left[-1][2] <= self._rate * _BATCH_S:
            batch.append(left.pop())
            work += batch[-1][2]
        return batch

    def measured(self, work: float, seconds: float) -> None:
        """Update the estimate of work per second by a finished batch."""
        if seconds > 0.0 and work > 0.0:
            self._rate += 0.3 * (work / seconds - self._rate)

    def submit(
        self,
        pairs: list[tuple[str, str]],
        text: tuple[str, str] | None,
        tasks: list[tuple[int, int, bool]],
    ) -> Future[tuple[list[str], float]]:
        """Submit a batch to a worker."""
        future: Future[tuple[list[str], float]] = self._executor.submit(
            run_batch, pairs, text, tasks, self._own
        )
        return future

    def result(
        self, future: Future[tuple[list[str], float]], done: int, total: int
    ) -> tuple[list[str], float]:
        """Return the runs of a batch; if its workers are lost, raise an error that names the kept runs."""
        try:
            return future.result()
        except (CancelledError, BrokenExecutor, OSError) as e:
            kept = f"{done} of {total} runs are finished; with folder= the same call goes on"
            raise ConnectionError(f"the workers or their scheduler were lost: {kept}") from e

"""Sweeps: any parameters over any values, here or on a cluster."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import ExitStack
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _narrows
from . import progress as bars
from ._options import pairs
from .controller import ProtocolLike, controllers, lending, protocol_text
from .links import Link
from .scenario import Scenario
from .tables import Table
from .units import (
    Size,
    Time,
    listed,
    number_text,
    path_text,
    plain_text,
    scalar,
    seconds,
    time_text,
    wrong_type,
)
from .workers import Pool

if TYPE_CHECKING:
    import pandas
    import polars

#: The values of a parameter: ``"0.1%..10%:log:8"``, or a list of texts, plain numbers and, as protocols, classes.
Values = str | Iterable[str | float | timedelta | PathLike[str] | ProtocolLike]

#: Definition of a sweep: options, the text and folder of its scenario, and classes of controllers.
_Origin = tuple[list[tuple[str, str]], tuple[str, str] | None, list[Any]]


class Sweep:
    """A sweep's points and runs; finished ones can be read while others run.

    >>> import narrows
    >>> found = narrows.sweep("10Mbit/s,20ms", vary={"loss": ["0%", "1%"], "protocol": ["cubic", "bbr"]}, seeds=2)
    >>> found.done, found.total, found.points["protocol"]
    (8, 8, ['cubic', 'bbr', 'cubic', 'bbr'])
    """

    def __init__(self, found: _narrows.Sweep, origin: _Origin) -> None:
        """Wrap a compiled sweep; ``origin`` is the definition from which it can be created again."""
        self._found = found
        self._origin = origin
        self._thread: threading.Thread | None = None
        self._raised: BaseException | None = None
        self._stop = threading.Event()

    def __reduce__(self) -> tuple[Callable[..., Sweep], tuple[Any, ...]]:
        """Decompose it for pickle and copy: a copy has the finished runs, and does not run the others."""
        given, text, own = self._origin
        name = dict(given).get("")
        if text is None and name is not None and Path(name).is_file():
            text = (_read(Path(name)), str(Path(name).resolve().parent))
        return _restored, ((given, text, own), self._found.finished())

    @property
    def done(self) -> int:
        """Number of finished runs."""
        return self._found.counts()[0]

    @property
    def total(self) -> int:
        """Number of all runs: points times seeds."""
        return self._found.counts()[1]

    def wait(self, timeout: float | timedelta | None = None) -> bool:
        """Wait until all runs are finished, or for a number of seconds; return whether they are finished.

        An exception that ended the sweep early is raised here.
        """
        if self._thread is not None:
            self._thread.join(None if timeout is None else seconds(timeout, "timeout"))
            if self._thread.is_alive():
                return False
        if self._raised is not None:
            raise self._raised
        return self._thread is not None or self.done == self.total

    def cancel(self) -> None:
        """Stop a sweep that was begun with ``wait=False``; finished runs are kept."""
        self._stop.set()

    def to_dict(self) -> dict[str, Any]:
        """Return the same object that ``narrows sweep --json`` prints."""
        found: dict[str, Any] = json.loads(self._found.json())
        return found

    @property
    def points(self) -> Table:
        """One row per point and group of flows: each measure's mean, and half of its 95% interval."""
        return Table(self._found.points())

    @property
    def runs(self) -> Table:
        """One row per point, seed and group of flows: each measure's value."""
        return Table(self._found.runs())

    def to_polars(self) -> polars.DataFrame:
        """Return ``points`` as a polars DataFrame."""
        return self.points.to_polars()

    def to_pandas(self) -> pandas.DataFrame:
        """Return ``points`` as a pandas DataFrame."""
        return self.points.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return ``points`` as a stream of Arrow's C interface."""
        return self.points.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """Return the table that the command prints."""
        return self._found.text()

    def report(self) -> str:
        """Return the command's ``report.html``: maps, lines and surfaces of any measure, on one page."""
        return self._found.html()

    def write(self, folder: str | PathLike[str]) -> list[Path]:
        """Write the files that the command writes under ``--out``, and return their paths."""
        return [Path(path) for path in self._found.write(Path(folder))]

    def _begin(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except BaseException as e:
                self._raised = e

        self._thread = threading.Thread(target=run, name="narrows.sweep", daemon=True)
        self._thread.start()


def sweep(
    link: str | Link | None = None,
    *,
    vary: Mapping[str, Values] | str | Iterable[str],
    scenario: str | PathLike[str] | Scenario | None = None,
    protocols: str | Iterable[ProtocolLike] | None = None,
    flows: int | None = None,
    against: str | None = None,
    reverse: str | None = None,
    duration: Time | None = None,
    warmup: Time | None = None,
    stagger: Time | None = None,
    packet: Size | None = None,
    seeds: int | None = None,
    seed: int | None = None,
    preset: str | None = None,
    change: str | Iterable[str] | None = None,
    reconfigure: str | Iterable[str] | None = None,
    measure: str | None = None,
    group: str | None = None,
    jobs: int | None = None,
    folder: str | PathLike[str] | None = None,
    fresh: bool = False,
    client: object = None,
    wait: bool = True,
    progress: bool = True,
) -> Sweep:
    """Simulate every combination of parameters, as ``narrows sweep``.

    Arguments that are None have the command's defaults, see ``narrows sweep --help``.

    vary
        Names and their values: ``{"loss": "0.1%..10%:log:8", "protocol": ["cubic", "bbr"]}``; or the
        command's texts ``"NAME=VALUES"``. The first varies slowest.
    link, scenario
        Base of the sweep: a link as in :func:`compare`, or a file's path or a :class:`Scenario`.
    change, reconfigure
        As in :func:`compare`, at every point.
    folder
        Folder for finished runs. After an interruption, a killed worker or a lost scheduler, the same call
        continues with them. ``fresh`` runs everything again.
    client
        A ``distributed.Client``, or a ``concurrent.futures.Executor`` (such as joblib's
        ``loky.get_reusable_executor(4)``), that runs the sweep; its workers need this package. By default
        threads of this process run it. Results are bit for bit the same.
    wait
        Whether to return only after all runs; otherwise the :class:`Sweep` is filled while it runs.

    Raises ``SpecError`` with the command's message if an argument is invalid.
    """
    protocols = listed(protocols)
    if not isinstance(vary, Mapping):
        vary = listed(vary)
    if isinstance(vary, Mapping):
        vary = {key: listed(values) for key, values in vary.items()}
    text = None
    name = None
    if isinstance(scenario, Scenario):
        name, text = f"{scenario.name}.toml", (scenario.toml(), "")
    elif scenario is not None:
        name = path_text(scenario, "scenario")
    given = pairs(
        link=link,
        protocols=protocols,
        flows=flows,
        against=against,
        reverse=reverse,
        duration=duration,
        warmup=warmup,
        stagger=stagger,
        packet=packet,
        seeds=seeds,
        seed=seed,
        preset=preset,
        change=change,
        reconfigure=reconfigure,
        measure=measure,
        group=group,
        jobs=jobs,
    )
    given += [("vary", one) for one in _vary_texts(vary)]
    if name is not None:
        given.append(("", name))
        if text is None and client is not None:
            # Workers on other machines may lack the file.
            path = Path(name)
            text = (_read(path), str(path.resolve().parent)) if path.is_file() else None
    place = None if folder is None else Path(path_text(folder, "folder"))
    own = controllers(protocols, *(vary.values() if isinstance(vary, Mapping) else ()))
    own += scenario.controllers() if isinstance(scenario, Scenario) else []
    loans = ExitStack()
    with ExitStack() as failing:
        failing.push(loans)
        loans.enter_context(lending(own))
        found = Sweep(_narrows.Sweep(given, text, place, fresh), (given, text, own))
        failing.pop_all()
    if client is None and wait:

        def work() -> None:
            with loans, bars.shown("sweep", progress) as tell:
                found._found.execute(tell)

    elif client is None:
        # In the background, so that finished runs can be read: threads take batches, too.
        threads = ThreadPoolExecutor(jobs or os.cpu_count())
        pool = Pool(threads, [])

        def work() -> None:
            with loans, threads:
                _share(found, pool, given, text, None)

    else:
        pool = Pool(client, own)

        def work() -> None:
            with loans, bars.shown("sweep", progress and wait) as tell:
                _share(found, pool, given, text, tell)

    if wait:
        work()
    else:
        found._begin(work)
    return found


def _vary_texts(vary: Mapping[str, Values] | str | Iterable[str]) -> list[str]:
    if isinstance(vary, str):
        return [vary]
    if isinstance(vary, Mapping):
        return [f"{name}={_values_text(name, values)}" for name, values in vary.items()]
    if not isinstance(vary, Iterable):
        raise wrong_type(vary, "vary", "a mapping of names to values, or texts 'NAME=VALUES'")
    return [plain_text(one, "vary") for one in vary]


def _values_text(name: str, values: Values) -> str:
    if isinstance(values, str):
        return values
    if not isinstance(values, Iterable):
        raise wrong_type(values, f"vary: {name}", "a text or a list of values")
    return ",".join(_value_text(value, f"vary: {name}") for value in values)


def _value_text(value: object, name: str) -> str:
    value = scalar(value)
    if isinstance(value, str) or callable(value):
        return protocol_text(value)
    if isinstance(value, timedelta):
        return time_text(value, name)
    if isinstance(value, PathLike):
        return path_text(value, name)
    return number_text(value, "", name, "a text, a number, a timedelta or a path")


def _restored(origin: _Origin, finished: list[tuple[int, int, str]]) -> Sweep:
    """Restore a decomposed sweep; its controllers are available while it is read."""
    given, text, own = origin
    with lending(own):
        found = _narrows.Sweep(given, text, None, False)
    for point, seed, line in finished:
        found.add(point, seed, line)
    return Sweep(found, origin)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _share(
    found: Sweep,
    pool: Pool,
    given: list[tuple[str, str]],
    text: tuple[str, str] | None,
    tell: Callable[[float], None] | None,
) -> None:
    """Let a pool's workers run the missing runs in batches; runs are kept when their batch is done."""
    sweep = found._found
    left = sweep.missing()
    all_work = max(sum(work for _, _, work in left), 1e-9)
    left.reverse()
    done_work = 0.0
    under_way: dict[Future[tuple[list[str], float]], list[tuple[int, int, float]]] = {}
    try:
        while (left or under_way) and not found._stop.is_set():
            while left and len(under_way) < 2 * pool.workers():
                batch = pool.batch(left)
                tasks = [(point, seed, sweep.is_traced(seed)) for point, seed, _ in batch]
                under_way[pool.submit(given, text, tasks)] = batch
            finished, _ = wait_for(under_way, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in finished:
                batch = under_way.pop(future)
                lines, seconds = pool.result(future, found.done, found.total)
                work = sum(work for _, _, work in batch)
                pool.measured(work, seconds)
                for (point, seed, _), line in zip(batch, lines, strict=True):
                    sweep.add(point, seed, line)
                done_work += work
            if tell is not None:
                tell(done_work / all_work)
    finally:
        for future in under_way:
            future.cancel()

"""Comparisons of protocols on one link, and runs of scenarios."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from . import _narrows
from . import progress as bars
from ._options import pairs
from .controller import ProtocolLike, lending
from .links import Link
from .results import Comparison
from .scenario import Scenario
from .units import Size, Time, listed, path_text


def compare(
    link: str | Link | None = None,
    *,
    protocols: str | Iterable[ProtocolLike] | None = None,
    aim: str | None = None,
    source: str | None = None,
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
    jobs: int | None = None,
    progress: bool = True,
) -> Comparison:
    """Simulate each protocol on a link, as ``narrows compare``.

    Arguments that are None have the command's defaults, see ``narrows compare --help``. Times are texts
    with a unit, timedeltas or seconds; ``packet`` is a text or bytes.

    link
        A :class:`Link`, ``"RATE,DELAY[,key=value]*"``, or a name such as ``"geo"``.
    protocols
        Names with parameters and families: ``"tcp,rrtp"``, ``["vegas(alpha=1,beta=3)", "stpd"]``. In a list,
        also classes: your own :class:`Controller`.
    aim
        Objective: ``"bulk"``, ``"calls"``, ``"live"`` or ``"web"`` (the command's ``--for``).
    against, reverse
        Competitors on the same link, and flows in the reverse direction: ``"reno:4"``.
    seeds, seed
        Number of seeds, and the first seed; means have 95% intervals.
    change, reconfigure
        Changes of the link, and new hints from applications, at given times: one or several of the command's
        texts, ``"30s:rate=384kbit/s,delay=150ms"`` and ``"30s:rate=384kbit/s,rtt=300ms"``.
    jobs
        Number of concurrent runs; by default one per core.
    progress
        Whether to show a bar after a second, by tqdm if it is installed.

    Raises ``SpecError`` with the command's message if an argument is invalid.

    >>> import narrows
    >>> result = narrows.compare(narrows.Link("20Mbit/s", "25ms", loss=0.01), protocols="cubic,bbr", seeds=2)
    >>> used = dict(zip(result.means["protocol"], result.means["utilisation"]))
    >>> used["bbr"] > used["cubic"]
    True
    >>> narrows.compare("20Mbit/s,25ms", protocols="cubik")
    Traceback (most recent call last):
      ...
    narrows.SpecError: --protocols: unknown protocol 'cubik'; did you mean 'cubic'?
    """
    protocols = listed(protocols)
    given = pairs(
        link=link,
        protocols=protocols,
        aim=aim,
        source=source,
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
        jobs=jobs,
    )
    with lending(protocols), bars.shown("compare", progress) as tell:
        return Comparison(_narrows.compare(given, tell))


def run(
    scenario: str | PathLike[str] | Scenario,
    *,
    seeds: int | None = None,
    seed: int | None = None,
    change: str | Iterable[str] | None = None,
    reconfigure: str | Iterable[str] | None = None,
    jobs: int | None = None,
    progress: bool = True,
) -> Comparison:
    """Simulate a scenario, as ``narrows run``.

    scenario
        A file's path, or a :class:`Scenario`.
    seeds, seed
        Values that replace the scenario's.
    change, reconfigure
        As in :func:`compare`, in addition to those of the scenario.

    Raises ``SpecError`` with the command's message if an argument or the scenario is invalid.
    """
    if isinstance(scenario, Scenario):
        name, text = f"{scenario.name}.toml", (scenario.toml(), "")
        own = scenario.controllers()
    else:
        name, text = path_text(scenario, "scenario"), None
        own = []
    given = pairs(seeds=seeds, seed=seed, change=change, reconfigure=reconfigure, jobs=jobs)
    given.append(("", name))
    with lending(own), bars.shown("run", progress) as tell:
        return Comparison(_narrows.run(given, text, tell))

"""Comparisons of protocols on one link, and runs of scenarios."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from . import _narrows
from . import progress as bars
from .controller import ProtocolLike, lending, protocols_text
from .links import Link, link_text
from .results import Comparison
from .scenario import Scenario
from .units import Size, Time, path_text, plain_text, size_text, time_text, whole_text


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
    jobs: int | None = None,
    progress: bool = True,
) -> Comparison:
    """Simulate each protocol on a link, as ``narrows compare``.

    What is None has the command's default, which ``narrows compare --help`` states. Times are texts
    with a unit, timedeltas or seconds; ``packet`` is a text or bytes.

    link
        A :class:`Link`, ``"RATE,DELAY[,key=value]*"``, or a name such as ``"geo"``.
    protocols
        Names with parameters and families: ``"tcp,rrtp"``, ``["vegas(alpha=1,beta=3)", "stpd"]``. In a list,
        also classes: a :class:`Controller` of one's own.
    aim
        What is wanted: ``"bulk"``, ``"calls"``, ``"live"`` or ``"web"`` (the command's ``--for``).
    against, reverse
        Competitors on the same link, and flows the other way: ``"reno:4"``.
    seeds, seed
        How many seeds, and the first; means come with 95% intervals.
    jobs
        Runs at the same time; by default one per core.
    progress
        Whether a bar is shown after a second, by tqdm where that is installed.

    Raises ``SpecError`` with the command's message where an argument is wrong.

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
    given = {
        "link": None if link is None else link_text(link),
        "protocols": None if protocols is None else protocols_text(protocols),
        "for": aim if aim is None else plain_text(aim, "for"),
        "source": source if source is None else plain_text(source, "source"),
        "flows": None if flows is None else whole_text(flows, "flows"),
        "against": against if against is None else plain_text(against, "against"),
        "reverse": reverse if reverse is None else plain_text(reverse, "reverse"),
        "duration": None if duration is None else time_text(duration, "duration"),
        "warmup": None if warmup is None else time_text(warmup, "warmup"),
        "stagger": None if stagger is None else time_text(stagger, "stagger"),
        "packet": None if packet is None else size_text(packet, "packet"),
        "seeds": None if seeds is None else whole_text(seeds, "seeds"),
        "seed": None if seed is None else whole_text(seed, "seed"),
        "preset": preset if preset is None else plain_text(preset, "preset"),
        "jobs": None if jobs is None else whole_text(jobs, "jobs"),
    }
    with lending(protocols or ()), bars.shown("compare", progress) as tell:
        return Comparison(_narrows.compare(pairs(given), tell))


def run(
    scenario: str | PathLike[str] | Scenario,
    *,
    seeds: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    progress: bool = True,
) -> Comparison:
    """Simulate a scenario, as ``narrows run``.

    scenario
        A file's path, or a :class:`Scenario`.
    seeds, seed
        Instead of the scenario's own.

    Raises ``SpecError`` with the command's message where something is wrong.
    """
    if isinstance(scenario, Scenario):
        name, text = f"{scenario.name}.toml", (scenario.toml(), "")
        own = scenario.controllers()
    else:
        name, text = path_text(scenario, "scenario"), None
        own = []
    given = {
        "seeds": None if seeds is None else whole_text(seeds, "seeds"),
        "seed": None if seed is None else whole_text(seed, "seed"),
        "jobs": None if jobs is None else whole_text(jobs, "jobs"),
        "": name,
    }
    with lending(own), bars.shown("run", progress) as tell:
        return Comparison(_narrows.run(pairs(given), text, tell))


def pairs(given: dict[str, str | None]) -> list[tuple[str, str]]:
    """Return what is given, by the command's names."""
    return [(name, value) for name, value in given.items() if value is not None]

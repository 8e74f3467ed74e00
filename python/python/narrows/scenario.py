"""Scenarios: any topology, any mix of flows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from .controller import ProtocolLike, controllers, protocol_text
from .links import Link
from .units import (
    Fraction,
    Rate,
    Size,
    Time,
    fraction_text,
    plain_text,
    rate_text,
    size_text,
    time_text,
    whole_text,
    wrong_type,
)


@dataclass(frozen=True)
class Wire:
    """A duplex link of a scenario, between two nodes; ``name`` is ``"FROM-TO"`` unless given."""

    between: tuple[str, str]
    link: Link
    name: str | None = None


@dataclass(frozen=True)
class Flow:
    """A group of flows: one protocol, one route, measured together.

    protocol
        A name with parameters, a class (see :class:`Controller`), or ``"each"``: one run for each of the
        scenario's ``protocols``.
    between
        First and last node of the data's route.
    count
        Number of flows; random values are drawn for each flow.
    start, stop, stagger, host_delay
        Text, timedelta or seconds; each flow starts up to ``stagger`` later than ``start``.
    source
        The application's traffic, as in ``"transfer(size=1MB)"``.
    access, egress
        A lossless link of each flow before and after the route, as in ``"10Mbit/s/1ms"``.
    """

    protocol: ProtocolLike
    between: tuple[str, str]
    count: int = 1
    name: str | None = None
    start: Time | None = None
    stop: Time | None = None
    stagger: Time | None = None
    source: str | None = None
    host_delay: Time | None = None
    access: str | None = None
    egress: str | None = None


@dataclass(frozen=True)
class Change:
    """A change of a link during a run; ``link`` is a wire's name, with ``.back`` for its reverse direction."""

    at: Time
    link: str
    rate: Rate | None = None
    delay: Time | None = None
    loss: Fraction | None = None


@dataclass(frozen=True)
class Scenario:
    """Links, flows, changes, and the number of seeds.

    The defaults are those of a scenario's file. ``duration`` and ``warmup`` are texts, timedeltas or seconds,
    ``packet`` is a text or bytes.

    >>> shared = Scenario(
    ...     links=[Wire(("a", "b"), Link("10Mbit/s", "20ms", queue="1bdp"))],
    ...     flows=[Flow("cubic", ("a", "b")), Flow("bbr", ("a", "b"))],
    ...     duration=20,
    ... )
    >>> import narrows
    >>> [row["group"] for row in narrows.run(shared).to_dict()["results"]]
    ['cubic', 'bbr']
    """

    links: Sequence[Wire]
    flows: Sequence[Flow]
    changes: Sequence[Change] = ()
    name: str = "scenario"
    seed: int = 1
    seeds: int = 1
    duration: Time = "60s"
    warmup: Time = "0s"
    preset: str = "rfc"
    packet: Size = "1000B"
    protocols: Sequence[ProtocolLike] = ()
    bottleneck: str | None = None
    probe: Time | None = field(default=None)

    def toml(self) -> str:
        """Return the scenario as a file that ``narrows run`` reads."""
        lines = [
            f"name = {_quoted(self.name, 'name')}",
            f"seed = {whole_text(self.seed, 'seed')}",
            f"seeds = {whole_text(self.seeds, 'seeds')}",
            f"duration = {_string(time_text(self.duration, 'duration'))}",
            f"warmup = {_string(time_text(self.warmup, 'warmup'))}",
            f"preset = {_quoted(self.preset, 'preset')}",
            f"packet = {_string(size_text(self.packet, 'packet'))}",
        ]
        if self.bottleneck is not None:
            lines.append(f"bottleneck = {_quoted(self.bottleneck, 'bottleneck')}")
        if len(self.protocols):
            names = ", ".join(_quoted(protocol_text(one), "protocols") for one in self.protocols)
            lines.append(f"protocols = [{names}]")
        for wire in self.links:
            lines += _wire(wire)
        for flow in self.flows:
            lines += _flow(flow)
        for change in self.changes:
            lines += _change(change)
        if self.probe is not None:
            lines += ["", "[probe]", f"interval = {_string(time_text(self.probe, 'probe'))}"]
        return "\n".join(lines) + "\n"

    def controllers(self) -> list[ProtocolLike]:
        """Return the classes among the protocols."""
        return controllers(self.protocols, [flow.protocol for flow in self.flows])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the scenario's file."""
        Path(path).write_text(self.toml(), encoding="utf-8")


def _wire(wire: Wire) -> list[str]:
    lines = ["", "[[link]]"]
    if wire.name is not None:
        lines.append(f"name = {_quoted(wire.name, 'name')}")
    lines += _ends(wire.between)
    lines += [f"{key} = {_string(value)}" for key, value in wire.link.pairs().items()]
    reverse = wire.link.reverse_pairs()
    if reverse:
        pairs = ", ".join(f"{key} = {_string(value)}" for key, value in reverse.items())
        lines.append(f"reverse = {{ {pairs} }}")
    return lines


def _flow(flow: Flow) -> list[str]:
    lines = ["", "[[flows]]", f"protocol = {_quoted(protocol_text(flow.protocol), 'protocol')}"]
    if flow.name is not None:
        lines.append(f"name = {_quoted(flow.name, 'name')}")
    lines += [f"count = {whole_text(flow.count, 'count')}", *_ends(flow.between)]
    for key in ("start", "stop", "stagger", "host-delay"):
        value = getattr(flow, key.replace("-", "_"))
        if value is not None:
            lines.append(f"{key} = {_string(time_text(value, key))}")
    for key in ("source", "access", "egress"):
        value = getattr(flow, key)
        if value is not None:
            lines.append(f"{key} = {_quoted(value, key)}")
    return lines


def _change(change: Change) -> list[str]:
    lines = ["", "[[change]]", f"at = {_string(time_text(change.at, 'at'))}"]
    lines.append(f"link = {_quoted(change.link, 'link')}")
    if change.rate is not None:
        lines.append(f"rate = {_string(rate_text(change.rate, 'rate'))}")
    if change.delay is not None:
        lines.append(f"delay = {_string(time_text(change.delay, 'delay'))}")
    if change.loss is not None:
        lines.append(f"loss = {_string(fraction_text(change.loss, 'loss'))}")
    return lines


def _ends(between: tuple[str, str]) -> list[str]:
    if isinstance(between, str) or len(between) != 2:
        raise wrong_type(between, "between", "two nodes, as in ('a', 'b')")
    return [f"from = {_quoted(between[0], 'from')}", f"to = {_quoted(between[1], 'to')}"]


def _quoted(text: str, name: str) -> str:
    return _string(plain_text(text, name))


def _string(text: str) -> str:
    # TOML has the same escapes as JSON; neither can encode a lone surrogate.
    return json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False).replace(
        "\x7f", "\\u007f"
    )

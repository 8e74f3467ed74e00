"""Links: rate, delay, queue, losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any

from .units import (
    Fraction,
    Rate,
    Time,
    fraction_text,
    packets_text,
    path_text,
    plain_text,
    rate_text,
    time_text,
)

#: Formats of plain values by key; other keys take texts.
_WRITERS: dict[str, Callable[[Any, str], str]] = {
    "rate": rate_text,
    "delay": time_text,
    "queue": packets_text,
    "loss": fraction_text,
    "jitter": time_text,
    "duplicate": fraction_text,
    "corrupt": fraction_text,
    "trace": path_text,
    "trace-start": time_text,
    "host-delay": time_text,
}


@dataclass(frozen=True)
class Link:
    """A bottleneck link, as ``RATE,DELAY[,key=value]*`` in the command.

    Each field takes the command's text; a plain number is in the unit given here. Fields that are ``None``
    have the command's defaults.

    rate
        Rate including headers: text or bit/s.
    delay
        One-way propagation delay: text, timedelta or seconds.
    queue
        Limit of the queue: ``"1bdp"``, ``"45kB"``, or packets.
    aqm
        Queue management, as in ``"fq-codel"``.
    loss
        ``"1%"``, ``"ge(g=0.1%,h=20%)"``, or a fraction.
    policer, reorder, access, egress
        Texts: see ``narrows compare --help``.
    trace
        A file's path.
    trace_start, jitter, host_delay
        Text, timedelta or seconds.
    duplicate, corrupt
        Text or a fraction of the packets.
    reverse
        Keys that differ in the other direction, as in ``{"rate": "1Mbit/s"}``.

    >>> str(Link("20Mbit/s", "25ms", loss=0.01))
    '20Mbit/s,25ms,loss=0.01'
    >>> from datetime import timedelta
    >>> str(Link(1e6, timedelta(milliseconds=80), queue=30, reverse={"rate": 64e3}))
    '1000000bit/s,80ms,queue=30p,reverse-rate=64000bit/s'
    """

    rate: Rate
    delay: Time
    queue: str | int | None = None
    aqm: str | None = None
    loss: Fraction | None = None
    policer: str | None = None
    trace: str | PathLike[str] | None = None
    trace_start: Time | None = None
    jitter: Time | None = None
    reorder: str | None = None
    duplicate: Fraction | None = None
    corrupt: Fraction | None = None
    access: str | None = None
    egress: str | None = None
    host_delay: Time | None = None
    reverse: Mapping[str, str | float | Time] = field(default_factory=dict)

    def pairs(self) -> dict[str, str]:
        """Return the keys that are set, with their values as texts."""
        named = {f.name.replace("_", "-"): getattr(self, f.name) for f in fields(self)}
        del named["reverse"]
        return {key: _text(key, value) for key, value in named.items() if value is not None}

    def reverse_pairs(self) -> dict[str, str]:
        """Return the keys of the other direction with their values as texts."""
        named = {key.replace("_", "-"): value for key, value in self.reverse.items()}
        return {key: _text(key, value) for key, value in named.items()}

    def __str__(self) -> str:
        """Write the link as the command reads it."""
        pairs = self.pairs()
        parts = [pairs.pop("rate"), pairs.pop("delay")]
        parts += [f"{key}={value}" for key, value in pairs.items()]
        parts += [f"reverse-{key}={value}" for key, value in self.reverse_pairs().items()]
        return ",".join(parts)


def _text(key: str, value: object) -> str:
    return _WRITERS.get(key, plain_text)(value, key)


def link_text(value: str | Link) -> str:
    """Return a link as text; a text is returned unchanged."""
    return str(value) if isinstance(value, Link) else plain_text(value, "link")

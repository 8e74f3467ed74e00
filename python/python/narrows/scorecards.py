"""Scores of a controller on random networks."""

from __future__ import annotations

import json
from typing import Any

from . import _narrows
from . import progress as bars
from ._narrows import SpecError
from .controller import ProtocolLike, lending, protocol_text

_MAX_NETWORKS = 1000


class Scorecard:
    """A controller's scores beside CUBIC, BBRv3 and rrtp; as a text, the command's table."""

    def __init__(self, table: str, found: str) -> None:
        """Wrap a result of the compiled part."""
        self._table = table
        self._found = found

    def to_dict(self) -> dict[str, Any]:
        """Return the object that the command's ``--json`` prints: scores, and the figures of each network."""
        found: dict[str, Any] = json.loads(self._found)
        return found

    def __str__(self) -> str:
        """Return the table."""
        return self._table

    __repr__ = __str__


def scorecard(
    protocol: ProtocolLike,
    *,
    networks: int = 40,
    seed: int = 1,
    jobs: int | None = None,
    progress: bool = True,
) -> Scorecard:
    """Score a protocol on random networks, as ``narrows scorecard PROTOCOL --networks``.

    protocol
        A name with parameters, or a class: your own :class:`Controller`.
    networks
        Number of random networks, of access links, and of mixes with other flows: 1 to 1000.
    seed
        Seed of the networks.
    jobs
        Number of concurrent runs; by default one per core.
    progress
        Whether to show a bar after a second, by tqdm if it is installed.

    Raises ``SpecError`` with the command's message if an argument is invalid.

    >>> import narrows
    >>> found = narrows.scorecard("vegas", networks=1).to_dict()
    >>> [sorted(network["figures"]) for network in found["networks"]][0]
    ['bbr3', 'cubic', 'rrtp', 'vegas']
    >>> narrows.scorecard("vegsa")
    Traceback (most recent call last):
      ...
    narrows.SpecError: unknown protocol 'vegsa'; did you mean 'vegas'?
    """
    if not 1 <= networks <= _MAX_NETWORKS:
        raise SpecError(f"networks: a number from 1 to {_MAX_NETWORKS}, not {networks}")
    if jobs is not None and jobs < 1:
        raise SpecError(f"jobs: a number from 1 on, not {jobs}")
    with lending([protocol]), bars.shown("scorecard", progress) as tell:
        name = protocol_text(protocol)
        return Scorecard(*_narrows.scorecard(name, networks, seed, jobs, tell))

"""Comparisons of protocols on one link."""

from __future__ import annotations

from . import _narrows
from .results import Comparison


def compare(link: str = "wireless", *, protocols: str = "tcp,rrtp", seeds: int = 10) -> Comparison:
    """Simulate each protocol on a link."""
    return Comparison(_narrows.compare(link, protocols, seeds))

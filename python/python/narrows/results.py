"""What was found, as tables and pictures."""

from __future__ import annotations

import json
from typing import Any

from . import _narrows


class Comparison:
    """What a comparison found."""

    def __init__(self, found: _narrows.Comparison) -> None:
        self._found = found

    def to_dict(self) -> dict[str, Any]:
        """Return what ``narrows compare --json`` prints."""
        found: dict[str, Any] = json.loads(self._found.json())
        return found

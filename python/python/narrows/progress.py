"""Progress: a bar by tqdm, if it is installed."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds before a bar appears.
_PATIENCE_S = 1.0


@contextmanager
def shown(what: str, progress: bool) -> Iterator[Callable[[float], None] | None]:
    """Provide a callback for the finished fraction, or None if no bar is to be shown."""
    if not progress or importlib.util.find_spec("tqdm") is None:
        yield None
        return
    begun = time.monotonic()
    bars: list[Any] = []

    def tell(fraction: float) -> None:
        if not bars and time.monotonic() - begun > _PATIENCE_S:
            # The bar for notebooks needs ipywidgets; without them tqdm would print a warning at each call.
            has_widgets = importlib.util.find_spec("ipywidgets") is not None
            tqdm = importlib.import_module("tqdm.auto" if has_widgets else "tqdm").tqdm
            form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
            bars.append(tqdm(total=1.0, desc=what, bar_format=form, leave=False))
        if bars:
            bars[0].update(max(fraction - bars[0].n, 0.0))

    try:
        yield tell
    finally:
        for bar in bars:
            bar.close()

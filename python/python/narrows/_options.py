"""Arguments of functions as the command's options: each is checked and written in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .controller import protocols_text
from .links import link_text
from .units import plain_text, size_text, time_text, whole_text

_WRITERS: dict[str, Callable[[Any, str], str]] = {
    "link": lambda value, _: link_text(value),
    "protocols": lambda value, _: protocols_text(value),
    "duration": time_text,
    "warmup": time_text,
    "stagger": time_text,
    "packet": size_text,
    "flows": whole_text,
    "seeds": whole_text,
    "seed": whole_text,
    "jobs": whole_text,
}

#: Options with names that are reserved words in Python.
_NAMES = {"aim": "for"}


#: Options that may be repeated: a text or several.
_REPEATED = {"change", "reconfigure"}


def _each(name: str, value: object) -> list[object]:
    """Return the option's values as a list, which is empty for None."""
    if value is None:
        return []
    if name in _REPEATED and isinstance(value, Iterable) and not isinstance(value, str):
        return list(value)
    return [value]


def pairs(**given: object) -> list[tuple[str, str]]:
    """Return the options that are not None, with the command's names and formats.

    >>> pairs(link="geo", aim="calls", duration=5, seeds=None)
    [('link', 'geo'), ('for', 'calls'), ('duration', '5s')]
    >>> pairs(change=["2s:loss=1%", "4s:loss=0%"])
    [('change', '2s:loss=1%'), ('change', '4s:loss=0%')]
    """
    told = []
    for key, value in given.items():
        name = _NAMES.get(key, key)
        write = _WRITERS.get(name, plain_text)
        told += [(name, write(one, name)) for one in _each(name, value)]
    return told

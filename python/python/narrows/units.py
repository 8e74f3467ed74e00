"""Values with units, in the command's format.

A text contains its unit (``"20Mbit/s"``, ``"25ms"``, ``"1500B"``, ``"1%"``). A plain number is in the unit given in
the parameter's documentation: bit/s, seconds, bytes, packets, or a fraction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any, TypeAlias

from ._narrows import SpecError

#: A time: a text with a unit, a timedelta, or seconds.
Time: TypeAlias = str | timedelta | float
#: A rate: a text with a unit, or bit/s.
Rate: TypeAlias = str | float
#: A size: a text with a unit, or bytes.
Size: TypeAlias = str | int
#: A fraction: a text such as ``"1%"``, or a number from 0 to 1.
Fraction: TypeAlias = str | float


def scalar(value: object) -> object:
    """Convert a NumPy scalar, or an array without dimensions, to a number or time of Python.

    NumPy's times are checked first, since they are also registered as integers.
    """
    if getattr(value, "ndim", None) != 0:
        return value
    array: Any = value
    if getattr(getattr(array, "dtype", None), "kind", None) == "m":
        return timedelta(microseconds=float(array / array.dtype.type(1, "us")))
    return array.item() if callable(getattr(array, "item", None)) else value


def time_text(value: Time, name: str) -> str:
    """Return a time in the command's format.

    >>> time_text(timedelta(milliseconds=25), "delay"), time_text(0.5, "duration")
    ('25ms', '0.5s')
    """
    value = scalar(value)  # type: ignore[assignment]
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        for unit, size in (("s", 1_000_000), ("ms", 1_000)):
            if microseconds % size == 0:
                return f"{microseconds // size}{unit}"
        return f"{microseconds}us"
    return number_text(value, "s", name, "a time: '25ms', a timedelta, or seconds")


def rate_text(value: Rate, name: str) -> str:
    """Return a rate in the command's format.

    >>> rate_text(2e6, "rate")
    '2000000bit/s'
    """
    return number_text(value, "bit/s", name, "a rate: '20Mbit/s', or bit/s")


def size_text(value: Size, name: str) -> str:
    """Return a size in the command's format."""
    return number_text(value, "B", name, "a size: '1500B', or bytes")


def packets_text(value: str | int, name: str) -> str:
    """Return a queue's limit in the command's format."""
    return number_text(value, "p", name, "a queue's room: '1bdp', '45kB', or packets")


def fraction_text(value: Fraction, name: str) -> str:
    """Return a fraction in the command's format, from 0.1 on in per cent: the command refuses 0.5 as ambiguous."""
    text = number_text(value, "", name, "a fraction: '1%', or a number from 0 to 1")
    if isinstance(value, str) or not 0.1 <= float(text) <= 1:
        return text
    return f"{100 * float(text):.12g}%"


def number_text(value: object, unit: str, name: str, expected: str) -> str:
    """Return a number with its unit; a text is returned unchanged."""
    if isinstance(value, str):
        return value
    value = scalar(value)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise wrong_type(value, name, expected)
    if isinstance(value, Integral):
        return f"{int(value)}{unit}"
    number = float(value)
    # Without an exponent, and without decimals if it is a whole number.
    text = str(int(number)) if number.is_integer() and abs(number) < 1e18 else repr(number)
    if "e" in text:
        text = f"{number:.20f}".rstrip("0")
    return f"{text}{unit}"


def whole_text(value: object, name: str) -> str:
    """Return a whole number as text; the command reports an error for other values."""
    value = scalar(value)
    if isinstance(value, bool) or not isinstance(value, Integral | str):
        raise wrong_type(value, name, "a whole number")
    return str(value)


def plain_text(value: object, name: str) -> str:
    """Return a text unchanged."""
    if not isinstance(value, str):
        raise wrong_type(value, name, "a text")
    return value


def path_text(value: str | PathLike[str], name: str) -> str:
    """Write a path as text."""
    if not isinstance(value, str | PathLike):
        raise wrong_type(value, name, "a path")
    return fspath(value)


def list_text(value: str | Iterable[Any], name: str) -> str:
    """Join names by commas; a text is returned unchanged."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Iterable):
        raise wrong_type(value, name, "a text or a list of texts")
    return ",".join(plain_text(item, name) for item in value)


def seconds(value: Time, name: str) -> float:
    """Return a time in seconds, for arguments that cannot be texts.

    >>> seconds(timedelta(milliseconds=1500), "seconds")
    1.5
    """
    number = scalar(value)
    if isinstance(number, timedelta):
        return number.total_seconds()
    if isinstance(number, bool) or not isinstance(number, Real | Decimal):
        raise wrong_type(value, name, "seconds or a timedelta")
    return float(number)


def listed(values: Any) -> Any:  # noqa: ANN401
    """Return an iterable as a list: an array has no truth value, and a generator can be read only once.

    >>> listed(x for x in "ab")
    ['a', 'b']
    """
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else values


def wrong_type(value: object, name: str, expected: str) -> SpecError:
    """Return an error with the type of a value and the expected type."""
    return SpecError(f"--{name}: {value!r} is of type {type(value).__name__}; expected {expected}")

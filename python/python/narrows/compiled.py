# ruff: noqa: ANN401  # numba has no types
"""Controllers with methods compiled by numba.

They run without the GIL: seeds run in parallel, at nearly the speed of the built-in controllers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from . import _narrows
from ._narrows import SpecError, Start

_C = TypeVar("_C")

#: Event record of each method; methods that get a time or no argument are not listed.
_EVENTS = {
    "on_ack": 0,
    "on_loss": 1,
    "on_rto": 1,
    "on_outcome": 2,
    "on_hints": 3,
    "on_dispersion": 4,
}


@dataclass(frozen=True)
class _Layout:
    """Addresses of machine code, and the record with an object's state; see ``compiled.rs``."""

    on_ack: int
    on_loss: int
    on_rto: int
    on_outcome: int
    on_hints: int
    on_dispersion: int
    on_tick: int
    next_tick: int
    fields: list[tuple[str, int, bool]]
    size: int
    #: Objects that keep the machine code alive.
    functions: list[Any]


class Compiled(Generic[_C]):
    """A class with compiled methods; the methods of its objects are still in Python."""

    def __init__(self, cls: Callable[..., _C], layout: _Layout) -> None:
        """Keep a class and its machine code."""
        self.__wrapped__ = cls
        self.__narrows_layout__ = layout
        self.__name__: str = getattr(cls, "__name__", "controller")
        self.__doc__ = cls.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> _C:
        """Create an object in Python."""
        return self.__wrapped__(*args, **kwargs)

    def __repr__(self) -> str:
        """Return the name of the class."""
        return f"<compiled {self.__name__}>"


def compiled(cls: Callable[..., _C]) -> Compiled[_C]:
    """Compile the methods of a controller with numba, which must be installed.

    The class is written as a :class:`narrows.Controller`, with these restrictions:

    - The attributes that its constructor and ``on_start`` (which stay Python) set are its whole
      state; each is a number (a float from then on) or a bool.
    - Its methods may compute with these attributes and set them. They may call functions compiled by
      numba, but no other methods.
    - Absent values of an acknowledgement (``forward_delay``, ``delivery_rate``) and of hints are nan instead of
      ``None``, ``next_tick()`` returns ``math.inf`` for never, and ``pacing_rate`` is always a number.
      A loss has ``is_ecn``, a bool, instead of ``cause``.
    - A division by zero gives inf or nan.

    >>> import narrows
    >>> @narrows.compiled
    ... class Aimd:
    ...     def __init__(self, gain: float = 1.0):
    ...         self.gain, self.cwnd = gain, 10.0
    ...     def on_ack(self, ack):
    ...         if ack.may_grow:
    ...             self.cwnd += self.gain * ack.newly_acked / self.cwnd
    ...     def on_loss(self, loss):
    ...         self.cwnd = max(loss.flight / 2, 2.0)
    ...     def on_rto(self, timeout):
    ...         self.cwnd = 1.0
    >>> found = narrows.compare("dsl", protocols=[Aimd, "cubic"], seeds=2)
    >>> [row["protocol"] for row in found.to_dict()["results"]]
    ['Aimd', 'cubic']
    """
    try:
        import numba
        import numpy as np
    except ImportError as e:
        message = "@narrows.compiled needs numba: pip install 'narrows[compiled]'"
        raise ImportError(message) from e

    name = getattr(cls, "__name__", "the class")
    example = cls()
    on_start = getattr(example, "on_start", None)
    if on_start is not None:
        on_start(_narrows.example_start())
    kinds = {}
    for attribute in _attributes(example):
        value = getattr(example, attribute)
        if isinstance(value, bool | np.bool_):
            kinds[attribute] = "b1"
        elif isinstance(value, int | float | np.number):
            kinds[attribute] = "f8"
        else:
            raise SpecError(
                f"@narrows.compiled: {name}.{attribute} is a {type(value).__name__}; the state "
                "of a compiled controller is numbers and bools"
            )
    if kinds.get("cwnd") != "f8":
        raise SpecError(f"@narrows.compiled: {name} has no number cwnd")
    state = np.dtype(list(kinds.items()), align=True)
    state_type = numba.from_dtype(state)
    events = [
        numba.from_dtype(
            np.dtype(
                {
                    "names": [f for f, _, _ in fields],
                    "formats": [kind for _, kind, _ in fields],
                    "offsets": [offset for _, _, offset in fields],
                    "itemsize": size,
                }
            )
        )
        for fields, size in _narrows.layouts()
    ]
    functions: list[Any] = []

    def address(method: str) -> int:
        plain = getattr(cls, method, None)
        if plain is None:
            return 0
        function = numba.njit(error_model="numpy")(plain)
        try:
            code = _entry(numba, method, function, state_type, events)
        except KeyError as e:
            raise SpecError(
                f"@narrows.compiled: {name}.{method} sets {e}, an attribute that neither its "
                "constructor nor on_start sets"
            ) from e
        except numba.core.errors.NumbaError as e:
            raise SpecError(
                f"@narrows.compiled: {name}.{method} cannot be compiled; numba's reason is above"
            ) from e
        functions.append(code)
        found: int = code.address
        return found

    layout = _Layout(
        on_ack=address("on_ack"),
        on_loss=address("on_loss"),
        on_rto=address("on_rto"),
        on_outcome=address("on_outcome"),
        on_hints=address("on_hints"),
        on_dispersion=address("on_dispersion"),
        on_tick=address("on_tick"),
        next_tick=address("next_tick"),
        fields=[(f, int(state.fields[f][1]), kind == "b1") for f, kind in kinds.items()]
        if state.fields is not None
        else [],
        size=state.itemsize,
        functions=functions,
    )
    return Compiled(cls, layout)


def _attributes(example: object) -> list[str]:
    """Return the names of an object's own attributes, and of its class's data attributes."""
    names = dict.fromkeys(vars(example))
    for cls in reversed(type(example).__mro__[:-1]):
        for name, value in vars(cls).items():
            if not name.startswith("_") and isinstance(value, bool | int | float):
                names[name] = None
    return list(names)


def _entry(numba: Any, method: str, function: Any, state: Any, events: list[Any]) -> Any:
    """Compile the function that the engine calls: it takes pointers, and returns whether the method raised."""
    types = numba.types
    pointer = types.CPointer(state)
    carray = numba.carray
    if method == "next_tick":

        def ask(place: Any) -> Any:
            return function(carray(place, 1)[0])

        return numba.cfunc(types.float64(pointer))(ask)
    if method == "on_tick":

        def tick(place: Any, now: Any) -> Any:
            try:
                function(carray(place, 1)[0], now)
            except Exception:
                return 1
            return 0

        return numba.cfunc(types.int64(pointer, types.float64))(tick)

    def handle(place: Any, event: Any) -> Any:
        try:
            function(carray(place, 1)[0], carray(event, 1)[0])
        except Exception:
            return 1
        return 0

    return numba.cfunc(types.int64(pointer, types.CPointer(events[_EVENTS[method]])))(handle)


__all__ = ["Compiled", "Start", "compiled"]

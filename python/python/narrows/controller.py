"""Congestion controllers written in Python.

A class with ``on_ack`` and ``cwnd`` can be used in place of a protocol's name:

>>> import narrows
>>> class Halving:
...     cwnd = 10.0  # segments
...     def on_ack(self, ack):
...         if ack.may_grow:
...             self.cwnd += ack.newly_acked / self.cwnd
...     def on_loss(self, loss):
...         self.cwnd = max(loss.flight / 2, 2)
...     def on_rto(self, timeout):
...         self.cwnd = 1.0
>>> found = narrows.compare("dsl", protocols=[Halving, "cubic"], seeds=2)
>>> [row["protocol"] for row in found.to_dict()["results"]]
['Halving', 'cubic']
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from . import _narrows
from ._narrows import (
    Ack,
    ControllerError,
    Dispersion,
    Hints,
    Loss,
    PacketOutcome,
    SpecError,
    Start,
    Timeout,
)

__all__ = [
    "Ack",
    "Controller",
    "ControllerError",
    "Dispersion",
    "Hints",
    "Loss",
    "PacketOutcome",
    "Start",
    "Timeout",
    "register",
]


@runtime_checkable
class Controller(Protocol):
    """The interface of a controller. Only ``on_ack`` and ``cwnd`` are required.

    Attributes and methods are looked up once, when an object is created for a flow of a run. One more
    object is created before, only for inspection:

    ====================  ======================================================================
    ``on_ack(ack)``       required: called for every acknowledgement, an :class:`Ack`
    ``cwnd``              required: window in segments, read after every call; 0 to 1e15
    ``pacing_rate``       bit/s on the wire, or ``None`` for the window alone; read after every call
    ``ssthresh``          slow-start threshold in segments, optional: below it, an endpoint that paces
                          by the window allows the window to double
    ``on_start(start)``   before the first packet: a :class:`Start`, with the initial window
    ``on_loss(loss)``     losses or ECN marks have begun a recovery, at most once per window
    ``on_rto(timeout)``   the retransmission timer has expired
    ``on_outcome(…)``     over rrtp: a packet arrived or was lost, a :class:`PacketOutcome`; before the
                          acknowledgements of the same report
    ``on_hints(hints)``   properties of the path have become known, :class:`Hints`: from the application,
                          or over TCP the handshake's RTT
    ``on_dispersion(…)``  over rrtp: the handshake has measured a :class:`Dispersion`
    ``next_tick()``       when to call ``on_tick``, in s since the start, or ``None`` for never
    ``on_tick(now)``      called at that time, in s; required by ``next_tick``
    ``name``              its name in tables; by default that of the class
    ``variables``         attributes that are columns of its time series: ``{"limit": "what it is"}``
                          or ``{"rate_bps": ("bit/s", "what it is")}``
    ====================  ======================================================================

    Parameters of the constructor with a number or bool as default are parameters of the
    protocol: ``"Gentle(limit=1.5)"``, or ``functools.partial(Gentle, limit=1.5)``. Without
    ``on_loss`` and ``on_rto`` the controller does not react to losses; lost data is retransmitted in
    any case.

    >>> class Fixed:
    ...     cwnd = 20
    ...     def on_ack(self, ack): pass
    >>> isinstance(Fixed(), Controller)
    True
    """

    cwnd: float

    def on_ack(self, ack: Ack, /) -> object:
        """Handle an acknowledgement; ``cwnd`` is read afterwards."""


#: A protocol: a name with parameters, a class, or another factory of controllers.
ProtocolLike = str | type[Controller] | Callable[[], Controller]

_T = TypeVar("_T")
_OPTIONAL = (
    "on_start",
    "on_loss",
    "on_rto",
    "on_outcome",
    "on_hints",
    "on_dispersion",
    "on_tick",
    "next_tick",
)


@dataclass(frozen=True)
class _Description:
    """Description of a class for the compiled part; see ``lent.rs``."""

    name: str
    summary: str
    source: str
    parameters: list[tuple[str, str]]
    variables: list[tuple[str, str, str]]
    version: int
    is_compiled: bool
    factory: Callable[..., object]
    layout: object | None


def inspect_controller(controller: object) -> tuple[str, _Description]:
    """Return the specification that names a controller, and its description."""
    arguments: dict[str, object] = {}
    if isinstance(controller, functools.partial) and not controller.args:
        arguments, controller = dict(controller.keywords), controller.func
    layout: object | None = None
    origin: object = controller
    if hasattr(controller, "__narrows_layout__"):
        layout, origin = controller.__narrows_layout__, controller.__wrapped__  # type: ignore[attr-defined]
    if not callable(controller) or (
        not isinstance(origin, type | types.FunctionType | types.MethodType)
        and hasattr(controller, "on_ack")
    ):
        hint = "; give the class, not an object of it" if hasattr(controller, "on_ack") else ""
        raise SpecError(
            "a protocol is a name, a class with on_ack and cwnd, or a function that makes an "
            f"object of one, not {_shown(controller)}{hint}"
        )
    if isinstance(origin, type):
        example: object = origin
        parameters = _parameters(origin)
    else:
        example = controller()
        parameters = []
    cls = origin if isinstance(origin, type) else type(example)
    name = getattr(example, "name", None)
    if name is None:
        name = cls.__name__
    if not isinstance(name, str):
        raise SpecError(f"the name of {cls.__name__} is {_shown(name)}, not a str")
    _check_methods(name, example)
    spec = name
    if arguments:
        known = [known for known, _ in parameters]
        for key in arguments:
            if key not in known:
                raise SpecError(
                    f"'{name}' has no parameter '{key}' that is a number with a default; it has: "
                    f"{', '.join(known) or 'none'}"
                )
        spec = f"{name}({','.join(f'{k}={_value(name, k, v)}' for k, v in arguments.items())})"
    summary = (inspect.getdoc(cls) or "").strip().split("\n")[0] or "a controller in Python"
    return spec, _Description(
        name=name,
        summary=summary,
        source=f"{cls.__module__}.{cls.__qualname__}",
        parameters=parameters,
        variables=_variables(name, example),
        version=_version(cls, controller),
        is_compiled=layout is not None,
        factory=controller,
        layout=layout,
    )


def _shown(value: object) -> str:
    return f"{repr(value)[:60]} ({type(value).__name__})"


def _check_methods(name: str, example: object) -> None:
    if not callable(getattr(example, "on_ack", None)):
        raise SpecError(f"controller '{name}' has no method on_ack(ack)")
    for method in _OPTIONAL:
        found = getattr(example, method, None)
        if found is not None and not callable(found):
            raise SpecError(f"controller '{name}': {method} is {_shown(found)}, not a method")
    if callable(getattr(example, "next_tick", None)) != callable(getattr(example, "on_tick", None)):
        raise SpecError(f"controller '{name}' has only one of next_tick() and on_tick(now)")


def _parameters(cls: type) -> list[tuple[str, str]]:
    """Return names and kinds of the constructor's parameters that a specification may set."""
    try:
        signature = inspect.signature(cls)
    except (ValueError, TypeError):
        return []
    found = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty:
            raise SpecError(
                f"the constructor of {cls.__name__} has a parameter '{parameter.name}' without a "
                f"default; give it one, or pass a function: lambda: {cls.__name__}(…)"
            )
        kind = type(parameter.default)
        if kind in (float, int, bool) and parameter.kind is not parameter.POSITIONAL_ONLY:
            found.append((parameter.name, kind.__name__))
    return found


def _value(name: str, key: str, value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return repr(value)
    raise SpecError(
        f"{name}({key}=…) is {_shown(value)}, not a number or bool; pass a function instead"
    )


def _variables(name: str, example: object) -> list[tuple[str, str, str]]:
    given = getattr(example, "variables", None)
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SpecError(
            f"controller '{name}': variables is {_shown(given)}, not a dict or a list of names"
        )
    if not isinstance(given, Mapping):
        given = {key: key for key in given}
    found = []
    for key, meaning in given.items():
        unit, text = ("", meaning) if isinstance(meaning, str) else meaning
        if not str(key).isidentifier():
            raise SpecError(f"controller '{name}': a variable is an attribute, not {_shown(key)}")
        found.append((str(key), str(unit), str(text)))
    return found


def _version(cls: type, factory: object) -> int:
    """Return a hash of the code, so that stored runs of other code are not reused."""
    digest = hashlib.blake2b(digest_size=8)
    for part in [*cls.__mro__[:-1], factory]:
        try:
            digest.update(inspect.getsource(part).encode())  # type: ignore[arg-type]
        except (OSError, TypeError):
            members = vars(part).values() if isinstance(part, type) else [part]
            for member in members:
                code = getattr(member, "__code__", None)
                digest.update(repr((code.co_code, code.co_consts) if code else member).encode())
    for cell in getattr(factory, "__closure__", None) or ():
        digest.update(repr(cell.cell_contents).encode())
    return int.from_bytes(digest.digest(), "little") or 1


def protocol_text(protocol: object) -> str:
    """Return the specification of a protocol: a text unchanged, or a controller's name with parameters."""
    return protocol if isinstance(protocol, str) else inspect_controller(protocol)[0]


def protocols_text(protocols: str | Iterable[object]) -> str:
    """Join the specifications of protocols by commas; a text is returned unchanged."""
    if isinstance(protocols, str):
        return protocols
    if not isinstance(protocols, Iterable):
        hint = "; write it in brackets" if callable(protocols) else ""
        raise SpecError(
            f"--protocols: {_shown(protocols)}; expected a text or a list of texts and classes{hint}"
        )
    return ",".join(protocol_text(protocol) for protocol in protocols)


def controllers(*values: object) -> list[Any]:
    """Return the classes and functions in lists of protocols and of values."""
    lists = (v for v in values if isinstance(v, Iterable) and not isinstance(v, str))
    return [one for each in lists for one in each if callable(one)]


@contextmanager
def lending(protocols: Iterable[object] | None) -> Iterator[None]:
    """Make controllers available by name within a ``with`` block; texts are ignored."""
    with ExitStack() as stack:
        for controller in controllers(protocols):
            loan = _narrows.lend(inspect_controller(controller)[1])
            stack.callback(loan.release)
        yield


_registered: dict[str, _narrows.Loan] = {}


def register(controller: _T) -> _T:
    """Make a class available by name in all specifications and scenarios from now on.

    Classes in ``protocols=[…]`` need not be registered. Registering another class of the same
    name replaces it, unless a call is using it. It can be used as a decorator:

    >>> import narrows
    >>> @narrows.register
    ... class Steady:
    ...     '''Keeps its window.'''
    ...     def __init__(self, window: float = 20.0):
    ...         self.cwnd = window
    ...     def on_ack(self, ack): pass
    >>> found = narrows.compare("dsl", protocols="Steady(window=5),rrtp+Steady", seeds=2)
    >>> [row["protocol"] for row in found.to_dict()["results"]]
    ['Steady(window=5)', 'rrtp+Steady']
    """
    _, description = inspect_controller(controller)
    before: Any = _registered.pop(description.name, None)
    if before is not None:
        before.release()
    _registered[description.name] = _narrows.lend(description)
    return controller

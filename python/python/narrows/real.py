"""Protocols outside of the simulation: over UDP sockets, and in the kernel's TCP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from . import _narrows, units
from ._narrows import SpecError
from .controller import ProtocolLike, lending, protocol_text
from .links import Link, link_text


@dataclass(frozen=True)
class Transfer:
    """Measurements of one transfer, including its handshake."""

    goodput_bps: float
    """Goodput: application data received in order, bit/s."""
    rtt_s: float
    """Mean round-trip time over reports, s."""
    wait_s: float
    """Mean time of a packet in the link's queue, s."""
    offered: float
    """UDP payload bytes offered to the link per application byte received in order."""


@dataclass(frozen=True)
class Speed:
    """One transfer over real sockets, and the same in simulation."""

    protocol: str
    """As a specification names it."""
    link: str
    """As a specification names it."""
    real: Transfer
    """Measurements over sockets."""
    simulated: Transfer
    """Measurements in simulation, with the same losses if they are uniform."""


def speed(
    protocol: ProtocolLike,
    link: str | Link = "20Mbit/s,25ms",
    *,
    seconds: float | timedelta = 5.0,
    seed: int = 1,
    packet: int = 1500,
) -> Speed:
    """Transfer data over real UDP sockets of this machine, through a relay that emulates the link.

    Your own class runs as ``rrtp+NAME``: over encrypted connections of rrtp, with client,
    relay and server in this process.

    >>> import narrows
    >>> class Twenty:
    ...     cwnd = 20.0
    ...     def on_ack(self, ack): pass
    >>> seen = narrows.speed(Twenty, "5Mbit/s,10ms", seconds=1)
    >>> seen.protocol, seen.real.goodput_bps > 1e6
    ('rrtp+Twenty', True)

    Raises :class:`ControllerError` if the controller raises an exception or sets an invalid limit.
    """
    name, path = protocol_text(protocol), link_text(link)
    if not isinstance(protocol, str):
        name = f"rrtp+{name}"
    length = units.seconds(seconds, "seconds")
    with lending([protocol]):
        with _raising(name):
            real, simulated = _narrows.loopback(name, path, length, packet, seed)
        return Speed(name, path, Transfer(**real), Transfer(**simulated))


@contextmanager
def _raising(specification: str) -> Iterator[None]:
    """Raise at the end of a ``with`` block an exception of a controller outside of simulations.

    It replaces another exception of the block, which is a consequence of it.
    """
    name = specification.removeprefix("rrtp+").partition("(")[0]
    while _narrows.take_failure(name) is not None:
        pass  # an exception of an earlier call
    try:
        yield
    finally:
        error = _narrows.take_failure(name)
        if error is not None:
            raise error


@contextmanager
def in_kernel(protocol: ProtocolLike) -> Iterator[str]:
    """Put a controller into the Linux kernel's list of congestion controls within a ``with`` block.

    Yields the name for ``TCP_CONGESTION``. An eBPF program (Linux 6.4 or newer, root) calls the
    controller at each acknowledgement. If the answer is late, as after the block or an error, the
    connection continues as Reno. Times are in s since shortly before the block. An exception of the
    controller is raised at the block's end::

        with narrows.in_kernel(Gentle) as name:
            s = socket.create_connection(("example.org", 80))
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())

    Raises :class:`PermissionError` without root, :class:`OSError` if the kernel lacks a feature, and
    :class:`SpecError` if the controller cannot run in the kernel's TCP.
    """
    if not hasattr(_narrows, "InKernel"):
        raise OSError("controllers in the kernel are Linux's: this system has no eBPF TCP")
    name = protocol_text(protocol)
    if name.startswith("rrtp+"):
        raise SpecError(f"'{name}' is a protocol over UDP; the kernel has '{name[5:]}'")
    with lending([protocol]), _raising(name):
        loaded = _narrows.InKernel(name)
        try:
            yield loaded.name
        finally:
            loaded.unload()

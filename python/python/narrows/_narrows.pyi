"""The compiled part; use the exports of the package narrows instead."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

__version__: str

class SpecError(ValueError): ...
class ControllerError(RuntimeError): ...

class Table:
    def __init__(self, columns: list[tuple[str, str, str, str, list[Any]]]) -> None: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...
    def columns(self) -> list[tuple[str, str, str]]: ...
    def column(self, name: str) -> list[Any]: ...

class Outcome:
    def __init__(self, toml: str, packed: tuple[Any, ...]) -> None: ...
    def json(self) -> str: ...
    def means(self) -> Table: ...
    def seeds(self) -> Table: ...
    def flows(self) -> Table: ...
    def series(self) -> Table: ...
    def text(self) -> str: ...
    def svg(self) -> str: ...
    def html(self) -> str: ...
    def toml(self) -> str: ...
    def write(self, folder: Path) -> list[Path]: ...

def compare(
    given: list[tuple[str, str]], progress: Callable[[float], object] | None
) -> Outcome: ...
def run(
    given: list[tuple[str, str]],
    text: tuple[str, str] | None,
    progress: Callable[[float], object] | None,
) -> Outcome: ...
def scorecard(
    protocol: str,
    networks: int,
    seed: int,
    jobs: int | None,
    progress: Callable[[float], object] | None,
) -> tuple[str, str]: ...

class Sweep:
    def __init__(
        self,
        given: list[tuple[str, str]],
        text: tuple[str, str] | None,
        folder: Path | None,
        fresh: bool,
    ) -> None: ...
    def execute(self, progress: Callable[[float], object] | None) -> None: ...
    def missing(self) -> list[tuple[int, int, float]]: ...
    def add(self, point: int, seed: int, line: str) -> None: ...
    def finished(self) -> list[tuple[int, int, str]]: ...
    def is_traced(self, seed: int) -> bool: ...
    def counts(self) -> tuple[int, int]: ...
    def json(self) -> str: ...
    def runs(self) -> Table: ...
    def points(self) -> Table: ...
    def text(self) -> str: ...
    def html(self) -> str: ...
    def write(self, folder: Path) -> list[Path]: ...

def sweep_runs(
    given: list[tuple[str, str]],
    text: tuple[str, str] | None,
    tasks: list[tuple[int, int, bool]],
) -> list[str]: ...

class Ack:
    """An acknowledgement, the argument of ``on_ack``.

    The object is reused for the next one unless a reference to it is kept.
    """

    @property
    def now(self) -> float:
        """Time of its arrival, s since the start."""

    @property
    def rtt(self) -> float:
        """Round-trip time of the packet that triggered it, s."""

    @property
    def srtt(self) -> float:
        """Smoothed round-trip time (RFC 6298), s."""

    @property
    def rttvar(self) -> float:
        """Variation of the round-trip time (RFC 6298), s."""

    @property
    def min_rtt(self) -> float:
        """Smallest round-trip time of the connection so far, s."""

    @property
    def forward_delay(self) -> float | None:
        """One-way delay of that packet plus an unknown constant, s; ``None`` over TCP."""

    @property
    def newly_acked(self) -> int:
        """Segments by which the cumulative acknowledgement advanced; 0 for a duplicate."""

    @property
    def counted(self) -> int:
        """Segments by which it may let a window grow (RFC 3465): ``newly_acked``, with a limit."""

    @property
    def newly_sacked(self) -> int:
        """Segments newly reported by SACK above the cumulative acknowledgement."""

    @property
    def newly_delivered(self) -> int:
        """Segments newly delivered, as far as the sender can tell."""

    @property
    def duplicate(self) -> bool:
        """Whether it is a duplicate (RFC 5681)."""

    @property
    def flight(self) -> int:
        """Segments sent and not cumulatively acknowledged, after it (FlightSize)."""

    @property
    def outstanding(self) -> int:
        """Segments outstanding after it, as loss recovery counts them (pipe)."""

    @property
    def prior_outstanding(self) -> int:
        """Segments outstanding before it, as loss recovery counts them (pipe)."""

    @property
    def sent_since(self) -> int:
        """Packets sent after the one that triggered it."""

    @property
    def window_limited(self) -> bool:
        """Whether the window was the limit when it arrived, so that growth is justified."""

    @property
    def in_recovery(self) -> bool:
        """Whether recovery is in progress; also true for the acknowledgement that ends it."""

    @property
    def round(self) -> int:
        """Number of the round trip."""

    @property
    def round_start(self) -> bool:
        """Whether it begins a round trip."""

    @property
    def marks(self) -> int:
        """CE marks (ECN) newly reported."""

    @property
    def delivery_rate(self) -> float | None:
        """Delivery-rate sample, segments/s; ``None`` without a sample."""

    @property
    def app_limited(self) -> bool:
        """Whether the application, not the network, limited that sample."""

    @property
    def may_grow(self) -> bool:
        """Whether an ACK-clocked window may grow by it.

        It advances, no retransmission is in progress, the window was the limit, and it
        reports no mark.
        """

class Loss:
    """The beginning of a recovery, the argument of ``on_loss``.

    Losses were detected, or ECN marks arrived; at most once per window.
    """

    @property
    def now(self) -> float:
        """Time, s since the start."""

    @property
    def cause(self) -> str:
        """``"loss"``, or ``"ecn"`` for marks."""

    @property
    def flight(self) -> int:
        """Segments in flight (FlightSize)."""

    @property
    def outstanding(self) -> int:
        """Segments outstanding, as loss recovery counts them (pipe)."""

    @property
    def min_rtt(self) -> float:
        """Smallest round-trip time of the connection, s."""

    @property
    def srtt(self) -> float:
        """Smoothed round-trip time, s."""

class Timeout:
    """Expiry of the retransmission timer, the argument of ``on_rto``."""

    @property
    def now(self) -> float:
        """Time, s since the start."""

    @property
    def flight(self) -> int:
        """Segments in flight before it (FlightSize)."""

    @property
    def backoffs(self) -> int:
        """Consecutive timeouts of the same segment, this one included."""

    @property
    def min_rtt(self) -> float:
        """Smallest round-trip time of the connection, s."""

    @property
    def srtt(self) -> float:
        """Smoothed round-trip time, s."""

class PacketOutcome:
    """The outcome of one packet, the argument of ``on_outcome``: it arrived or was lost."""

    @property
    def now(self) -> float:
        """Time at which the outcome was detected, s since the start."""

    @property
    def sent(self) -> float:
        """Time at which the packet was sent, s since the start."""

    @property
    def number(self) -> int:
        """Number of the packet; numbers are never reused."""

    @property
    def bytes(self) -> int:
        """Size of the packet on the wire, bytes."""

    @property
    def lost(self) -> bool:
        """Whether it was lost (RFC 9002 section 6.1)."""

    @property
    def marked(self) -> bool:
        """Whether it arrived with a CE mark (ECN)."""

    @property
    def radio(self) -> bool:
        """Whether the receiver attributes the loss to the radio link rather than to congestion."""

class Hints:
    """Properties of the path that have changed or become known, the argument of ``on_hints``.

    They replace estimates.
    """

    @property
    def now(self) -> float:
        """Time, s since the start."""

    @property
    def rate(self) -> float | None:
        """Rate of the path, bit/s."""

    @property
    def rtt(self) -> float | None:
        """Round-trip time of the path with empty queues, s."""

    @property
    def loss(self) -> float | None:
        """Share of packets that the path loses without congestion, 0 to 1."""

class Dispersion:
    """Dispersion of back-to-back packets in the handshake, the argument of ``on_dispersion``.

    At most once, usually before the first acknowledgement.
    """

    @property
    def now(self) -> float:
        """Time, s since the start."""

    @property
    def rate(self) -> float:
        """Rate at which the packets arrived, bit/s."""

    @property
    def rtt(self) -> float:
        """Round-trip time of a small packet, s."""

class Start:
    """State before the first packet, the argument of ``on_start``."""

    @property
    def initial_window(self) -> float:
        """Initial window, segments."""

    @property
    def initial_ssthresh(self) -> float:
        """Initial slow-start threshold, segments; infinite if there is no limit."""

    @property
    def expects_dispersion(self) -> bool:
        """Whether the handshake probes the path's rate, so that ``on_dispersion`` may follow."""

    @property
    def packet_bytes(self) -> int:
        """Size of a full packet on the wire, bytes."""

    @property
    def seed(self) -> int:
        """Seed for random numbers.

        It differs for each flow and each seed of the run, and is the same in a
        repetition.
        """

    @property
    def rate_hint(self) -> float | None:
        """Rate of the path, bit/s, if the user has given a hint."""

    @property
    def rtt_hint(self) -> float | None:
        """Round-trip time of the path with empty queues, s, if the user has given a hint."""

    @property
    def loss_hint(self) -> float | None:
        """Share of packets that the path loses without congestion, if the user has given a hint."""

class Loan:
    def release(self) -> None: ...

def lend(description: object) -> Loan: ...
def layouts() -> list[tuple[list[tuple[str, str, int]], int]]: ...
def example_start() -> Start: ...
def take_failure(name: str) -> ControllerError | None: ...
def loopback(
    protocol: str, link: str, seconds: float, packet: int, seed: int
) -> tuple[dict[str, float], dict[str, float]]: ...

class InKernel:
    @property
    def name(self) -> str: ...
    def __new__(cls, specification: str) -> InKernel: ...
    def unload(self) -> None: ...

# For narrows.env. Arrays are annotated as object, so that this file needs no NumPy. Each is
# contiguous and has the type in the comment; n is the number of environments.

def env_lists() -> tuple[
    list[tuple[str, str, float, float, str]],
    list[tuple[str, str, float, float, str]],
    list[tuple[str, str]],
    list[str],
]: ...
def env_defaults() -> tuple[str, list[str], list[tuple[str, float]]]: ...

class Environments:
    def __init__(
        self,
        *,
        link: str,
        packet: int,
        preset: str,
        transport: str,
        protocol: str | None,
        against: str | None,
        actions: list[str],
        observations: list[str],
        rewards: list[tuple[str, float]],
        step: str,
        steps: int,
        num_envs: int,
        threads: int,
        autoreset: str,
    ) -> None: ...
    def reset(
        self,
        seeds: object,  # uint64 (n,) or None
        mask: object,  # bool (n,) or None
        observations: object,  # float32 (n, observations), written
    ) -> None: ...
    def step(
        self,
        actions: object,  # float32 (n, actions)
        observations: object,  # float32 (n, observations), written
        rewards: object,  # float64 (n,), written
        truncated: object,  # bool (n,), written
        last: object,  # float32 (n, observations), written where episodes ended, or None
    ) -> None: ...
    def paths(self) -> list[tuple[float, float]]: ...
    def links(self) -> list[str]: ...
    def means(self) -> list[list[float]]: ...
    def keep_trace(self, index: int) -> None: ...
    def trace(self, index: int) -> list[list[float]]: ...
    def svg(self, index: int) -> str: ...

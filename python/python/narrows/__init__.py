"""Shows how each transport protocol would perform on your link, and why.

>>> import narrows
>>> result = narrows.compare("20Mbit/s,25ms,loss=0.5%", protocols=["cubic", "bbr"], seeds=2)
>>> result.means["protocol"]
['cubic', 'bbr']
"""

from ._narrows import SpecError, __version__
from .comparison import compare, run
from .compiled import compiled
from .controller import (
    Ack,
    Controller,
    ControllerError,
    Dispersion,
    Hints,
    Loss,
    PacketOutcome,
    Start,
    Timeout,
    register,
)
from .links import Link
from .real import Speed, Transfer, in_kernel, speed
from .results import Comparison
from .scenario import Change, Flow, Scenario, Wire
from .scorecards import Scorecard, scorecard
from .sweeps import Sweep, sweep
from .tables import Column, Table

__all__ = [
    "Ack",
    "Change",
    "Column",
    "Comparison",
    "Controller",
    "ControllerError",
    "Dispersion",
    "Flow",
    "Hints",
    "Link",
    "Loss",
    "PacketOutcome",
    "Scenario",
    "Scorecard",
    "SpecError",
    "Speed",
    "Start",
    "Sweep",
    "Table",
    "Timeout",
    "Transfer",
    "Wire",
    "__version__",
    "compare",
    "compiled",
    "in_kernel",
    "register",
    "run",
    "scorecard",
    "speed",
    "sweep",
]

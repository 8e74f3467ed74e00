"""What each transport protocol would give you on your link, and why.

>>> import narrows
>>> result = narrows.compare("20Mbit/s,25ms,loss=0.5%", protocols=["cubic", "bbr"], seeds=2)
>>> result.means["protocol"]
['cubic', 'bbr']
"""

from ._narrows import SpecError, __version__
from .comparison import compare, run
from .links import Link
from .results import Comparison
from .scenario import Change, Flow, Scenario, Wire
from .sweeps import Sweep, sweep
from .tables import Column, Table

__all__ = [
    "Change",
    "Column",
    "Comparison",
    "Flow",
    "Link",
    "Scenario",
    "SpecError",
    "Sweep",
    "Table",
    "Wire",
    "__version__",
    "compare",
    "run",
    "sweep",
]

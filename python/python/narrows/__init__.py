"""What each transport protocol would give you on your link, and why.

>>> import narrows
>>> result = narrows.compare("20Mbit/s,25ms,loss=0.5%", protocols="cubic,bbr", seeds=2)
>>> [row["protocol"] for row in result.to_dict()["results"]]
['cubic', 'bbr']
"""

from ._narrows import SpecError, __version__
from .comparison import compare
from .results import Comparison

__all__ = ["Comparison", "SpecError", "__version__", "compare"]

"""The compiled part; use what the package narrows exports."""

from collections.abc import Callable

__version__: str

class SpecError(ValueError): ...

class Comparison:
    def json(self) -> str: ...

def compare(
    link: str, protocols: str, seeds: int, progress: Callable[[float], object] | None = None
) -> Comparison: ...

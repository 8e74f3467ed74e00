"""Tables that any reader of Arrow can use without a copy."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _narrows

if TYPE_CHECKING:
    import pandas
    import polars


class Column(NamedTuple):
    """Description of a column: its name, its unit (empty if it has no unit), and its meaning."""

    name: str
    unit: str
    meaning: str


class Table:
    """Columns of equal length in Arrow's memory format.

    Libraries with the Arrow PyCapsule interface read it without a copy: ``polars.DataFrame(table)``,
    ``pyarrow.table(table)``, ``duckdb.sql("from table")``, ``pandas.DataFrame.from_arrow(table)`` (pandas 3).
    Absent numbers are null.

    >>> import narrows
    >>> means = narrows.compare("dsl", protocols="cubic,bbr", seeds=2).means
    >>> len(means), means["protocol"]
    (2, ['cubic', 'bbr'])
    >>> next(column for column in means.columns if column.name == "rtt_s_mean").unit
    's'
    """

    def __init__(self, table: _narrows.Table) -> None:
        """Wrap a compiled table."""
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow's C interface."""
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return the schema of Arrow's C interface."""
        return self._table.__arrow_c_schema__()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._table)

    def __getitem__(self, name: str) -> list[Any]:
        """Return a column's values, with None for absent ones."""
        return self._table.column(name)

    def __repr__(self) -> str:
        """Return the table's size and its first columns as text."""
        names = [column.name for column in self.columns]
        more = ", …" if len(names) > 6 else ""
        return f"<narrows.Table: {len(self)} rows of {len(names)} columns: {', '.join(names[:6])}{more}>"

    @property
    def columns(self) -> list[Column]:
        """Name, unit and meaning of every column."""
        return [Column(*column) for column in self._table.columns()]

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists."""
        return {column.name: self[column.name] for column in self.columns}

    def to_polars(self) -> polars.DataFrame:
        """Return a polars DataFrame, which shares the memory."""
        frame: polars.DataFrame = _needed("polars").DataFrame(self)
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas DataFrame."""
        pandas = _needed("pandas")
        if hasattr(pandas.DataFrame, "from_arrow"):
            return pandas.DataFrame.from_arrow(self)
        return pandas.DataFrame(self.to_dict())


def _needed(name: str) -> ModuleType:
    """Import an optional package; if it is missing, raise an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise ImportError(f"this needs {name} ({e}): pip install 'narrows[{name}]'") from e

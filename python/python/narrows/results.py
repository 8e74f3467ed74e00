"""Results of comparisons and scenarios, as tables and pictures."""

from __future__ import annotations

import html
import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _narrows, figures
from .tables import Table

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure


class Comparison:
    """Results for each protocol or group of flows: means with 95% intervals, all seeds, all time series.

    A notebook shows them as a table and a chart.

    >>> import narrows
    >>> result = narrows.compare("20Mbit/s,25ms,loss=0.5%", protocols=["cubic", "bbr"], seeds=3)
    >>> result.means.to_polars().select("protocol", "seeds").rows()
    [('cubic', 3), ('bbr', 3)]
    """

    def __init__(self, found: _narrows.Outcome) -> None:
        """Wrap a result of the compiled part."""
        self._found = found
        self._tables: dict[str, Table] = {}

    def to_dict(self) -> dict[str, Any]:
        """Return the same object that the command's ``--json`` prints."""
        found: dict[str, Any] = json.loads(self._found.json())
        return found

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = Table(getattr(self._found, name)())
        return self._tables[name]

    @property
    def means(self) -> Table:
        """One row per protocol: each measure's mean over seeds, and ``…_low``, ``…_high``, its 95% interval."""
        return self._table("means")

    @property
    def seeds(self) -> Table:
        """One row per protocol and seed: each measure's value."""
        return self._table("seeds")

    @property
    def flows(self) -> Table:
        """One row per flow: the measures that exist for a single flow, as in ``means``."""
        return self._table("flows")

    @property
    def series(self) -> Table:
        """One row per flow or link and sample time, for the first seed: cwnd, RTT, queue and others."""
        return self._table("series")

    @property
    def recommendation(self) -> str:
        """The recommended protocols for this link, with reasons; empty for a scenario."""
        return str(self.to_dict()["recommendation"])

    @property
    def notes(self) -> list[str]:
        """Remarks that are necessary for reading the results."""
        return [str(note) for note in self.to_dict()["notes"]]

    def to_polars(self) -> polars.DataFrame:
        """Return ``means`` as a polars DataFrame."""
        return self.means.to_polars()

    def to_pandas(self) -> pandas.DataFrame:
        """Return ``means`` as a pandas DataFrame."""
        return self.means.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return ``means`` as a stream of Arrow's C interface."""
        return self.means.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """Return the table that the command prints, and the recommendation."""
        about = self.to_dict()
        parts = [f"{about['link']}\n{about['path']}\n", self._found.text()]
        if about["recommendation"]:
            parts.append(about["recommendation"])
        parts += [f"Note: {note}." for note in about["notes"]]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        """Return the chart and the table for a notebook."""
        text = html.escape(repr(self))
        return f"<div>{self.svg()}<pre>{text}</pre></div>"

    def svg(self) -> str:
        """Return the command's ``comparison.svg``: goodput and delay side by side."""
        return self._found.svg()

    def report(self) -> str:
        """Return the command's ``report.html``, a page without external resources."""
        return self._found.html()

    def scenario(self) -> str:
        """Return the simulated scenario as the text of a file, as ``--save`` writes it."""
        return self._found.toml()

    def write(self, folder: str | PathLike[str]) -> list[Path]:
        """Write the files that the command writes under ``--out``, and return their paths."""
        return [Path(path) for path in self._found.write(Path(folder))]

    def plot(self, *columns: str, width: float | None = None) -> Figure:
        """Draw results by matplotlib (``pip install narrows[plot]``).

        Measures of ``means`` become bars with 95% intervals, by default goodput and delay. Columns of ``series``, such
        as ``cwnd`` or ``queue``, become lines over time, one panel below the other. A ``width`` (inches) of 3.35 fits a
        column of a paper.

        >>> import narrows
        >>> narrows.compare("dsl", protocols="cubic,bbr", seeds=1).plot("cwnd", width=3.35).axes[0].get_ylabel()
        'cwnd (packets)'
        """
        return figures.draw(self.means, self.series, columns or ("goodput_bps", "rtt_s_p95"), width)

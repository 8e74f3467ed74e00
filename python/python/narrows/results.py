"""Results of comparisons and scenarios, as tables and pictures."""

from __future__ import annotations

import html
import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _narrows
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
        """One row per protocol: each measure's mean over seeds, and ``…_ci95``, half of its 95% interval."""
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

    def plot(self, measures: tuple[str, str] = ("goodput_bps", "rtt_s_p95")) -> Figure:
        """Draw two measures as bars with 95% intervals, by matplotlib (``pip install narrows[plot]``)."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10, 0.4 * len(self.means) + 1.2), layout="constrained")
        units = {column.name: column.unit for column in self.means.columns}
        axes = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for panel, measure in zip(axes, measures, strict=True):
            values = [float("nan") if x is None else x for x in self.means[measure]]
            halves = [x or 0.0 for x in self.means[f"{measure}_ci95"]]
            panel.barh(self.means["protocol"], values, xerr=halves)
            panel.set_xlabel(f"{measure} ({units[measure]})" if units[measure] else measure)
        axes[0].invert_yaxis()
        return figure

"""Figures of results, by matplotlib."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .tables import Table

# Figures up to this width in inches have the small text and thin lines of a paper's column.
COLUMN_INCHES = 4.0


def draw(means: Table, series: Table, columns: tuple[str, ...], width: float | None) -> Figure:
    """Draw measures as bars with their intervals, or columns of the time series as lines."""
    import matplotlib

    measures = {column.name for column in means.columns if column.name.endswith("_low")}
    is_bars = all(f"{name}_low" in measures for name in columns)
    known = {column.name for column in series.columns}
    unknown = [name for name in columns if not is_bars and name not in known]
    if unknown:
        message = f"no column '{unknown[0]}' of the series, which could be drawn over time"
        raise ValueError(message)
    is_narrow = width is not None and width <= COLUMN_INCHES
    with matplotlib.rc_context({"font.size": 8, "lines.linewidth": 0.8} if is_narrow else None):
        if is_bars:
            return _bars(means, columns, width or 10.0)
        return _lines(series, columns, width or 8.0)


def _figure(width: float, height: float) -> Figure:
    """Return an empty figure that a notebook shows, with any backend or none."""
    from matplotlib.figure import Figure

    class Shown(Figure):
        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    return Shown(figsize=(width, height), layout="constrained")


def _bars(means: Table, measures: tuple[str, ...], width: float) -> Figure:
    from matplotlib.ticker import EngFormatter

    figure = _figure(width, 0.04 * width * len(means) + 1.2)
    units = {column.name: column.unit for column in means.columns}
    axes = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
    for panel, measure in zip(axes, measures, strict=True):
        values = [float("nan") if x is None else x for x in means[measure]]
        errors = [
            [0.0 if end is None else abs(end - x) for x, end in zip(values, ends, strict=True)]
            for ends in (means[f"{measure}_low"], means[f"{measure}_high"])
        ]
        panel.barh(means["protocol"], values, xerr=errors)
        panel.set_xlabel(_label(measure, units[measure]))
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes[0].invert_yaxis()
    return figure


def _lines(series: Table, columns: tuple[str, ...], width: float) -> Figure:
    figure = _figure(width, width * (0.62 if len(columns) == 1 else 0.4 * len(columns)))
    units = {column.name: column.unit for column in series.columns}
    axes = figure.subplots(len(columns), 1, sharex=True, squeeze=False)
    colors: dict[str, str] = {}
    for (panel,), column in zip(axes, columns, strict=True):
        for name, (times, values) in _over_time(series, column).items():
            panel.plot(times, values, label=name, color=colors.setdefault(name, f"C{len(colors)}"))
        panel.set_ylabel(_label(column, units[column]))
        panel.set_ylim(bottom=0)
    axes[-1][0].set_xlabel("time (s)")
    lines = {line.get_label(): line for (panel,) in axes for line in panel.lines}
    figure.legend(lines.values(), lines, loc="outside upper center", ncols=4, frameon=False)
    return figure


def _over_time(series: Table, column: str) -> dict[str, tuple[list[float], list[float]]]:
    """Return times and values of a column for each flow, or for each link if only links have it."""
    rows = zip(
        series["kind"],
        series["protocol"],
        series["name"],
        series["time_s"],
        series[column],
        strict=True,
    )
    numbers = [row for row in rows if isinstance(row[4], (int, float))]
    kinds = {row[0] for row in numbers}
    kind = next((k for k in ("flow", "link", "group") if k in kinds), "")
    lines: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    for _, protocol, name, time, value in (row for row in numbers if row[0] == kind):
        times, values = lines.setdefault((protocol, name), ([], []))
        # A link that is the bottleneck of several groups is listed for each of them.
        if not times or time > times[-1]:
            times.append(time)
            values.append(value)
    protocols = [protocol for protocol, _ in lines]
    return {
        protocol if protocols.count(protocol) == 1 else f"{protocol} {name}": line
        for (protocol, name), line in lines.items()
    }


def _label(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name

"""Results as tables and pictures, and the cost of importing and interrupting."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import narrows
import pytest


@pytest.fixture(scope="module")
def found():
    return narrows.compare("2Mbit/s,10ms,loss=1%", protocols="reno,tfrc", duration=10, seeds=3)


def test_tables_have_the_numbers_of_the_json(found):
    printed = found.to_dict()["results"]
    assert found.means["goodput_bps"] == [row["goodput_bps"]["mean"] for row in printed]
    ends = zip(found.means["goodput_bps_low"], found.means["goodput_bps_high"], strict=True)
    assert [list(pair) for pair in ends] == [row["goodput_bps"]["ci95"] for row in printed]
    by_seed = [
        (row["protocol"], s["seed"], s["rtt_s_p95"]) for row in printed for s in row["by_seed"]
    ]
    seeds = found.seeds
    assert list(zip(seeds["protocol"], seeds["seed"], seeds["rtt_s_p95"], strict=True)) == by_seed
    flows = [flow["flow"] for row in printed for flow in row["per_flow"]]
    assert found.flows["flow"] == flows
    # Absent values of a protocol are null, not NaN.
    assert all(value is None or value == value for value in found.series["cwnd"])
    assert {"reno", "tfrc"} == set(found.series["protocol"])


def test_polars_pandas_and_pyarrow_read_the_same(found):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("polars")
    pytest.importorskip("pandas")
    series = found.series
    arrow = pyarrow.table(series)
    assert arrow.num_rows == len(series)
    assert arrow.schema.field("rtt_s").metadata[b"unit"] == b"s"
    expected = series["queue"]
    assert arrow["queue"].to_pylist() == expected
    assert series.to_polars()["queue"].to_list() == expected
    frame = series.to_pandas()["queue"]
    assert [None if x != x else x for x in frame] == expected
    assert found.to_polars().height == len(found.to_pandas()) == 2


def test_a_reader_shares_the_tables_memory(found):
    pyarrow = pytest.importorskip("pyarrow")
    series = found.series
    addresses = [pyarrow.table(series)["time_s"].chunk(0).buffers()[1].address for _ in range(2)]
    assert addresses[0] == addresses[1], "one memory, however often it is read"
    column = pyarrow.table(series)["time_s"]
    before = column.to_pylist()
    del series
    assert column.to_pylist() == before, "which lives as long as a reader"


def test_every_column_of_measures_is_explained(found):
    names = ("protocol", "group", "flow", "flows", "seed", "seeds", "kind", "name")
    for table in (found.means, found.seeds, found.flows, found.series):
        for column in table.columns:
            assert column.meaning or column.name in names, column.name


def test_pictures_and_files_are_the_commands(found, tmp_path):
    assert found.svg().startswith("<svg")
    assert found._repr_html_().startswith("<div><svg")
    written = {path.name for path in found.write(tmp_path)}
    assert {"report.html", "summary.json", "series.parquet", "comparison.svg"} <= written
    assert json.loads((tmp_path / "summary.json").read_text()) == found.to_dict()
    assert (tmp_path / "report.html").read_text() == found.report()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="not a folder"):
        found.write(tmp_path / "file" / "x")


def test_plot_draws_measures_as_bars(found):
    pytest.importorskip("matplotlib")
    axes = found.plot().axes
    assert [panel.get_xlabel() for panel in axes] == ["goodput_bps (bit/s)", "rtt_s_p95 (s)"]


def test_plot_draws_columns_of_the_series_over_time(found):
    pytest.importorskip("matplotlib")
    figure = found.plot("cwnd", "queue", width=3.35)
    assert [panel.get_ylabel() for panel in figure.axes] == ["cwnd (packets)", "queue (packets)"]
    assert figure.axes[1].get_xlabel() == "time (s)"
    assert figure._repr_png_().startswith(b"\x89PNG"), "which a notebook shows"
    lines = [[line.get_label() for line in panel.lines] for panel in figure.axes]
    assert lines == [["reno"], ["reno", "tfrc"]], "tfrc has no window"
    windows = figure.axes[0].lines[0].get_ydata()
    rows = zip(found.series["kind"], found.series["cwnd"], strict=True)
    assert list(windows) == [cwnd for kind, cwnd in rows if kind == "flow" and cwnd is not None]
    with pytest.raises(ValueError, match="no column 'cwmd'"):
        found.plot("cwmd")


def test_a_link_of_several_groups_is_one_line():
    pytest.importorskip("matplotlib")
    ends = ("a", "b")
    flows = [narrows.Flow("reno", ends, name=name) for name in ("first", "second")]
    link = narrows.Link("1Mbit/s", "10ms")
    result = narrows.run(
        narrows.Scenario(links=[narrows.Wire(ends, link)], flows=flows, duration=5)
    )
    (panel,) = result.plot("queue").axes
    (line,) = panel.lines
    assert sorted(line.get_xdata()) == list(line.get_xdata())


def test_importing_loads_nothing_large():
    code = "import sys, narrows; print([m for m in sys.modules if m in %r])"
    large = ("pandas", "polars", "matplotlib", "dask", "distributed", "numpy", "tqdm", "pyarrow")
    printed = subprocess.run(
        [sys.executable, "-c", code % (large,)], capture_output=True, text=True
    )
    assert printed.stdout.strip() == "[]", printed.stderr


def test_other_threads_run_while_a_simulation_does():
    counted = 0
    ended = threading.Event()

    def simulate():
        narrows.compare("100Mbit/s,10ms", protocols="cubic", duration=20, seeds=2)
        ended.set()

    thread = threading.Thread(target=simulate)
    thread.start()
    while not ended.is_set():
        counted += 1
        time.sleep(0.001)
    thread.join()
    assert counted > 3, "the GIL was held"


def test_ctrl_c_stops_a_simulation():
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        # Hours of work, which must leave no files behind.
        narrows.compare("1Gbit/s,10ms", duration="100min", seeds=100)
    assert threading.active_count() <= 2


def test_what_progress_raises_ends_the_work():
    def stop(fraction: float) -> None:
        raise RuntimeError(f"at {fraction}")

    with pytest.raises(RuntimeError, match="at 0"):
        narrows._narrows.compare([("link", "1Gbit/s,10ms"), ("duration", "100min")], stop)

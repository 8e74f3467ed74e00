"""Reads each Parquet file that a command writes with each installed reader: ``read_parquet.py NARROWS``."""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow.parquet

LINK = "10Mbit/s,10ms"
SHORT = ["--link", LINK, "--duration", "3s"]
#: The commands that write Parquet, and their files. Recordings of all commands have the same writer as ``speed``.
COMMANDS = [
    (["compare", *SHORT, "--protocols", "reno,tfrc,rrtp", "--out"], {"series", "seeds"}),
    (["run", "{scenario}", "--out"], {"series", "seeds"}),
    (
        ["sweep", *SHORT, "--protocols", "reno", "--vary", "loss=0%,1%", "--out"],
        {"sweep", "points"},
    ),
    (["speed", "--link", LINK, "--duration", "1s", "--record"], {"series"}),
]
#: Of some columns: the file, the name, and what pyarrow finds there: the type, the unit and the meaning.
EXPLAINED = [
    ("series", "rtt_s", ("double", "s", "round-trip time that the last acknowledgement showed")),
    ("seeds", "seed", ("int64", "", "")),
    ("seeds", "timeouts", ("double", "", "retransmission timeouts")),
]


def check_explained(file: Path) -> set[tuple[str, str]]:
    """Compare the explanations of a file's columns, and return the columns."""
    schema = pyarrow.parquet.read_schema(file)
    found = set()
    for name, column, wanted in EXPLAINED:
        if file.stem == name and column in schema.names:
            field = schema.field(column)
            says = {key.decode(): text.decode() for key, text in (field.metadata or {}).items()}
            explained = (str(field.type), says.get("unit", ""), says.get("meaning", ""))
            assert explained == wanted, f"{column} of {file}: {explained}"
            found.add((name, column))
    return found


def values(column: object) -> list[object]:
    """Return a column's values, with None for NaN, for any reader."""
    return [None if isinstance(x, float) and math.isnan(x) else x for x in column]  # type: ignore[attr-defined]


def check(file: Path) -> None:
    """Read a file with every reader, and compare the values."""
    arrow = pyarrow.parquet.read_table(file)
    assert arrow.num_rows > 0, file
    readers = {
        "pandas": pandas.read_parquet(file).to_dict("list"),
        "polars": polars.read_parquet(file).to_dict(as_series=False),
        "DuckDB": duckdb.sql(f"select * from read_parquet('{file}')").df().to_dict("list"),
    }
    for reader, table in readers.items():
        assert list(table) == arrow.column_names, f"{reader} finds other columns in {file}"
        for name in arrow.column_names:
            wanted = values(arrow[name].to_pylist())
            assert values(table[name]) == wanted, f"{reader} reads {name} of {file} otherwise"


def main(command: str) -> None:
    """Run every command, and read its files."""
    versions = ", ".join(f"{m.__name__} {m.__version__}" for m in (polars, pandas, pyarrow, duckdb))
    with tempfile.TemporaryDirectory() as name:
        scenario = Path(name) / "s.toml"
        saved = [command, "compare", *SHORT, "--protocols", "reno", "--seeds", "2"]
        subprocess.run(
            [*saved, "--save", str(scenario), "--out", f"{name}/saved"],
            check=True,
            capture_output=True,
        )
        explained = set()
        for number, (words, expected) in enumerate(COMMANDS):
            folder = Path(name) / str(number)
            line = [command, *(word.format(scenario=scenario) for word in words), str(folder)]
            done = subprocess.run(line, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{line}: {done.stderr}"
            files = list(folder.rglob("*.parquet"))
            assert {file.stem for file in files} == expected, f"{line}: {files}"
            for file in files:
                check(file)
                explained |= check_explained(file)
        assert explained == {(name, column) for name, column, _ in EXPLAINED}, explained
    print(f"Parquet files of {len(COMMANDS)} commands: read by {versions}")


if __name__ == "__main__":
    main(sys.argv[1])

"""Fixtures of several tests."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def command():
    """The command, from the same sources: called with words, it returns the output of `--json` or the error line."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = target / "debug" / "narrows"
    if not binary.exists():
        pytest.skip("the command is not built: cargo build")

    def run(*words: str, folder: Path) -> dict | str:
        words = [*words, "--out", str(folder / "out"), "--json"]
        done = subprocess.run([binary, *words], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout)
        assert done.returncode == 2, done.stderr
        return done.stderr.strip().removeprefix("narrows: ")

    return run

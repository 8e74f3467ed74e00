"""The notebook that trains a controller, cell by cell, with a small budget."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "train_a_controller.ipynb"


@pytest.fixture(scope="module")
def ran():
    """Run all cells, and return the names that they leave."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NARROWS_QUICK", "1")
        for cell in cells:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)
    return names


def test_each_protocol_has_its_row(ran):
    """Results on links that were not used for training are finite, for each protocol."""
    assert set(ran["results"]) == {"learned", "cubic", "bbr", "rrtp"}
    assert all(np.isfinite(list(row.values())).all() for row in ran["results"].values())


def test_training_improves_the_policy(ran):
    """Later generations have higher rewards than the first ones: the gradient's sign is right."""
    _, history = ran["train"](12)
    assert np.mean(history[-3:]) > np.mean(history[:3]) + 0.02


def test_a_population_plays_as_its_members_would(ran):
    """Parameters in rows act on their own environments only."""
    random = np.random.default_rng(1)
    rows = random.standard_normal((3, ran["SIZE"]))
    seen = np.abs(random.standard_normal((12, 6))) + 0.5
    together = ran["act"](rows, seen)
    for i, row in enumerate(rows):
        part = slice(4 * i, 4 * i + 4)
        assert np.allclose(ran["act"](row, seen[part]), together[part])

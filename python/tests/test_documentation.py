"""The examples of the pages on Python work."""

from __future__ import annotations

import re

import narrows
import pytest
from conftest import ROOT


@pytest.mark.parametrize("page", ["docs/python.md", "python/README.md"])
def test_a_pages_examples_run(page):
    pytest.importorskip("polars")
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_the_pages_picture_is_that_of_its_example():
    protocols = ["reno", "cubic", "bbr", "copa", "vegas"]
    result = narrows.compare("20Mbit/s,25ms,loss=0.5%", protocols=protocols)
    page = ROOT / "docs" / "python.svg"
    message = "write it again: pathlib.Path('docs/python.svg').write_text(result.svg()) of the page's first example"
    assert result.svg() == page.read_text(encoding="utf-8"), message

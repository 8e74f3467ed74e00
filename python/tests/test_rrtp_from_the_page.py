"""The specification of rrtp's congestion control is complete: a controller written from it alone runs as rrtp."""

import re
import sys
from fractions import Fraction

import narrows
from conftest import ROOT

sys.path.append(str(ROOT / "python/examples"))
import rrtp_from_the_page as example

ALTERNATING = [f"{200 * i}ms:rate={(8, 2)[i % 2]}Mbit/s" for i in range(1, 25)]
NETWORKS = [
    ("10Mbit/s,20ms", {}),
    ("2.7Mbit/s,10ms,queue=2.2bdp", {}),
    ("6Mbit/s,5ms,queue=2.2bdp", {"against": "sack"}),
    ("1Mbit/s,130ms,queue=0.9bdp", {"against": "sack"}),
    ("5Mbit/s,30ms,loss=1%", {"against": "cubic"}),
    ("4Mbit/s,15ms,jitter=15ms", {"against": "cubic"}),
    ("3Mbit/s,20ms,loss=ge(g=0.2%,h=20%),aqm=codel", {}),
    ("2Mbit/s,50ms", {"change": ["3s:loss=100%", "6s:loss=1%", "9s:rate=500kbit/s"]}),
    ("2Mbit/s,50ms", {"source": "cbr(rate=1Mbit/s)", "reconfigure": "4s:rate=1Mbit/s,rtt=90ms"}),
    ("1Mbit/s,40ms", {"change": ["0s:loss=100%", "2s:loss=2%"]}),
    ("20Mbit/s,40ms", {"duration": "5s"}),
    ("4Mbit/s,20ms,policer=1Mbit/s/30kB", {}),
    ("100Mbit/s,60ms,jitter=40ms", {"duration": "4s"}),
    ("8Mbit/s,8ms,queue=200p", {"duration": "5s", "change": ALTERNATING}),
    ("4Mbit/s,15ms", {"change": ["5s:delay=150ms"]}),
]


def test_the_controller_of_the_page_runs_as_rrtp():
    """Protects the page: an algorithm that changes without its page fails here."""
    narrows.register(example.FromThePage)
    protocols = "rrtp,rrtp+FromThePage(classifier=spike)"
    found = []
    for link, more in NETWORKS:
        more = {"duration": "15s", **more}
        result = narrows.compare(link, protocols=protocols, seeds=1, **more)
        found.append(result.to_dict()["results"])
    own, page = [
        sum(row["goodput_bps"]["mean"] for row in rows) for rows in zip(*found, strict=True)
    ]
    assert abs(page / own - 1) < 0.05
    # Both use the same functions of the C library.
    if sys.platform == "linux":
        different = [
            network
            for network, (a, b) in zip(NETWORKS, found, strict=True)
            if a["digest"] != b["digest"]
        ]
        assert not different, "change docs/rrtp-congestion-control.md and the example as well"


def test_constants_are_those_of_the_page():
    """Protects the page's table of constants."""
    page = (ROOT / "docs/rrtp-congestion-control.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z_, ]+) \| ([0-9./, ]+) \|", page.split("## 6.")[1], flags=re.M)
    given = {}
    for names, values in rows:
        numbers = [float(Fraction(value)) for value in values.split(", ")]
        given.update(zip(names.split(", "), numbers, strict=True))
    source = (ROOT / "core/congestion/src/rrtp/constants.rs").read_text(encoding="utf-8")
    own = re.findall(r"const ([A-Z_]+): \w+ = ([0-9.]+);", source)
    assert given == {name: float(value) for name, value in own}
    assert given == {name: getattr(example, name) for name in given}

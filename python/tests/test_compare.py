"""Comparisons."""

import narrows
import pytest


def test_a_comparison_has_a_result_for_each_protocol():
    found = narrows.compare("2Mbit/s,10ms", protocols="reno,cubic", seeds=2).to_dict()
    assert [r["protocol"] for r in found["results"]] == ["reno", "cubic"]
    assert all(r["utilisation"]["mean"] > 0.5 for r in found["results"])


def test_a_wrong_unit_raises_with_the_place_and_what_would_be_right():
    with pytest.raises(narrows.SpecError, match=r"--link: .*'2Mbitt/s'"):
        narrows.compare("2Mbitt/s,10ms")

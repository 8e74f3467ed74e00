"""Scores of controllers on random networks."""

from __future__ import annotations

import narrows
import pytest
from gentle import Gentle


def test_scorecard_of_a_class_has_its_scores_beside_the_others():
    card = narrows.scorecard(Gentle, networks=1)
    found = card.to_dict()
    assert found["protocol"] == "Gentle"
    assert len(found["networks"]) == 3
    for network in found["networks"]:
        assert sorted(network["figures"]) == ["Gentle", "bbr3", "cubic", "rrtp"]
    harm = next(row for row in found["scores"] if row["score"] == "no more harm than CUBIC")
    assert harm["protocols"]["cubic"]["value"] == 1
    assert str(card).split()[:4] == ["Gentle", "cubic", "bbr3", "rrtp"]


def test_scorecard_raises_exceptions_of_a_class():
    class Breaks(Gentle):
        def on_ack(self, ack):
            raise KeyError("mine")

    with pytest.raises(narrows.ControllerError, match=r"'Breaks' raised in on_ack"):
        narrows.scorecard(Breaks, networks=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"networks": 0}, "networks: a number from 1 to 1000, not 0"),
        ({"jobs": 0}, "jobs: a number from 1 on, not 0"),
    ],
)
def test_scorecard_refuses_numbers_out_of_range(arguments, message):
    with pytest.raises(narrows.SpecError, match=message):
        narrows.scorecard("vegas", **arguments)

"""Controllers that numba compiles."""

import functools
import math
import os
import subprocess
import sys

import narrows
import pytest
from gentle import Gentle
from narrows.controller import lending
from outcomes import HINT, Outcomes

numba = pytest.importorskip("numba")
LINK = "5Mbit/s,20ms,loss=2%"


def rows(found):
    return {row["protocol"]: row for row in found.to_dict()["results"]}


class Everything(Gentle):
    """Gentle, with all optional methods."""

    def __init__(self, limit: float = 1.25):
        super().__init__(limit)
        self.pacing_rate, self.next, self.up = 4e6, 0.5, True

    def on_tick(self, now):
        self.up = not self.up
        self.pacing_rate = 4e6 if self.up else 3e6
        self.next = now + 0.5

    def next_tick(self):
        return self.next


@pytest.mark.parametrize("cls", [Gentle, Everything])
def test_compiled_code_decides_as_python_does(cls):
    """Protects the records' layouts and numba's arithmetic: runs are bit for bit equal."""
    name = cls.__name__
    protocols = [cls, f"{name}(limit=1.5)", f"rrtp+{name}"]
    plain = rows(narrows.compare(LINK, protocols=protocols, seeds=2))
    protocols[0] = narrows.compiled(cls)
    fast = rows(narrows.compare(LINK, protocols=protocols, seeds=2))
    assert [row["digest"] for row in plain.values()] == [row["digest"] for row in fast.values()]
    partial = functools.partial(protocols[0], limit=1.5)
    assert list(rows(narrows.compare(LINK, protocols=[partial], seeds=1))) == [f"{name}(limit=1.5)"]


def test_outcomes_and_hints_are_equal():
    """Protects the layouts of the records that only rrtp fills."""
    digests = []
    for cls in (Outcomes, narrows.compiled(Outcomes)):
        with lending([cls]):
            found = narrows.compare(LINK, protocols="rrtp+Outcomes", seeds=1, reconfigure=HINT)
        digests.append(rows(found)["rrtp+Outcomes"]["digest"])
    assert digests[0] == digests[1]


def test_every_attribute_of_an_acknowledgement_has_the_same_value():
    """Protects the equality of the two forms of an acknowledgement."""
    names = [n for n in dir(narrows.Ack) if not n.startswith("_")]
    lines = "\n".join(
        f"        self.sum += i * (a.{n} if a.{n} == a.{n} else 0.5); i += 1" for n in names
    )
    code = "class Sums:\n    cwnd, sum = 30.0, 0.0\n    def on_ack(self, a):\n        i = 1.0\n"
    code += f"{lines}\n        self.cwnd = 10.0 + self.sum % 7\n"
    scope: dict = {}
    # In compiled code None is nan.
    plain = code
    for n in ("forward_delay", "delivery_rate"):
        plain = plain.replace(
            f"(a.{n} if a.{n} == a.{n} else 0.5)", f"(a.{n} if a.{n} is not None else 0.5)"
        )
    exec(plain, scope)
    by_python = rows(narrows.compare(LINK, protocols=[scope["Sums"], "rrtp+Sums"], seeds=1))
    exec(code, scope)
    compiled = narrows.compiled(scope["Sums"])
    by_numba = rows(narrows.compare(LINK, protocols=[compiled, "rrtp+Sums"], seeds=1))
    assert [r["digest"] for r in by_python.values()] == [r["digest"] for r in by_numba.values()]


def test_limits_that_cannot_be_are_refused():
    """Protects the engine: a division by zero in compiled code gives inf, which is not a valid window."""

    class Divides:
        def __init__(self):
            self.cwnd, self.zero = 10.0, 0.0

        def on_ack(self, ack):
            if ack.now > 1:
                self.cwnd = 1.0 / self.zero

    with pytest.raises(
        narrows.ControllerError, match=r"'Divides' after on_ack at 1\.0.*: cwnd is inf"
    ):
        narrows.compare(LINK, protocols=[narrows.compiled(Divides)], seeds=2)


def test_what_raises_in_compiled_code_ends_the_run():
    """Protects exceptions that numba would only print."""

    class Raises:
        cwnd = 10.0

        def on_ack(self, ack):
            if ack.now > 1:
                raise ValueError("no")

    with pytest.raises(
        narrows.ControllerError, match=r"'Raises' after on_ack at 1\.0.*: it raised"
    ):
        narrows.compare(LINK, protocols=[narrows.compiled(Raises)], seeds=2)


def test_what_cannot_be_compiled_is_said():
    """Protects the error that names the attribute or method."""

    class Lists:
        def __init__(self):
            self.cwnd, self.seen = 10.0, []

        def on_ack(self, ack):
            pass

    with pytest.raises(narrows.SpecError, match=r"Lists\.seen is a list"):
        narrows.compiled(Lists)

    class Unknown:
        cwnd = 10.0

        def on_ack(self, ack):
            self.other = ack.rtt

    with pytest.raises(narrows.SpecError, match=r"Unknown\.on_ack sets 'other', an attribute"):
        narrows.compiled(Unknown)

    class Mixed:
        cwnd = 10.0

        def on_ack(self, ack):
            self.cwnd = "ten" + [ack.rtt]

    with pytest.raises(narrows.SpecError, match=r"Mixed\.on_ack cannot be compiled"):
        narrows.compiled(Mixed)

    class NoWindow:
        def on_ack(self, ack):
            pass

    with pytest.raises(narrows.SpecError, match="NoWindow has no number cwnd"):
        narrows.compiled(NoWindow)


def test_without_numba_it_says_what_to_install():
    """Protects the optional dependency: only compiling needs numba, and the error says how to install it."""
    code = """
import sys
sys.modules["numba"] = None
import narrows
try:
    narrows.compiled(object)
except ImportError as e:
    print(e)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert ran.stdout == "@narrows.compiled needs numba: pip install 'narrows[compiled]'\n"


def test_never_is_inf():
    """Protects next_tick() of compiled code, which cannot return None."""

    @narrows.compiled
    class Rests:
        cwnd = 10.0

        def on_ack(self, ack):
            pass

        def on_tick(self, now):
            self.cwnd = -1.0

        def next_tick(self):
            return math.inf

    assert rows(narrows.compare(LINK, protocols=[Rests], seeds=1))

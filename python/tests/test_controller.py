"""Controllers written in Python."""

import functools
import json
import math
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import narrows
import pyarrow.parquet
import pytest
from gentle import Gentle
from narrows.controller import lending
from outcomes import HINT, Outcomes

ROOT = Path(__file__).parents[2]
LINK = "5Mbit/s,20ms,loss=0.2%"


def rows(found):
    return {row["protocol"]: row for row in found.to_dict()["results"]}


class Keeps:
    """Keeps its window."""

    def __init__(self, window: float = 20.0):
        self.cwnd = window

    def on_ack(self, ack):
        pass


def test_gentle_decides_as_the_one_in_rust(tmp_path):
    """Protects the events and their units: the same algorithm has bit for bit equal runs."""
    rust = ROOT / "target/debug/examples/my_controller"
    if not rust.exists():
        pytest.skip(
            "cargo test -p narrows builds target/debug/examples/my_controller, which is not there"
        )
    names = "gentle,gentle(limit=1.5),rrtp+gentle"
    flags = ["compare", "--link", LINK, "--protocols", names, "--seeds", "3", "--json"]
    flags += ["--out", str(tmp_path / "out")]
    ran = subprocess.run([rust, *flags], capture_output=True, text=True, check=True)
    by_rust = [row["digest"] for row in json.loads(ran.stdout)["results"]]
    with lending([Gentle]):
        in_python = "Gentle,Gentle(limit=1.5),rrtp+Gentle"
        found = narrows.compare(LINK, protocols=in_python, seeds=3).to_dict()["results"]
    assert [row["digest"] for row in found] == by_rust
    assert len(set(by_rust)) == 3


def test_a_class_stands_beside_names_and_changes_nothing_of_theirs():
    """Protects other protocols' results, which do not depend on a controller in Python beside them."""
    both = rows(narrows.compare(LINK, protocols=[Keeps, "cubic", "rrtp"], seeds=2))
    alone = rows(narrows.compare(LINK, protocols="cubic,rrtp", seeds=2))
    assert list(both) == ["Keeps", "cubic", "rrtp"]
    assert both["cubic"]["digest"] == alone["cubic"]["digest"]
    assert both["rrtp"]["digest"] == alone["rrtp"]["digest"]


def test_runs_are_repeatable():
    """Protects repeatability: a run depends only on its arguments, not on threads."""
    found = [rows(narrows.compare(LINK, protocols=[Gentle], seeds=4))["Gentle"] for _ in range(2)]
    assert found[0] == found[1]


def test_parameters_of_the_constructor_are_the_protocols():
    """Protects specifications and partials: both reach the constructor, with their types."""
    seen = []

    class Shows:
        def __init__(self, window: float = 20.0, step: int = 3, fast: bool = False):
            seen.append((window, step, fast))
            self.cwnd = window

        def on_ack(self, ack):
            pass

    protocols = [functools.partial(Shows, window=7.5, fast=True), "Shows(step=4)"]
    found = rows(narrows.compare(LINK, protocols=protocols, seeds=1))
    assert list(found) == ["Shows(window=7.5,fast=on)", "Shows(step=4)"]
    assert {(7.5, 3, True), (20.0, 4, False)} <= set(seen)
    assert all(isinstance(step, int) for _, step, _ in seen)
    with pytest.raises(narrows.SpecError, match="no parameter 'windw'"):
        narrows.compare(LINK, protocols=[functools.partial(Shows, windw=7)], seeds=1)
    with pytest.raises(narrows.SpecError, match="did you mean 'window'"):
        narrows.compare(LINK, protocols=[Shows, "Shows(windw=7)"], seeds=1)


def test_a_function_that_makes_objects_is_a_protocol():
    """Protects factories: the object has the name."""

    def make():
        made = Keeps(5)
        made.name = "five"
        return made

    found = rows(narrows.compare(LINK, protocols=[make, Keeps], seeds=1))
    assert list(found) == ["five", "Keeps"]
    assert found["five"]["utilisation"]["mean"] < found["Keeps"]["utilisation"]["mean"]


def test_every_method_is_called_with_what_the_page_says():
    """Protects the names, types and order of a controller's arguments."""
    calls = []

    class Told:
        cwnd = 2.0

        def on_start(self, start):
            calls.append(("start", start.initial_window, start.packet_bytes, start.seed))
            self.next, self.has_begun = 0.5, False

        def on_ack(self, ack):
            self.has_begun = True
            assert ack.rtt >= ack.min_rtt > 0.04
            assert ack.rttvar >= 0 and ack.srtt > 0 and ack.forward_delay is None
            assert ack.delivery_rate is None or ack.delivery_rate > 0
            assert (ack.newly_acked == 0) == ack.duplicate or ack.newly_sacked >= 0
            assert isinstance(ack.window_limited, bool) and isinstance(ack.round, int)
            assert "Ack(now=" in repr(ack)
            calls.append(("ack", ack.now))

        def on_loss(self, loss):
            assert loss.cause == "loss" and loss.flight > 0 and loss.srtt >= loss.min_rtt
            calls.append(("loss", loss.now))

        def on_rto(self, timeout):
            assert timeout.backoffs >= 1 and timeout.flight > 0
            calls.append(("rto", timeout.now))

        def next_tick(self):
            return self.next

        def on_tick(self, now):
            # The first ticks wait for the flow's start, and for the handshake.
            assert now >= self.next - 1e-9
            assert now < self.next + 1e-9 or not self.has_begun
            self.next = now + 0.5
            calls.append(("tick", now))

    narrows.compare("5Mbit/s,20ms,loss=60%", protocols=[Told], seeds=1)
    kinds = {kind for kind, *_ in calls}
    assert kinds == {"start", "ack", "loss", "rto", "tick"}
    starts = [call[1:] for call in calls if call[0] == "start"]
    assert starts[-1][:2] == (10.0, 1500)
    assert sum(call[0] == "tick" for call in calls) > 20


def test_outcomes_and_hints_are_passed_over_rrtp():
    """Protects what rrtp reports beyond TCP: each packet's outcome, before the acknowledgements, and hints."""
    made = []

    class Seen(Outcomes):
        def on_start(self, start):
            self.hinted_loss = start.loss_hint
            made.append(self)

    protocols = "rrtp+Seen(loss=0.02),rrtp+Seen,Seen"
    with lending([Seen]):
        narrows.compare(LINK, protocols=protocols, seeds=1, duration="20s", reconfigure=HINT)
    over_rrtp, over_tcp = (
        [s for s in made if s.arrived],
        [s for s in made if s.acks and not s.arrived],
    )
    assert len(over_rrtp) == 2
    for seen in over_rrtp:
        assert seen.arrived == seen.acks > 1000
        assert 0 < seen.lost < seen.arrived / 100
        assert 0.04 < seen.age < 0.5
        assert (seen.dispersions, seen.hints, seen.pacing_rate) == (1, 1, 2e6 * 1.05)
    # The runs begin in any order.
    assert {s.hinted_loss for s in over_rrtp} == {0.02, None}
    assert [(s.lost, s.dispersions) for s in over_tcp] == [(0, 0)]


def test_an_acknowledgement_that_is_kept_stays_what_it_was():
    """Protects objects that are kept: their values do not change by the reuse of the object."""
    kept = []

    class Collects:
        cwnd = 10.0

        def on_ack(self, ack):
            if len(kept) < 5:
                kept.append((ack, ack.now))

    narrows.compare(LINK, protocols=[Collects], seeds=1)
    assert [ack.now for ack, _ in kept] == [now for _, now in kept]
    assert len({now for _, now in kept}) == 5


def test_a_pacing_rate_limits():
    """Protects pacing_rate: half of the link's rate fills half of the link, whatever the window."""

    class Half:
        cwnd, pacing_rate = 1000.0, 2.5e6

        def on_ack(self, ack):
            pass

    found = rows(narrows.compare("5Mbit/s,20ms", protocols=[Half], seeds=1))["Half"]
    assert found["utilisation"]["mean"] == pytest.approx(0.5, abs=0.03)


def test_what_raises_ends_the_run_with_its_own_traceback_and_the_time():
    """Protects exceptions from a worker thread: they reach the caller."""

    class Breaks:
        cwnd = 10.0

        def on_ack(self, ack):
            if ack.now > 1:
                self.fails(ack)

        def fails(self, ack):
            return 1 / (ack.marks * 0)

    text = (
        r"^controller 'Breaks' raised in on_ack at 1\.0\d+ s of simulated time: ZeroDivisionError: "
    )
    with pytest.raises(narrows.ControllerError, match=text) as raised:
        narrows.compare(LINK, protocols=["cubic", Breaks], seeds=3)
    cause = raised.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    assert [f.name for f in traceback.extract_tb(cause.__traceback__)] == ["on_ack", "fails"]
    # No exception is left behind.
    assert rows(narrows.compare(LINK, protocols=[Keeps], seeds=1))


@pytest.mark.parametrize(
    "method", ["__init__", "on_start", "on_loss", "on_rto", "next_tick", "on_tick"]
)
def test_every_method_may_raise(method):
    """Protects each call of a Python method."""

    class Base:
        cwnd = 2.0

        def on_ack(self, ack):
            pass

        def next_tick(self):
            return self.__dict__.setdefault("next", 0.5)

        def on_tick(self, now):
            self.next = now + 1

    def fails(*_):
        raise KeyError("mine")

    faulty = type("Faulty", (Base,), {method: fails})
    with pytest.raises(narrows.ControllerError, match=r"'Faulty'.*KeyError: 'mine'"):
        narrows.compare("5Mbit/s,20ms,loss=60%", protocols=[faulty], seeds=2)


@pytest.mark.parametrize(
    ("limit", "value", "what"),
    [
        ("cwnd", math.nan, "cwnd is NaN"),
        ("cwnd", math.inf, "cwnd is inf"),
        ("cwnd", -1.0, "cwnd is -1"),
        ("cwnd", "ten", "cwnd is 'ten', which is not a number"),
        ("cwnd", None, "cwnd is None"),
        ("pacing_rate", math.nan, "pacing_rate is NaN"),
        ("pacing_rate", math.inf, "pacing_rate is inf"),
        ("pacing_rate", 0, "pacing_rate is 0"),
        ("pacing_rate", -5e6, "pacing_rate is -5000000"),
        ("ssthresh", math.nan, "ssthresh is NaN"),
        ("ssthresh", -2, "ssthresh is -2"),
    ],
)
def test_limits_that_cannot_be_are_refused_with_the_controllers_name(limit, value, what):
    """Protects the engine from invalid limits."""

    class Wild:
        cwnd, pacing_rate, ssthresh = 10.0, None, math.inf

        def on_ack(self, ack):
            if ack.now > 1:
                setattr(self, limit, value)

    with pytest.raises(
        narrows.ControllerError, match=f"^controller 'Wild' after on_ack at 1.0.* time: {what}"
    ):
        narrows.compare(LINK, protocols=[Wild], seeds=1)


def test_a_tick_that_asks_for_the_same_time_is_refused():
    """Protects against a simulation that never ends."""

    class Stands:
        cwnd = 10.0

        def on_ack(self, ack):
            pass

        def next_tick(self):
            return 0.5

        def on_tick(self, now):
            pass

    with pytest.raises(
        narrows.ControllerError, match=r"after on_tick at 0.500000 s.*must be later"
    ):
        narrows.compare(LINK, protocols=[Stands], seeds=1)


class Missing:
    cwnd = 1.0


class HalfTick(Keeps):
    def next_tick(self):
        return None


class Wants(Keeps):
    def __init__(self, window):
        self.cwnd = window


class Odd(Keeps):
    on_loss = 3


class Named(Keeps):
    name = 7


class Ümlaut(Keeps):
    pass


@pytest.mark.parametrize(
    ("protocol", "what"),
    [
        (3, "not 3 .int."),
        (Keeps(), "give the class, not an object of it"),
        (Missing, "no method on_ack"),
        (HalfTick, "only one of next_tick"),
        (Wants, "'window' without a default"),
        (Odd, "on_loss is 3"),
        (Named, "the name of Named is 7"),
        (Ümlaut, "a name is at most 40 letters"),
        (type("cubic", (Keeps,), {}), "Narrows has a controller of that name"),
        (type("media", (Keeps,), {}), "media"),
    ],
)
def test_what_is_no_controller_is_refused(protocol, what):
    """Protects the error of one line, before any simulation."""
    with pytest.raises(narrows.SpecError, match=what) as raised:
        narrows.compare(LINK, protocols=[protocol], seeds=1)
    assert "\n" not in str(raised.value)


def test_a_name_is_one_class_at_a_time():
    """Protects the uniqueness of names, and that a class may be redefined."""
    other = type("Keeps", (Keeps,), {"more": 1})
    with pytest.raises(narrows.SpecError, match="two controllers are called 'Keeps'"):
        narrows.compare(LINK, protocols=[Keeps, other], seeds=1)
    assert rows(narrows.compare(LINK, protocols=[other], seeds=1))
    assert rows(narrows.compare(LINK, protocols=[Keeps], seeds=1))
    with pytest.raises(narrows.SpecError, match="unknown protocol"):
        narrows.compare(LINK, protocols="Keeps", seeds=1)


def test_what_is_registered_is_known_by_its_name():
    """Protects register: text everywhere means the class last registered."""
    narrows.register(type("Listed", (Keeps,), {}))
    before = rows(narrows.compare(LINK, protocols="Listed(window=4)", seeds=1))["Listed(window=4)"]

    @narrows.register
    class Listed(Keeps):
        def __init__(self, window: float = 20.0):
            self.cwnd = 2 * window

    after = rows(narrows.compare(LINK, protocols="Listed(window=2)", seeds=1))["Listed(window=2)"]
    assert after["digest"] == before["digest"]


def test_threads_may_compare_at_once():
    """Protects the lists: concurrent calls have the same results as sequential ones."""
    alone = rows(narrows.compare(LINK, protocols=[Gentle, "cubic"], seeds=2))
    found = {}

    def work(i):
        found[i] = rows(narrows.compare(LINK, protocols=[Gentle, "cubic"], seeds=2))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(3)] == [alone] * 3


def test_ctrl_c_ends_a_run_of_python_controllers():
    """Protects Ctrl-C, even if a worker holds the GIL forever."""
    code = """
import narrows, sys
class Endless:
    cwnd = 100.0
    def on_ack(self, ack):
        while FOREVER: pass
FOREVER = bool(int(sys.argv[1]))
print("begun", flush=True)
narrows.compare("100Mbit/s,20ms", protocols=[Endless], seeds=1000)
"""
    for forever in "01":
        ran = subprocess.Popen(
            [sys.executable, "-c", code, forever],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert ran.stdout.readline() == "begun\n"
        time.sleep(1)
        ran.send_signal(2)
        _, said = ran.communicate(timeout=60)
        assert said.rstrip().endswith("KeyboardInterrupt"), said


def test_other_threads_go_on_beside_a_run():
    """Protects a notebook's own threads: the GIL is released now and then."""
    ticks = []
    done = threading.Event()

    def watch():
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=watch)
    thread.start()
    narrows.compare("20Mbit/s,20ms", protocols=[Keeps], seeds=4)
    done.set()
    thread.join()
    assert len(ticks) >= 2


def test_variables_are_columns_of_the_series():
    """Protects `variables`: they are in the series, with their meaning, even after the class is released."""
    found = narrows.compare(LINK, protocols=[Gentle], seeds=1)
    columns = {column.name: column for column in found.series.columns}
    assert columns["limit"].meaning == Gentle.variables["limit"]
    assert {1.25} <= set(found.series["limit"])


def test_a_report_has_a_class_as_any_protocol(tmp_path):
    """Protects later use of results: the page and the files, with explained columns."""
    found = narrows.compare(LINK, protocols=["reno", Gentle], seeds=2)
    assert found.report().count("Gentle") > 3
    found.write(tmp_path)
    schema = pyarrow.parquet.read_table(tmp_path / "series.parquet").schema
    assert schema.field("limit").metadata[b"meaning"].decode() == Gentle.variables["limit"]


def test_scenarios_and_sweeps_take_classes():
    """Protects classes as a flow's protocol, and as values of a sweep."""
    shared = narrows.Scenario(
        links=[narrows.Wire(("a", "b"), narrows.Link("5Mbit/s", "20ms"))],
        flows=[narrows.Flow(Keeps, ("a", "b")), narrows.Flow("cubic", ("a", "b"))],
        duration=5,
    )
    assert [row["group"] for row in narrows.run(shared).to_dict()["results"]] == ["Keeps", "cubic"]
    partial = functools.partial(Keeps, window=5)
    vary = {"loss": ["0%", "1%"], "protocol": [Keeps, partial, "cubic"]}
    found = narrows.sweep("5Mbit/s,20ms", vary=vary, seeds=1, duration=5)
    assert found.points["protocol"][:3] == ["Keeps", "Keeps(window=5)", "cubic"]
    assert found.done == 6


def test_a_sweeps_finished_runs_are_those_of_the_same_code(tmp_path):
    """Protects a sweep's folder: runs of a class before a change of its code are not reused."""
    narrow = {"duration": 5, "seeds": 1, "folder": tmp_path}
    vary = {"loss": ["0%", "1%"]}
    other = type("Keeps", (Keeps,), {"on_ack": lambda self, ack: setattr(self, "cwnd", 3.0)})
    first, again, changed = (
        narrows.sweep("5Mbit/s,20ms", protocols=[cls], vary=vary, **narrow).runs["utilisation"]
        for cls in (Keeps, Keeps, other)
    )
    assert first == again
    assert changed[0] < 0.5 * first[0]


def test_what_raises_in_a_sweep_is_raised():
    """Protects exceptions in a sweep."""

    class Breaks(Keeps):
        def on_ack(self, ack):
            raise KeyError("mine")

    with pytest.raises(
        narrows.ControllerError, match=r"'Breaks' raised in on_ack at .*KeyError: 'mine'"
    ):
        narrows.sweep("5Mbit/s,20ms", protocols=[Breaks], vary={"loss": ["0%", "1%"]}, seeds=1)


def test_controllers_go_to_other_processes():
    """Protects sweeps on workers without the class: it is sent with the work."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    vary = {"loss": ["0%", "1%"]}
    here = narrows.sweep(LINK, protocols=[Gentle], vary=vary, seeds=2, duration=5)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        there = narrows.sweep(LINK, protocols=[Gentle], vary=vary, seeds=2, duration=5, client=pool)
    assert there.to_dict() == here.to_dict()

"""Results can be pickled and copied; values of NumPy, pathlib and datetime are accepted."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import narrows
import numpy as np
import pytest
from gentle import Gentle
from narrows.env import CongestionEnv, VectorCongestionEnv

LINK = "10Mbit/s,20ms"


def one(loss: float) -> narrows.Comparison:
    return narrows.compare(
        f"{LINK},loss={loss}", protocols="cubic", seeds=2, duration=3, progress=False, jobs=1
    )


def swept(**more: object) -> narrows.Sweep:
    vary = {"loss": [0, 0.01]}
    return narrows.sweep(LINK, **{"vary": vary, "protocols": "cubic", "duration": 3, **more})


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_is_the_result(copied, tmp_path):
    found = narrows.compare(LINK, protocols=[Gentle, "cubic"], seeds=2, duration=3)
    for table in (found.means, found.seeds, found.flows, found.series):
        again = copied(table)
        assert again.to_dict() == table.to_dict()
        assert again.columns == table.columns
    again = copied(found)
    assert repr(again) == repr(found)
    assert (again.report(), again.svg(), again.scenario()) == (
        found.report(),
        found.svg(),
        found.scenario(),
    )
    names = {path.name for path in found.write(tmp_path / "one")}
    assert {path.name for path in again.write(tmp_path / "other")} == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_of_a_sweep_has_its_runs(copied):
    found = swept(protocols=[Gentle])
    again = copied(found)
    assert again.wait()
    assert again.to_dict() == found.to_dict()
    assert again.points.to_dict() == found.points.to_dict()
    assert repr(found).splitlines()[0].startswith(LINK), "its title"


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_results_return_from_a_pool(method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.map(one, [0.01])
    assert found[0].means.to_dict() == one(0.01).means.to_dict()


def test_errors_return_from_a_pool():
    error = pickle.loads(pickle.dumps(narrows.SpecError("a line")))
    assert isinstance(error, narrows.SpecError)
    assert str(error) == "a line"


def test_a_copied_environment_has_the_settings_and_is_to_be_reset():
    for env in (CongestionEnv(link=LINK, steps=2), VectorCongestionEnv(2, link=LINK, steps=2)):
        first, _ = env.reset(seed=1)
        for again in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
            with pytest.raises(RuntimeError, match="has not been reset"):
                again.step(np.zeros(again.action_space.shape))
            assert np.array_equal(again.reset(seed=1)[0], first)


def test_a_step_after_the_end_says_so():
    env = CongestionEnv(link=LINK, steps=1)
    env.reset(seed=np.int64(3))
    env.step([0])
    with pytest.raises(RuntimeError, match="episode ended"):
        env.step([0])


def test_arrays_generators_and_scalars_are_taken(tmp_path):
    usual = narrows.compare(LINK, protocols=["reno", "cubic"], seeds=2, duration=3).means.to_dict()
    for protocols in (np.array(["reno", "cubic"]), (name for name in ("reno", "cubic"))):
        found = narrows.compare(
            LINK, protocols=protocols, seeds=np.int64(2), duration=np.float64(3)
        )
        assert found.means.to_dict() == usual
    assert swept(vary={"loss": np.array([0, 0.01])}).points["loss"] == [0.0, 0.01]
    assert swept(vary={"flows": np.array([1, 2])}).points["flows"] == [1.0, 2.0]
    assert swept(vary={"delay": [timedelta(milliseconds=5)]}).points["delay"] == [0.005]
    link = narrows.Link(np.int32(10**7), np.timedelta64(25, "ms"), loss=np.array(0.25))
    assert str(link) == "10000000bit/s,25ms,loss=25%"
    assert str(narrows.Link("1Mbit/s", np.timedelta64(25_000_000, "ns"))) == "1Mbit/s,25ms"
    assert str(narrows.Link("1Mbit/s", "5ms", loss=Decimal("0.01"))).endswith("loss=0.01")
    with pytest.raises(narrows.SpecError, match="whole number"):
        narrows.compare(LINK, seeds=np.bool_(True))
    with pytest.raises(narrows.SpecError, match="a fraction"):
        str(narrows.Link("1Mbit/s", "5ms", loss=np.timedelta64(1, "s")))


def test_paths_timedeltas_and_links_are_taken_wherever_texts_are(tmp_path):
    trace = tmp_path / "link.trace"
    trace.write_text("".join(f"{ms}\n" for ms in range(1, 100)))
    link = narrows.Link("12Mbit/s", "10ms", trace=Path(trace))
    assert len(narrows.compare(link, protocols="cubic", seeds=1, duration=2).means) == 1
    env = CongestionEnv(
        link=narrows.Link("10Mbit/s", "10ms"), step=timedelta(milliseconds=20), steps=2
    )
    assert env.reset(seed=1)[1]["rate"] == 10.0
    assert swept(wait=False).wait(timedelta(minutes=5))

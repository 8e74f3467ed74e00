"""Sweeps: in this process, by executors, on Dask; interrupted and continued."""

from __future__ import annotations

import concurrent.futures
import time

import narrows
import pytest

VARY = {"loss": ["0%", 0.01], "protocol": ["reno", "cubic"]}
GIVEN = {"link": "2Mbit/s,10ms", "vary": VARY, "seeds": 2, "duration": 5}


@pytest.fixture(scope="module")
def local():
    return narrows.sweep(**GIVEN)


def numbers(sweep: narrows.Sweep) -> dict:
    return {key: value for key, value in sweep.to_dict().items() if key != "command_line"}


def test_a_sweep_is_the_commands_to_the_bit(local, command, tmp_path):
    words = "--link 2Mbit/s,10ms --vary loss=0%,0.01 --vary protocol=reno,cubic --seeds 2"
    printed = command("sweep", *words.split(), "--duration", "5s", folder=tmp_path)
    assert isinstance(printed, dict)
    printed.pop("command_line")
    assert numbers(local) == printed
    assert len(local.runs) == local.total == local.done == 8


def test_a_sweep_of_a_scenario_varies_its_keys():
    scenario = narrows.Scenario(
        links=[narrows.Wire(("a", "b"), narrows.Link("2Mbit/s", "10ms", queue="1bdp"))],
        flows=[narrows.Flow("cubic", ("a", "b"))],
        duration=5,
    )
    found = narrows.sweep(
        scenario=scenario, vary={"link.a-b.rate": ["1Mbit/s", "4Mbit/s"]}, seeds=1
    )
    slow, fast = found.points["goodput_bps"]
    assert fast > 3 * slow


def test_a_folder_is_gone_on_with(local, tmp_path):
    narrows.sweep(**{**GIVEN, "seeds": 1}, folder=tmp_path)
    lines = (tmp_path / "sweep.journal").read_text().splitlines()
    assert len(lines) == 4
    again = narrows.sweep(**GIVEN, folder=tmp_path)
    assert numbers(again) == numbers(local)
    assert (tmp_path / "sweep.journal").read_text().splitlines()[:4] == lines
    assert len((tmp_path / "sweep.journal").read_text().splitlines()) == 8


def test_an_executor_gives_the_same_table(local):
    # Threads suffice, since a worker uses only its arguments.
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        assert numbers(narrows.sweep(**GIVEN, client=executor)) == numbers(local)


def test_partial_results_can_be_read_while_it_runs_and_stay_when_it_is_cancelled():
    # Hours of work, unless it is cancelled.
    given = {**GIVEN, "vary": {"loss": "0%..1%:40"}, "protocols": "cubic", "seeds": 2000}
    sweep = narrows.sweep(**given, wait=False)
    while sweep.done < 5:
        assert not sweep.wait(0.01)
    assert 0 < len(sweep.points) <= 40
    sweep.cancel()
    assert sweep.wait(60)
    assert 5 <= sweep.done < sweep.total == 80_000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"vary": {"rat": ["1Mbit/s"]}}, "did you mean 'rate'?"),
        ({"vary": {}}, "no parameter varies"),
        ({"vary": {"loss": [[]]}}, "expected a text, a number"),
        ({"vary": 3}, "expected a mapping"),
        ({"vary": {"loss": ["1%"]}, "measure": "thetta"}, "did you mean 'theta'?"),
        ({"vary": {"loss": ["1%"]}, "client": 3}, "expected a distributed.Client"),
        ({"vary": {"loss": ["1%"]}, "scenario": "nothing.toml"}, "nothing.toml"),
    ],
)
def test_a_wrong_sweep_raises(given, message):
    with pytest.raises(narrows.SpecError) as raised:
        narrows.sweep(**given)
    assert message in str(raised.value)


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    ) as cluster:
        yield cluster


def test_dask_loses_a_worker_and_ends_with_the_same_table(cluster, tmp_path):
    distributed = pytest.importorskip("distributed")
    given = {**GIVEN, "vary": {"loss": "0.1%..2%:60", "protocol": ["reno", "cubic"]}}
    with distributed.Client(cluster) as client:
        sweep = narrows.sweep(**given, client=client, folder=tmp_path, wait=False)
        while sweep.done < 10:
            time.sleep(0.01)
        victim = next(iter(cluster.workers.values()))
        victim.process.process._process.kill()
        assert sweep.wait(120)
        assert sweep.done == sweep.total == 240
        assert numbers(sweep) == numbers(narrows.sweep(**given))


def test_a_class_goes_to_the_workers(cluster):
    class Halving:
        def __init__(self):
            self.cwnd = 10.0

        def on_ack(self, ack):
            self.cwnd += 1.0 / self.cwnd

        def on_loss(self, loss):
            self.cwnd = max(self.cwnd / 2.0, 2.0)

    distributed = pytest.importorskip("distributed")
    given = {**GIVEN, "vary": {"loss": ["0.1%", "2%"]}, "protocols": ["cubic", Halving]}
    with distributed.Client(cluster) as client:
        assert numbers(narrows.sweep(**given, client=client)) == numbers(narrows.sweep(**given))


def test_a_lost_scheduler_is_said_and_gone_on_without(tmp_path):
    distributed = pytest.importorskip("distributed")
    # Runs of two minutes, so that a busy machine closes the cluster before the last one.
    vary = {"loss": "0.1%..2%:60", "protocol": ["reno", "cubic"]}
    given = {**GIVEN, "vary": vary, "duration": 120}
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    client = distributed.Client(cluster)
    sweep = narrows.sweep(**given, client=client, folder=tmp_path, wait=False)
    while sweep.done < 10:
        time.sleep(0.01)
    cluster.close()
    with pytest.raises(ConnectionError, match="of 240 runs are finished; with folder="):
        sweep.wait(120)
    client.close()
    again = narrows.sweep(**given, folder=tmp_path)
    assert again.done == 240
    assert numbers(again) == numbers(narrows.sweep(**given))

"""Comparisons and scenarios: bit for bit the same as the command's."""

from __future__ import annotations

from datetime import timedelta

import narrows
import pytest


def without_line(found: dict) -> dict:
    return {key: value for key, value in found.items() if key != "command_line"}


def test_a_comparison_is_the_commands_to_the_bit(command, tmp_path):
    link = narrows.Link("2Mbit/s", timedelta(milliseconds=10), loss=0.005, queue=20)
    found = narrows.compare(
        link, protocols=["reno", "vegas(alpha=2)"], against="cubic:2", duration=10, seeds=3, seed=7
    )
    words = "--link 2Mbit/s,10ms,queue=20p,loss=0.005 --protocols reno,vegas(alpha=2)"
    words += " --against cubic:2 --duration 10s --seeds 3 --seed 7"
    printed = command("compare", *words.split(), folder=tmp_path)
    assert without_line(found.to_dict()) == without_line(printed)
    assert found.to_dict()["command_line"] == (
        "narrows compare --link 2Mbit/s,10ms,queue=20p,loss=0.005 --protocols"
        " 'reno,vegas(alpha=2)' --against cubic:2 --duration 10s --seeds 3 --seed 7"
    )


def test_defaults_are_the_commands(command, tmp_path):
    # One protocol, so that ten seeds of a minute stay quick.
    found = narrows.compare(protocols="reno").to_dict()
    printed = command("compare", "--protocols", "reno", folder=tmp_path)
    assert without_line(found) == without_line(printed)


def test_a_scenario_is_the_commands_to_the_bit(command, tmp_path):
    scenario = narrows.Scenario(
        links=[
            narrows.Wire(("a", "b"), narrows.Link("5Mbit/s", 0.02, queue="1bdp"), name="first"),
            narrows.Wire(("b", "c"), narrows.Link(2e6, "5ms", queue="30p", reverse={"rate": 1e6})),
        ],
        flows=[
            narrows.Flow("cubic", ("a", "c"), count=2, stagger=timedelta(seconds=1)),
            narrows.Flow("rrtp", ("a", "b"), name="short", source="transfer(size=200kB)", start=2),
        ],
        changes=[narrows.Change("5s", "b-c", rate="1Mbit/s")],
        duration=10,
        seeds=2,
        name='odd "name"',
    )
    found = narrows.run(scenario)
    path = tmp_path / "scenario.toml"
    scenario.save(path)
    printed = command("run", str(path), folder=tmp_path)
    assert without_line(found.to_dict()) == without_line(printed)
    assert without_line(narrows.run(path).to_dict()) == without_line(printed)
    # The saved scenario has the same runs.
    path.write_text(found.scenario())
    digests = [row["digest"] for row in found.to_dict()["results"]]
    assert [row["digest"] for row in narrows.run(path).to_dict()["results"]] == digests


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"link": "2Mbitt/s,10ms"}, "--link 2Mbitt/s,10ms"),
        ({"link": narrows.Link("2Mbit/s", -1)}, "--link 2Mbit/s,-1s"),
        (
            {"link": narrows.Link("2Mbit/s", "5ms", loss=float("nan"))},
            "--link 2Mbit/s,5ms,loss=nan",
        ),
        ({"link": narrows.Link(float("inf"), "5ms")}, "--link infbit/s,5ms"),
        ({"protocols": ["cubik"]}, "--protocols cubik"),
        ({"protocols": []}, "--protocols="),
        ({"against": "reno:0"}, "--against reno:0"),
        ({"duration": "5"}, "--duration 5"),
        ({"duration": timedelta(seconds=-5)}, "--duration=-5s"),
        ({"seeds": 0}, "--seeds 0"),
        ({"seed": -1}, "--seed=-1"),
        ({"seed": 2**70}, f"--seed {2**70}"),
        ({"packet": 40}, "--packet 40B"),
        ({"preset": "ns3"}, "--preset ns3"),
        ({"aim": "bulky"}, "--for bulky"),
        ({"jobs": 0}, "--jobs 0"),
        ({"flows": 10**6, "against": "reno"}, "--flows 1000000 --against reno"),
        ({"link": "1Mbit/s,1ms,trace=nothing.trace"}, "--link 1Mbit/s,1ms,trace=nothing.trace"),
        ({"link": "x\x00\n\x1b[2J"}, None),
        ({"link": "\ud800"}, None),
    ],
)
def test_a_wrong_argument_raises_what_the_command_prints(given, words, command, tmp_path):
    with pytest.raises(ValueError, match=r".") as raised:
        narrows.compare(**given)
    if words is not None:
        assert isinstance(raised.value, narrows.SpecError)
        assert str(raised.value) == command("compare", *words.split(" "), folder=tmp_path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"link": 3}, "--link: 3 is of type int; expected a text"),
        (
            {"duration": None, "seeds": 2.5},
            "--seeds: 2.5 is of type float; expected a whole number",
        ),
        ({"seeds": True}, "--seeds: True is of type bool"),
        ({"protocols": 7}, "--protocols: 7 (int); expected a text or a list of texts and classes"),
        ({"duration": []}, "expected a time: '25ms', a timedelta, or seconds"),
        ({"link": narrows.Link("1Mbit/s", "5ms", aqm=3)}, "--aqm: 3 is of type int"),
    ],
)
def test_a_wrong_type_raises_with_what_is_expected(given, message):
    with pytest.raises(narrows.SpecError) as raised:
        narrows.compare(**given)
    assert message in str(raised.value)


def test_a_wrong_scenario_raises_with_its_line(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('duration = "5s"\n[[flws]]\n')
    with pytest.raises(narrows.SpecError, match=r"wrong\.toml: line 2: .*did you mean 'flows'"):
        narrows.run(path)
    nowhere = narrows.Scenario(
        links=[narrows.Wire(("a", "b"), narrows.Link("1Mbit/s", "5ms"))],
        flows=[narrows.Flow("cubic", ("a", "z"))],
    )
    with pytest.raises(narrows.SpecError, match=r"^scenario\.toml: .*'z'"):
        narrows.run(nowhere)


@pytest.mark.parametrize(
    "given",
    [
        {"protocols": "vegas(" * 100_000},
        {"link": "1Mbit/s,5ms,loss=" + "list(" * 100_000},
        {"link": "1Mbit/s,5ms,queue=" + "max(" * 100_000},
        {"link": "," * 1_000_000},
        {"source": "transfer(size=1e400MB)"},
        {"link": "1e300Mbit/s,5ms"},
        {"link": "1Mbit/s,5ms,queue=1e300p", "packet": "1e300B"},
        {"protocols": "cubic," * 10_000 + "cubik"},
    ],
)
def test_no_text_ends_the_interpreter(given):
    with pytest.raises(narrows.SpecError):
        narrows.compare(**given, duration=1, seeds=1)


def test_no_scenario_ends_the_interpreter(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text("name = " + "[" * 100_000)
    with pytest.raises(narrows.SpecError):
        narrows.run(path)
    path.write_bytes(b"\xff\xfe" * 100)
    with pytest.raises(narrows.SpecError):
        narrows.run(path)
    with pytest.raises(narrows.SpecError):
        narrows.run(tmp_path)


def test_a_path_that_changes_is_the_commands_to_the_bit(command, tmp_path):
    change = ["2s:rate=500kbit/s", "4s:rate=5Mbit/s"]
    told = "2s:rate=500kbit/s"
    said = {"change": change, "reconfigure": told}
    found = narrows.compare("5Mbit/s,5ms", protocols="rrtp", duration=6, seeds=1, **said)
    words = f"--change {change[0]} --change {change[1]} --reconfigure {told}"
    ours = "--link 5Mbit/s,5ms --protocols rrtp --duration 6s --seeds 1"
    printed = command("compare", *ours.split(), *words.split(), folder=tmp_path)
    assert without_line(found.to_dict()) == without_line(printed)
    path = tmp_path / "scenario.toml"
    path.write_text(
        narrows.compare("5Mbit/s,5ms", protocols="rrtp", duration=6, seeds=1).scenario()
    )
    told_late = narrows.run(path, **said).to_dict()
    assert told_late["results"][0]["digest"] == printed["results"][0]["digest"]
    assert narrows.sweep(
        "5Mbit/s,5ms", vary="loss=0%", protocols="rrtp", duration=6, seeds=1, **said
    )
    with pytest.raises(narrows.SpecError, match="--change: unknown key 'rat'"):
        narrows.compare(change="2s:rat=1Mbit/s")

"""Environments for learning: Gymnasium's contracts, determinism, errors."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import gymnasium as gym
import narrows
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, VectorEnv
from narrows.env import (
    ACTIONS,
    OBSERVATIONS,
    REWARDS,
    CongestionEnv,
    VectorCongestionEnv,
    evaluate,
    score,
)

LINKS = "1Mbit/s..20Mbit/s log,5ms..40ms,loss=0..3%"


def play(envs, steps, seed=3):
    """Return observations, rewards and ends of a number of steps with random actions."""
    observations, _ = envs.reset(seed=seed)
    random = np.random.default_rng(1)
    told = [observations]
    for _ in range(steps):
        actions = random.uniform(-1, 1, envs.action_space.shape).astype(np.float32)
        told.extend(envs.step(actions)[:4])
    return told


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"action": ["window", "pacing_gain"], "observation": list(OBSERVATIONS)},
        {"action": "rate_change", "transport": "rrtp", "against": "cubic"},
    ],
)
@pytest.mark.filterwarnings("error", "ignore:.*symmetric and normalized.*")
def test_check_env_has_nothing_to_say(settings):
    """The environment keeps Gymnasium's contract: spaces, seeds, types, determinism."""
    env = CongestionEnv(link=LINKS, steps=20, **settings)
    check_env(env, skip_render_check=True)


@pytest.mark.filterwarnings("error")
def test_gymnasium_makes_both_by_name():
    """Both environments are registered in Gymnasium, which warns of neither."""
    env = gym.make("narrows/Congestion-v0", link="10Mbit/s,10ms", steps=5)
    assert isinstance(env.unwrapped, CongestionEnv)
    drawn = gym.make("narrows/Congestion-v0", link="10Mbit/s,10ms", steps=5, render_mode="svg")
    assert drawn.unwrapped.render_mode == "svg"
    envs = gym.make_vec("narrows/Congestion-v0", num_envs=3, link="10Mbit/s,10ms", steps=5)
    assert isinstance(envs, VectorCongestionEnv)
    assert isinstance(envs, VectorEnv)


def test_a_vector_is_its_environments():
    """Environment i of the vector equals a single environment with seed s + i."""
    envs = VectorCongestionEnv(4, link=LINKS, steps=30)
    observations, infos = envs.reset(seed=7)
    alone = [CongestionEnv(link=LINKS, steps=30) for _ in range(4)]
    for i, env in enumerate(alone):
        observation, info = env.reset(seed=7 + i)
        assert np.array_equal(observation, observations[i])
        assert info["rate"] == infos["rate"][i]
    for _ in range(30):
        actions = envs.action_space.sample()
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        for i, env in enumerate(alone):
            observation, reward, *ends, _ = env.step(actions[i])
            assert np.array_equal(observation, observations[i])
            assert (reward, *ends) == (rewards[i], terminated[i], truncated[i])
    assert truncated.all()


def test_nothing_depends_on_threads():
    """Results are bit for bit equal for any number of threads, over resets."""
    told = [play(VectorCongestionEnv(20, link=LINKS, steps=8, threads=n), 25) for n in (1, 2, 5)]
    assert same(told[0], told[1])
    assert same(told[0], told[2])
    other = play(VectorCongestionEnv(20, link=LINKS, steps=8), 25, seed=4)
    assert not same(told[0], other)


def test_arrays_are_the_callers():
    """The arrays of a step are not overwritten by the next one."""
    envs = VectorCongestionEnv(5, link=LINKS, steps=50)
    kept = play(envs, 10)
    copies = [each.copy() for each in kept]
    play(envs, 10, seed=9)
    assert same(kept, copies)


def test_autoreset_is_as_gymnasium_says():
    """An episode begins in the next step, in the same step, or only by a mask."""
    settings = {"link": LINKS, "steps": 3}
    following = VectorCongestionEnv(4, **settings)
    at_once = VectorCongestionEnv(4, autoreset_mode="SameStep", **settings)
    zeros = np.zeros((4, 1), dtype=np.float32)
    for envs in (following, at_once):
        envs.reset(seed=1)
        for _ in range(2):
            envs.step(zeros)
    assert following.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    last, *_, ended, infos = following.step(zeros)
    assert ended.all()
    assert not infos
    first, rewards, _, truncated, _ = following.step(zeros)
    assert not rewards.any()
    assert not truncated.any()
    new, *_, ended, infos = at_once.step(zeros)
    assert ended.all()
    assert infos["_final_obs"].all()
    assert np.array_equal(infos["final_obs"], last)
    assert np.array_equal(new, first)

    by_mask = VectorCongestionEnv(4, autoreset_mode=AutoresetMode.DISABLED, **settings)
    by_mask.reset(seed=1)
    for _ in range(3):
        before, *_ = by_mask.step(zeros)
    mask = np.array([False, True, False, False])
    after, _ = by_mask.reset(options={"reset_mask": mask})
    assert np.array_equal(after[~mask], before[~mask])
    assert np.array_equal(after[1], first[1])
    with pytest.raises(RuntimeError, match="environment 0: its episode ended"):
        by_mask.step(zeros)


def test_wrappers_of_gymnasium_work():
    """Episode statistics, as every trainer takes them."""
    envs = gym.wrappers.vector.RecordEpisodeStatistics(VectorCongestionEnv(3, link=LINKS, steps=4))
    envs.reset(seed=1)
    for _ in range(4):
        *_, infos = envs.step(envs.action_space.sample())
    assert list(infos["episode"]["l"]) == [4, 4, 4]


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"link": "10Mbit/s"}, "link: .*delay is missing"),
        ({"link": "10Mbit/s,5ms..1ms"}, "runs backwards"),
        ({"link": "10Mbit/s,5ms,los=1%"}, "did you mean 'loss'"),
        ({"link": 10}, "link: 10 is not a text"),
        ({"action": "windw"}, "did you mean 'window'"),
        ({"action": ["window", "window_change"]}, "two set the window"),
        ({"observation": []}, "observations: there is none"),
        ({"observation": "loss_rate"}, "unknown observation"),
        ({"reward": {"thruput": 1}}, "unknown reward"),
        ({"reward": {"loss": float("nan")}}, "NaN"),
        ({"reward": {"loss": "much"}}, "no number"),
        ({"reward": "throughput"}, "mapping"),
        ({"step": "5"}, "a step is written as 1rtt or 10ms"),
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps: 2.5"),
        ({"num_envs": 0}, "num_envs"),
        ({"threads": -1}, "threads"),
        ({"protocol": "cubik"}, "did you mean 'cubic'"),
        ({"against": "cubic:x"}, "against: "),
        ({"against": "cubic:1000000000"}, "against: 1000000000 flows are too many"),
        ({"preset": "bsd"}, "preset"),
        ({"transport": "sctp"}, "transport"),
        ({"autoreset_mode": "never"}, "autoreset_mode"),
        ({"render_mode": "human"}, "render_mode"),
    ],
)
def test_wrong_settings_are_named(settings, hint):
    """The error of one line names the setting and the valid values."""
    with pytest.raises(narrows.SpecError, match=hint) as e:
        VectorCongestionEnv(**{"num_envs": 2, "link": "10Mbit/s,5ms", **settings})
    assert "\n" not in str(e.value)


def test_unknown_options_of_a_reset_are_refused():
    """An option that is not known is named with those that are, and no episode begins."""
    single, vector = CongestionEnv(link=LINKS), VectorCongestionEnv(2, link=LINKS)
    with pytest.raises(narrows.SpecError, match="'link'; this environment has none"):
        single.reset(options={"link": "1Mbit/s,5ms"})
    with pytest.raises(narrows.SpecError, match="'reset_maks'; expected: reset_mask"):
        vector.reset(options={"reset_maks": np.array([True, False])})
    single.reset(options={})
    vector.reset(options={"reset_mask": None})


@pytest.mark.parametrize(
    ("actions", "hint"),
    [
        ([[0.0], [float("nan")]], "environment 1: action 'window_change' is NaN"),
        ([[float("inf")], [0.0]], "environment 0: action 'window_change' is inf"),
        ([0.0, 0.0], "shape"),
        ([[0.0, 0.0]], "shape"),
        ([["a"], ["b"]], "no array of numbers"),
    ],
)
def test_wrong_actions_change_nothing(actions, hint):
    """Invalid actions are refused before any link is stepped."""
    envs = VectorCongestionEnv(2, link=LINKS, steps=20)
    envs.reset(seed=1)
    with pytest.raises(narrows.SpecError, match=hint):
        envs.step(actions)
    zeros = np.zeros((2, 1), dtype=np.float32)
    went_on = envs.step(zeros)
    envs.reset(seed=1)
    assert same(went_on[:4], envs.step(zeros)[:4])


def test_stepping_before_a_reset_is_refused():
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        CongestionEnv(link=LINKS).step([0.0])


def test_a_fork_is_told_that_its_threads_are_gone():
    """A forked process has the memory, but no threads: it gets an error and does not hang."""
    code = """
import os, sys
from narrows.env import VectorCongestionEnv
envs = VectorCongestionEnv(8, link="10Mbit/s,10ms", steps=5)
envs.reset(seed=1)
child = os.fork()
if child == 0:
    try:
        envs.step([[0.0]] * 8)
    except RuntimeError as e:
        os._exit(7 if "fork" in str(e) else 1)
    os._exit(2)
sys.exit(0 if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7 else 1)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


def test_rewards_are_weighted_sums():
    """A reward is the sum of its terms, each times its weight."""
    weights = {name: 0.5 + i for i, name in enumerate(REWARDS)}
    both = [*({name: 1.0} for name in REWARDS), weights]
    envs = [VectorCongestionEnv(6, link=LINKS, steps=20, reward=each) for each in both]
    told = [play(each, 10)[2::4] for each in envs]
    for *terms, whole in zip(*told, strict=True):
        total = sum(w * t for w, t in zip(weights.values(), terms, strict=True))
        assert np.allclose(whole, total, rtol=1e-12)


def test_render_is_the_reports_picture_of_the_trace():
    """The trace is drawn for a browser; without a mode no trace is kept."""
    env = CongestionEnv(
        link="10Mbit/s,10ms,queue=20p", steps=40, action="window", render_mode="svg"
    )
    env.reset(seed=1)
    for _ in range(40):
        env.step([35])
    trace = env.trace()
    assert len(trace["time_s"]) == 41
    assert trace["delivery_mbit_s"][-10:].mean() == pytest.approx(10, rel=0.05)
    assert trace["window_packets"][-1] == 35
    svg = env.render()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert "Mbit/s" in svg
    assert "10Mbit/s,10ms" in svg
    page = VectorCongestionEnv(2, link="10Mbit/s,10ms", steps=2, render_mode="html")
    page.reset(seed=1)
    assert page.render().startswith("<!doctype html>")
    plain = CongestionEnv(link="10Mbit/s,10ms")
    plain.reset(seed=1)
    assert plain.render() is None
    assert len(plain.trace()["time_s"]) == 0


def test_listed_protocols_are_baselines_on_the_same_links():
    """Equal seeds result in equal links: bbr compared with cubic under random loss."""
    settings = {"link": "10Mbit/s..20Mbit/s,20ms,loss=1%", "steps": 150, "num_envs": 4, "seed": 1}
    cubic, bbr = (score(evaluate(name, **settings)) for name in ("cubic", "bbr"))
    assert bbr["throughput"] > 0.8 > cubic["throughput"]
    assert cubic["loss"] == pytest.approx(0.01, abs=0.01)


def test_competitors_take_their_share():
    """With cubic as a competitor, a window of the link's size gets less of the link than alone."""
    settings = {"link": "10Mbit/s,20ms", "action": "window", "num_envs": 2, "seed": 1}
    packets = np.full((2, 1), 60, dtype=np.float32)
    alone, beside = (
        score(evaluate(lambda _: packets, steps=300, against=against, **settings))
        for against in (None, "cubic")
    )
    assert alone["throughput"] > 0.95
    assert 0.2 < beside["throughput"] < 0.8


def test_import_narrows_needs_neither_gymnasium_nor_numpy():
    """The package alone starts fast; without the extra, the error of narrows.env says what to install."""
    code = """
import sys
import narrows
assert not {"numpy", "gymnasium", "narrows.env"} & set(sys.modules), "imported too much"
sys.modules["gymnasium"] = None
try:
    import narrows.env
except ImportError as e:
    assert "pip install narrows[env]" in str(e), e
else:
    raise SystemExit("imported without gymnasium")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_lists_have_a_text_for_each_entry():
    for entries in (ACTIONS, OBSERVATIONS, REWARDS):
        assert all(name == entry.name and entry.help for name, entry in entries.items())
        assert all(entry.low < entry.high for entry in entries.values())


def test_a_vector_has_no_more_flows_than_fit():
    """Protects the interpreter: a failed allocation would end it without an exception."""
    with pytest.raises(narrows.SpecError, match="num_envs: 1000 is not a number from 1 to 999"):
        VectorCongestionEnv(1000, against="cubic:1000")

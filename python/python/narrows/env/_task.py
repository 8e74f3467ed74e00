"""Settings, spaces and lists of all environments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _narrows
from ..links import Link
from ..units import Time, scalar, time_text

__all__ = ["ACTIONS", "OBSERVATIONS", "REWARDS", "Entry"]

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]


class Entry(NamedTuple):
    """An action, an observation or a term of a reward, and its bounds."""

    name: str
    unit: str
    low: float
    high: float
    help: str


_actions, _observations, _rewards, COLUMNS = _narrows.env_lists()

#: Actions by name. At most one may set the window, and one the pacing rate.
ACTIONS: dict[str, Entry] = {e[0]: Entry(*e) for e in _actions}
#: Observations by name.
OBSERVATIONS: dict[str, Entry] = {e[0]: Entry(*e) for e in _observations}
#: Terms of a reward by name. They are quantities; undesired ones need a negative weight.
REWARDS: dict[str, Entry] = {
    name: Entry(name, "", -float("inf"), float("inf"), text) for name, text in _rewards
}

DEFAULT_LINK, _observations_seen, _weights = _narrows.env_defaults()
DEFAULT_OBSERVATIONS = tuple(_observations_seen)
DEFAULT_REWARD = dict(_weights)

RENDERING: dict[str, Any] = {"render_modes": ["svg", "html"], "render_fps": 1}


class Task:
    """The checked settings of an environment, and its spaces."""

    def __init__(
        self,
        num_envs: int,
        threads: int,
        autoreset: str,
        *,
        link: str | Link,
        packet: int,
        preset: str,
        transport: str,
        protocol: str | None,
        against: str | None,
        action: str | Sequence[str],
        observation: str | Sequence[str],
        reward: Mapping[str, float],
        step: Time,
        steps: int,
    ) -> None:
        def whole(name: str, value: object) -> int:
            value = scalar(value)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise _narrows.SpecError(f"{name}: {value!r} is not a whole number above 0")
            if value >= 2**31:
                raise _narrows.SpecError(f"{name}: {value} is too large")
            return int(value)

        def text(name: str, value: str) -> str:
            if not isinstance(value, str):
                raise _narrows.SpecError(f"{name}: {value!r} is not a text")
            return value

        def names(name: str, value: str | Sequence[str]) -> list[str]:
            listed = [value] if isinstance(value, str) else list(value)
            return [text(name, each) for each in listed]

        if not isinstance(reward, Mapping):
            raise _narrows.SpecError(
                f"reward: {reward!r} is not a mapping such as {{'throughput': 1, 'loss': -5}}"
            )
        weights = []
        for name, weight in reward.items():
            if isinstance(weight, bool) or not isinstance(weight, (int, float, np.number)):
                raise _narrows.SpecError(f"reward '{name}': its weight {weight!r} is no number")
            weights.append((text("reward", name), float(weight)))
        actions, observations = names("action", action), names("observation", observation)
        self.num_envs = whole("num_envs", num_envs)
        self.environments = _narrows.Environments(
            link=str(link) if isinstance(link, Link) else text("link", link),
            packet=whole("packet", packet),
            preset=text("preset", preset),
            transport=text("transport", transport),
            protocol=None if protocol is None else text("protocol", protocol),
            against=None if against is None else text("against", against),
            actions=actions,
            observations=observations,
            rewards=weights,
            step=time_text(step, "step"),
            steps=whole("steps", steps),
            num_envs=self.num_envs,
            threads=whole("threads", threads),
            autoreset=text("autoreset", autoreset),
        )
        self.action_space = _box([ACTIONS[name] for name in actions])
        self.observation_space = _box([OBSERVATIONS[name] for name in observations])
        self.width = len(observations)
        self.choices = len(actions)

    def actions(self, actions: ArrayLike) -> Float32:
        """Return one row of 32-bit floats per environment; no copy if the input has this form."""
        try:
            rows = np.ascontiguousarray(actions, dtype=np.float32)
        except (TypeError, ValueError) as e:
            raise _narrows.SpecError(f"actions are no array of numbers: {e}") from e
        wanted = (self.num_envs, self.choices)
        if rows.shape != wanted:
            raise _narrows.SpecError(f"actions have the shape {rows.shape}; {wanted} is expected")
        return rows

    def trace(self) -> dict[str, Float64]:
        """Return the columns of the first environment's trace."""
        rows = np.array(self.environments.trace(0), dtype=np.float64).reshape(-1, len(COLUMNS))
        return dict(zip(COLUMNS, rows.T, strict=True))

    def render(self, mode: str | None) -> str | None:
        """Draw the trace of the first environment, in the style of reports."""
        if mode is None:
            return None
        svg = self.environments.svg(0)
        if mode == "svg":
            return Picture(svg)
        return Picture(
            f'<!doctype html><html><head><meta charset="utf-8"></head><body>{svg}</body></html>'
        )

    def blank(self) -> Float32:
        """Return an array with a row of observations per environment."""
        return np.zeros((self.num_envs, self.width), dtype=np.float32)


def _box(entries: list[Entry]) -> gym.spaces.Box:
    low = np.array([e.low for e in entries], dtype=np.float32)
    high = np.array([e.high for e in entries], dtype=np.float32)
    return gym.spaces.Box(low, high, dtype=np.float32)


class Picture(str):
    """A picture as text that notebooks display."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def settings_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an environment that are settings of its links and episodes."""
    parameters = inspect.signature(Task).parameters.values()
    return {p.name: arguments[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY}


def check_render_mode(mode: str | None) -> Literal["svg", "html"] | None:
    """Return the mode if it is valid; otherwise raise an error."""
    if mode is None or mode == "svg" or mode == "html":
        return mode  # type: ignore[return-value]
    raise _narrows.SpecError(f"render_mode: {mode!r} is neither 'svg' nor 'html'")


def check_options(options: Mapping[str, Any] | None, *known: str) -> None:
    """Raise an error if the options of a reset have another key than the known ones."""
    for key in options or ():
        if key not in known:
            expected = f"expected: {', '.join(known)}" if known else "this environment has none"
            raise _narrows.SpecError(f"options: unknown key {key!r}; {expected}")

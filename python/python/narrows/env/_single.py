"""The environment of a single link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.utils import EzPickle
from numpy.typing import ArrayLike

from ..links import Link
from ..units import Time
from ._task import (
    DEFAULT_LINK,
    DEFAULT_OBSERVATIONS,
    DEFAULT_REWARD,
    RENDERING,
    Float32,
    Float64,
    Task,
    check_options,
    check_render_mode,
    settings_of,
)


class CongestionEnv(gym.Env[Float32, Float32], EzPickle):
    """One flow over a link that is drawn anew for each episode.

    The arguments are those of :class:`~narrows.env.VectorCongestionEnv`. That is far faster for many
    links, since here each step of a link is a call.

    >>> from narrows.env import CongestionEnv
    >>> settings = {"link": "10Mbit/s,10ms", "action": "window", "reward": {"throughput": 1}}
    >>> env = CongestionEnv(**settings, steps=50)
    >>> observation, info = env.reset(seed=1)
    >>> info["rate"], round(info["base_rtt"], 4)
    (10.0, 0.0208)
    >>> for _ in range(50):
    ...     observation, reward, terminated, truncated, info = env.step([40])
    >>> round(reward, 1), terminated, truncated
    (1.0, False, True)
    """

    # Gymnasium reads it from the class before there is an instance.
    metadata: ClassVar[dict[str, Any]] = RENDERING  # type: ignore[misc]

    def __init__(
        self,
        *,
        link: str | Link = DEFAULT_LINK,
        packet: int = 1000,
        preset: str = "linux",
        transport: str = "tcp",
        protocol: str | None = None,
        against: str | None = None,
        action: str | Sequence[str] = "window_change",
        observation: str | Sequence[str] = DEFAULT_OBSERVATIONS,
        reward: Mapping[str, float] = DEFAULT_REWARD,
        step: Time = "1rtt",
        steps: int = 400,
        render_mode: str | None = None,
    ) -> None:
        settings = settings_of(locals())
        EzPickle.__init__(self, render_mode=render_mode, **settings)
        self._task = Task(1, 1, "disabled", **settings)
        self._environments = self._task.environments
        self._seeded = False
        self.action_space: gym.spaces.Box = self._task.action_space  # type: ignore[assignment]
        self.observation_space: gym.spaces.Box = self._task.observation_space  # type: ignore[assignment]
        self.render_mode = check_render_mode(render_mode)
        if self.render_mode is not None:
            self._environments.keep_trace(0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32, dict[str, Any]]:
        """Begin an episode: draw a link, simulate the handshake and the initial window's round trip.

        Args:
            seed: Seed of the link and of all random draws; without it, the next ones are derived.
            options: There are none: any key is refused.

        Returns:
            The observation, of shape ``(observations,)``, and infos: ``rate`` of the link in
            Mbit/s, ``base_rtt`` in seconds, ``link`` as a specification.

        """
        check_options(options)
        seed = None if seed is None else int(seed)
        super().reset(seed=seed)
        seeds = None
        if seed is not None or not self._seeded:
            own = int(self.np_random.integers(2**63)) if seed is None else seed % 2**64
            seeds = np.array([own], dtype=np.uint64)
        observation = self._task.blank()
        self._environments.reset(seeds, None, observation)
        self._seeded = True
        rate, rtt = self._environments.paths()[0]
        return observation[0], {
            "rate": rate,
            "base_rtt": rtt,
            "link": self._environments.links()[0],
        }

    def step(self, action: ArrayLike) -> tuple[Float32, float, bool, bool, dict[str, Any]]:
        """Simulate a step.

        Args:
            action: Numbers of shape ``(actions,)``. Finite values are clipped to the bounds;
                NaN and infinity are refused.

        Returns:
            The observation, of shape ``(observations,)``, the reward, whether the episode is
            terminated (never) or truncated (after its last step), and infos.

        """
        observation, reward = self._task.blank(), np.zeros(1)
        truncated = np.zeros(1, dtype=np.bool_)
        row = self._task.actions(np.reshape(np.asarray(action), (1, -1)))
        self._environments.step(row, observation, reward, truncated, None)
        return observation[0], float(reward[0]), False, bool(truncated[0]), {}

    def trace(self) -> dict[str, Float64]:
        """Return the episode step by step; units are in the names. Empty without a ``render_mode``."""
        return self._task.trace()

    def render(self) -> str | None:
        """Draw the episode: rates, RTT, window and queue, losses."""
        return self._task.render(self.render_mode)

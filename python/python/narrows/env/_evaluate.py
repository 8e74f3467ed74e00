"""Comparison of a policy with listed protocols, on the same links and in the same measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._task import Float32, Float64
from ._vector import VectorCongestionEnv

#: Measures of each episode that :func:`evaluate` returns.
MEASURES = ("throughput", "rtt", "loss", "reward")

#: Actions of shape ``(num_envs, actions)`` from observations of shape ``(num_envs, observations)``.
Policy = Callable[[Float32], ArrayLike]


def evaluate(
    policy: Policy | str,
    *,
    num_envs: int,
    seed: int,
    **settings: Any,  # noqa: ANN401
) -> dict[str, Float64]:
    """Run an episode on each of ``num_envs`` links and return the means of each.

    Args:
        policy: A function from observations to actions, or the name of a listed protocol such
            as ``"bbr"``.
        num_envs: Number of links.
        seed: Seed of the first link. Equal seeds and settings result in equal links with equal losses.
        settings: As of :class:`~narrows.env.VectorCongestionEnv`.

    Returns:
        ``throughput`` over the link's capacity, ``rtt`` in base RTTs, ``loss`` as a share and
        ``reward`` per step, each of shape ``(num_envs,)``.

    >>> from narrows.env import evaluate
    >>> settings = {"link": "10Mbit/s,20ms,loss=1%", "steps": 300, "num_envs": 4, "seed": 1}
    >>> cubic, bbr = (evaluate(name, **settings) for name in ("cubic", "bbr"))
    >>> bool(bbr["throughput"].mean() > 1.5 * cubic["throughput"].mean())
    True

    """
    listed = policy if isinstance(policy, str) else None
    envs = VectorCongestionEnv(num_envs, protocol=listed, autoreset_mode="Disabled", **settings)
    observations, _ = envs.reset(seed=seed)
    none = np.zeros(envs.action_space.shape or (), dtype=np.float32)
    ended = np.zeros(num_envs, dtype=np.bool_)
    while not ended.all():
        actions = none if isinstance(policy, str) else policy(observations)
        observations, _, _, ended, _ = envs.step(actions)
    return envs.means()


def score(means: Mapping[str, Float64]) -> dict[str, float]:
    """Return the mean of each measure over all links, without absent values.

    >>> import numpy as np
    >>> from narrows.env import score
    >>> score({"loss": np.array([0.0, 0.5, np.nan])})
    {'loss': 0.25}
    """
    return {name: float(np.nanmean(values)) for name, values in means.items()}

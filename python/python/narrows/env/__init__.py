"""Environments for learning congestion control: one link, or thousands stepped by one call.

An action sets a flow's window, its pacing rate or both. A step simulates the link for a round trip or
a given time. The observation contains measurements that a sender can make in the step. Each episode
has a link of its own, drawn from ranges.

>>> import numpy as np
>>> from narrows.env import VectorCongestionEnv
>>> envs = VectorCongestionEnv(64, link="1Mbit/s..100Mbit/s log,5ms..100ms,loss=0..5%", steps=50)
>>> observations, _ = envs.reset(seed=1)
>>> observations.shape, observations.dtype
((64, 6), dtype('float32'))
>>> for _ in range(50):
...     actions = np.full((64, 1), 0.2, dtype=np.float32)  # a larger window, regardless of observations
...     observations, rewards, terminations, truncations, _ = envs.step(actions)
>>> bool(truncations.all())
True

Needs ``pip install narrows[env]``. The available names are in :data:`ACTIONS`,
:data:`OBSERVATIONS` and :data:`REWARDS`.
"""

try:
    import gymnasium as _gymnasium
    import numpy as _numpy  # noqa: F401
except ImportError as e:
    raise ImportError(
        f"narrows.env needs gymnasium and numpy ({e}); install them with: pip install narrows[env]"
    ) from e

from ._evaluate import MEASURES, Policy, evaluate, score
from ._single import CongestionEnv
from ._task import ACTIONS, OBSERVATIONS, REWARDS, Entry
from ._vector import VectorCongestionEnv

__all__ = [
    "ACTIONS",
    "MEASURES",
    "OBSERVATIONS",
    "REWARDS",
    "CongestionEnv",
    "Entry",
    "Policy",
    "VectorCongestionEnv",
    "evaluate",
    "score",
]

if "narrows/Congestion-v0" not in _gymnasium.registry:
    _gymnasium.register(
        "narrows/Congestion-v0",
        entry_point="narrows.env:CongestionEnv",
        vector_entry_point="narrows.env:VectorCongestionEnv",
    )

"""The environment of many links, stepped together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils import EzPickle
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from .. import _narrows
from ..links import Link
from ..units import Time
from ._task import (
    DEFAULT_LINK,
    DEFAULT_OBSERVATIONS,
    DEFAULT_REWARD,
    RENDERING,
    Bool,
    Float32,
    Float64,
    Task,
    check_options,
    check_render_mode,
    settings_of,
)

Array = NDArray[Any]
Seeds = NDArray[np.uint64]

_MODES = {
    AutoresetMode.NEXT_STEP: "next_step",
    AutoresetMode.SAME_STEP: "same_step",
    AutoresetMode.DISABLED: "disabled",
}


class VectorCongestionEnv(VectorEnv[Float32, Float32, Array], EzPickle):
    """Many flows, each over a link of its own, stepped together on all cores.

    An episode is truncated after ``steps`` steps, and never terminated. A reset simulates the
    handshake and the round trip of the initial window, which the first observation describes.
    A pickled or copied environment has the settings but no episode: it must be reset.

    Args:
        num_envs: Number of links.
        link: A :class:`~narrows.Link`, or a text as for ``narrows compare``. Values may be ranges:
            ``1Mbit/s..100Mbit/s log`` (logarithmic), ``5ms..200ms``, ``loss=0..5%``,
            ``queue=0.5bdp..2bdp``. A value is drawn per episode.
        packet: Bytes of a data packet on the wire.
        preset: Variant of TCP: ``linux``, ``rfc`` or ``ns2``.
        transport: ``tcp``, or ``rrtp``, where each lost packet is reported.
        protocol: A listed protocol that replaces the actions, such as ``"cubic"``: a baseline in
            the same measures. Actions are then ignored.
        against: Competitors on the same link, such as ``"cubic"`` or ``"bbr:3"``.
        action: One or two names of :data:`~narrows.env.ACTIONS`.
        observation: Names of :data:`~narrows.env.OBSERVATIONS`.
        reward: Weights of terms of :data:`~narrows.env.REWARDS`.
        step: Length of a step: ``1rtt`` (base RTTs of the episode's link) or a time such as
            ``10ms``, a timedelta or seconds.
        steps: Number of steps of an episode.
        threads: Number of threads; 0 for one per core. Results do not depend on it.
        autoreset_mode: As in Gymnasium: in the next step (its action is ignored, its reward
            is 0), in the same step (the last observations are in ``infos["final_obs"]``), or only
            by ``reset`` with the option ``reset_mask``.
        render_mode: ``svg`` or ``html``, for :meth:`render`; with None no trace is kept.

    Raises:
        narrows.SpecError: A setting, an action or a shape is invalid.

    >>> from narrows.env import VectorCongestionEnv
    >>> envs = VectorCongestionEnv(3, link="10Mbit/s,10ms", action="window", steps=100)
    >>> _ = envs.reset(seed=1)
    >>> for _ in range(100):
    ...     _ = envs.step([[10], [30], [60]])  # windows in packets of 1,000 bytes
    >>> [round(float(x), 1) for x in envs.means()["throughput"]]
    [0.4, 1.0, 1.0]

    """

    def __init__(
        self,
        num_envs: int = 1,
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
        threads: int = 0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
    ) -> None:
        try:
            mode = AutoresetMode(autoreset_mode)
        except ValueError:
            known = ", ".join(m.value for m in AutoresetMode)
            raise _narrows.SpecError(
                f"autoreset_mode: {autoreset_mode!r} is none of {known}"
            ) from None
        settings = settings_of(locals())
        EzPickle.__init__(
            self,
            num_envs,
            threads=threads,
            autoreset_mode=mode,
            render_mode=render_mode,
            **settings,
        )
        self._task = Task(num_envs, threads, _MODES[mode], **settings)
        self._environments = self._task.environments
        self._mode = mode
        self._seeded = False
        self._last = self._task.blank()
        self.num_envs = self._task.num_envs
        self.single_observation_space = self._task.observation_space
        self.single_action_space = self._task.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": mode, **RENDERING}
        self.render_mode = check_render_mode(render_mode)
        if self.render_mode is not None:
            self._environments.keep_trace(0)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Float32, dict[str, Any]]:
        """Begin an episode on every link.

        Args:
            seed: Seed of the first link, increased by one for each further link; or one seed for each.
                Without it, the next links are derived from the present seeds.
            options: ``reset_mask``: an array of booleans of shape ``(num_envs,)`` that selects the
                environments to reset. Any other key is refused.

        Returns:
            Observations of shape ``(num_envs, observations)``, and infos: ``rate`` of each link in
            Mbit/s and ``base_rtt`` in seconds.

        """
        check_options(options, "reset_mask")
        mask: Bool | None = None
        if options is not None and options.get("reset_mask") is not None:
            mask = np.asarray(options["reset_mask"])
            if mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
                raise _narrows.SpecError(
                    f"reset_mask: booleans of the shape ({self.num_envs},) are expected"
                )
            mask = np.ascontiguousarray(mask)
        super().reset(seed=int(seed) if isinstance(seed, (int, np.integer)) else None)
        observations = self._task.blank()
        if mask is not None:
            observations = self._last.copy()
        self._environments.reset(self._seeds(seed), mask, observations)
        self._seeded = True
        self._last = observations
        return observations, self._paths()

    def step(self, actions: ArrayLike) -> tuple[Float32, Float64, Bool, Bool, dict[str, Any]]:
        """Simulate a step on every link.

        Args:
            actions: 32-bit floats of shape ``(num_envs, actions)``. Other numbers are converted.
                Finite values are clipped to the bounds; NaN and infinity are refused.

        Returns:
            Observations of shape ``(num_envs, observations)``; rewards, terminations (all false)
            and truncations of shape ``(num_envs,)``; infos. All are new arrays, which later steps
            do not overwrite.

        """
        rows = self._task.actions(actions)
        observations, rewards = self._task.blank(), np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, dtype=np.bool_)
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        same_step = self._mode is AutoresetMode.SAME_STEP
        last = self._task.blank() if same_step else None
        self._environments.step(rows, observations, rewards, truncated, last)
        self._last = observations
        infos: dict[str, Any] = {}
        if same_step and truncated.any():
            infos = {
                "final_obs": last,
                "_final_obs": truncated.copy(),
                "final_info": {},
                "_final_info": truncated.copy(),
            }
        return observations, rewards, terminated, truncated, infos

    def links(self) -> list[str]:
        """Return the link of each environment's episode, as ``narrows compare`` reads it."""
        return self._environments.links()

    def means(self) -> dict[str, Float64]:
        """Return means over each environment's episode so far, each of shape ``(num_envs,)``.

        ``throughput`` over the link's capacity, ``rtt`` in base RTTs, ``loss`` as a share,
        ``reward`` per step; NaN where no value exists.
        """
        rows = np.array(self._environments.means())
        return dict(zip(("throughput", "rtt", "loss", "reward"), rows.T, strict=True))

    def trace(self) -> dict[str, Float64]:
        """Return the first environment's episode step by step; units are in the names.

        It is empty without a ``render_mode``.
        """
        return self._task.trace()

    def render(self) -> str | None:  # type: ignore[override]
        """Draw the first environment's episode: rates, RTT, window and queue, losses."""
        return self._task.render(self.render_mode)

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Seeds | None:
        if seed is None:
            if self._seeded:
                return None
            return self.np_random.integers(2**63, size=self.num_envs, dtype=np.uint64)
        if isinstance(seed, (int, np.integer)):
            first = int(seed)
            return np.array([(first + i) % 2**64 for i in range(self.num_envs)], dtype=np.uint64)
        given = list(seed)
        if len(given) != self.num_envs or any(s is None for s in given):
            raise _narrows.SpecError(f"seed: one number, or {self.num_envs} numbers, are expected")
        return np.array([int(s or 0) % 2**64 for s in given], dtype=np.uint64)

    def _paths(self) -> dict[str, Any]:
        rates, rtts = np.array(self._environments.paths()).T
        everywhere = np.ones(self.num_envs, dtype=np.bool_)
        return {"rate": rates, "_rate": everywhere, "base_rtt": rtts, "_base_rtt": everywhere}

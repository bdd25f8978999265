"""Completes the infos of an environment, so that a trainer can rely on their keys."""

from __future__ import annotations

from typing import Any

import gymnasium

from proxmo_envs.contract import COMPLETE, success_in
from proxmo_envs.task import seed_of, seed_task


class TextEnvAdapter(gymnasium.Wrapper[str, str, str, str]):
    """Passes complete infos on and adds to others what is missing.

    `reset(options={"task_id": "seed-0017"})` of an environment that lists no tasks becomes
    `reset(seed=17)`. `info["won"]` is what the info says by `won`, `is_success` or `success`. Where
    the environment tells it by no key, the return of the episode decides: it reaches the reward
    threshold of the registration, or, without a threshold, is positive at termination.
    """

    def __init__(self, env: Any, *, success_key: str = "") -> None:
        """Wrap an environment.

        Args:
            env: what `gymnasium.make` returned.
            success_key: the key that is known to tell success, so that an info without it means
                none; "" where the return decides.
        """
        super().__init__(env)
        self._success_key = success_key
        self._lists_tasks = hasattr(type(env.unwrapped), "task_set")
        self._threshold = None if env.spec is None else env.spec.reward_threshold
        self._defaults: dict[str, Any] = {}
        self._return = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; `options["task_id"]` names the task."""
        task_id = options.get("task_id", "") if isinstance(options, dict) else ""
        if not self._lists_tasks:
            seed = self._seed(task_id, seed)
            task_id = seed_task(seed)
            options = {k: v for k, v in (options or {}).items() if k != "task_id"} or None
        observation, info = self.env.reset(seed=seed, options=options)
        self._return = 0.0
        self._defaults = {"task": observation, "task_id": task_id, "task_type": "unknown"}
        return observation, self._complete(info, terminated=False)

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Carry out an action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not self._success_key:
            self._return += float(reward)
        return observation, reward, terminated, truncated, self._complete(info, terminated)

    def _seed(self, task_id: str, seed: int | None) -> int:
        if task_id:
            return seed_of(task_id)
        return int(self.unwrapped.np_random.integers(1_000)) if seed is None else seed

    def _complete(self, info: Any, terminated: bool) -> dict[str, Any]:
        if not isinstance(info, dict) or (
            info.keys() >= COMPLETE
            and info["won"].__class__ is bool
            and info["admissible_actions"] is not None
        ):
            return info  # anything but a dictionary is an error of whoever reads it
        told = success_in(info)
        won = self._won(terminated) if told is None else told
        actions = info.get("admissible_actions")
        added = {"admissible_actions": [] if actions is None else actions, "won": won}
        return {**self._defaults, "score": float(won), **info, **added}

    def _won(self, terminated: bool) -> bool:
        """Return what holds where the info does not say."""
        if self._success_key:
            return False
        if self._threshold is not None:
            return self._return >= self._threshold
        return bool(terminated) and self._return > 0

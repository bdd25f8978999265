"""Agents without a language model: the expert (an upper line), chance (a lower line), a mixture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from proxmo.agents.base import Decision, Situation
from proxmo.agents.parser import BLANK
from proxmo.errors import UsageError


class ExpertAgent:
    """Plays `info["expert_action"]`; the environment must be made with `expert_action=True`."""

    env_options: Mapping[str, Any] = {"expert_action": True}

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        """Returns the expert's action for each situation."""
        actions = [s.info.get("expert_action") for s in situations]
        if any(action is None for action in actions):
            raise UsageError("the environment offers no expert: its info has no 'expert_action'")
        return [Decision(action, response=str(action)) for action in actions]


class RandomAgent:
    """Draws uniformly from the admissible actions, and for a blank in one a word of the task."""

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        """Returns a random admissible action for each situation."""
        if not all(s.view.admissible for s in situations):
            raise UsageError("the environment names no admissible actions to draw from")
        shared = np.random.default_rng(list(seed))
        actions = []
        for situation in situations:
            rng = shared if situation.seed is None else np.random.default_rng(situation.seed)
            choices = situation.view.admissible
            drawn = choices[int(rng.integers(len(choices)))]
            if BLANK.search(drawn):
                words = situation.view.task.split() or [""]
                word = words[int(rng.integers(len(words)))]
                drawn = word.join(BLANK.split(drawn))
            actions.append(drawn)
        return [Decision(action, response=action) for action in actions]


class NoisyExpertAgent:
    """Plays a random admissible action with probability `noise`, else the expert's.

    Args:
        noise: in [0, 1]; may be changed between episodes.
    """

    def __init__(self, noise: float) -> None:
        self.noise = noise

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        """Returns one decision per situation."""
        rng = np.random.default_rng(list(seed))
        noisy = rng.random(len(situations)) < self.noise
        entropy = [int(rng.integers(2**32))]

        def decide(agent: ExpertAgent | RandomAgent, noise: bool) -> Iterator[Decision]:
            chosen = [s for s, is_noisy in zip(situations, noisy, strict=True) if is_noisy == noise]
            return iter(agent.act(chosen, seed=entropy))

        random, expert = decide(RandomAgent(), True), decide(ExpertAgent(), False)
        return [next(random if is_noisy else expert) for is_noisy in noisy]

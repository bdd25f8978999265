"""A policy of known competence: the expert, that now and then does something else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proxmo.agents.base import Decision, Situation
from proxmo.agents.scripted import ExpertAgent, RandomAgent


class NoisyExpertAgent:
    """Plays a random admissible action with probability `noise`, else the expert's.

    Args:
        noise: in [0, 1]; may be changed between episodes.
    """

    def __init__(self, noise: float) -> None:
        self.noise = noise
        self._expert = ExpertAgent()
        self._random = RandomAgent()

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        """Returns one decision per situation."""
        rng = np.random.default_rng(list(seed))
        noisy = rng.random(len(situations)) < self.noise
        entropy = [int(rng.integers(2**32))]
        random = iter(
            self._random.act([s for s, n in zip(situations, noisy, strict=True) if n], seed=entropy)
        )
        expert = iter(
            self._expert.act(
                [s for s, n in zip(situations, noisy, strict=True) if not n], seed=entropy
            )
        )
        return [next(random if n else expert) for n in noisy]

"""Random choices from one stream of numbers that is the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")
# Uniform numbers to draw at once; drawing them one by one takes five times as long.
_BLOCK = 4096


class Rng:
    """Draws choices from its own numpy Generator."""

    def __init__(self, *seed: int) -> None:
        """Seed from numbers; equal ones give equal choices."""
        self._rng = np.random.default_rng(seed)
        self._numbers: list[float] = []

    def uniform(self) -> float:
        """Return a number in [0, 1)."""
        if not self._numbers:
            self._numbers = self._rng.random(_BLOCK).tolist()
        return self._numbers.pop()

    def between(self, bounds: tuple[int, int]) -> int:
        """Return an integer between the two bounds, both included."""
        return bounds[0] + int(self.uniform() * (bounds[1] - bounds[0] + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of `choices`."""
        return choices[int(self.uniform() * len(choices))]

    def some(self, choices: Sequence[T], n: int) -> list[T]:
        """Return `n` different ones of `choices`, in any order; all where they are fewer."""
        rest = list(choices)
        return [rest.pop(int(self.uniform() * len(rest))) for _ in range(min(n, len(rest)))]

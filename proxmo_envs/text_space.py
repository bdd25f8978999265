"""A Gymnasium space whose elements are strings.

`gymnasium.spaces.Text` wants a fixed alphabet and length, scans every character in `contains` and
samples noise. Here every `str` is an element, and a sample is an action that makes sense right now,
when the environment said which do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import Space


class TextSpace(Space[str]):
    """All strings; `sample` draws from `choices`, which an environment may update at every step."""

    def __init__(
        self, choices: Iterable[str] = (), seed: int | np.random.Generator | None = None
    ) -> None:
        """Make the space; without `choices` a sample is the empty string."""
        super().__init__(shape=None, dtype=None, seed=seed)
        self.choices: Sequence[str] = tuple(choices)

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no fixed size."""
        return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Draw one of `choices`, uniformly or with `probability`; `mask` keeps some of them."""
        weights = None
        if probability is not None:
            weights = np.asarray(probability, dtype=float)
        if mask is not None:
            kept = np.asarray(mask, dtype=float)
            weights = kept if weights is None else kept * weights
        if not self.choices:
            return ""
        if weights is None:
            return self.choices[int(self.np_random.integers(len(self.choices)))]
        if weights.shape != (len(self.choices),) or weights.sum() <= 0:
            raise ValueError(
                f"mask and probability need one entry for each of the {len(self.choices)} choices "
                f"and at least one above 0, got shape {weights.shape} with sum {weights.sum()}"
            )
        return self.choices[
            int(self.np_random.choice(len(self.choices), p=weights / weights.sum()))
        ]

    def contains(self, x: Any) -> bool:
        """Return True for every string, the empty one too."""
        return isinstance(x, str)

    def __repr__(self) -> str:
        """Name the space; the choices change too often to be part of it."""
        return "TextSpace()"

    def __eq__(self, other: object) -> bool:
        """All text spaces hold the same elements."""
        return isinstance(other, TextSpace)

    __hash__ = None  # type: ignore[assignment]

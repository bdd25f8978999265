"""How long credit assignment takes, beside a plain dense computation of the same numbers.

    from proxmo.credit.bench import synthetic_batch, time_methods

Speed depends on the machine; the ratio to the dense version is what can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.assign import assign
from proxmo.credit.embeddings import tfidf

_VOCABULARY = 400
_TAU = 0.1


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of the fastest of a few runs, and how many times longer the dense version takes."""

    method: str
    rows: int
    seconds: float
    dense_seconds: float | None

    @property
    def ratio(self) -> float | None:
        """Dense seconds over ours."""
        return None if self.dense_seconds is None else self.dense_seconds / self.seconds


def synthetic_batch(
    rng: np.random.Generator,
    *,
    groups: int = 16,
    episodes: int = 8,
    steps: int = 50,
    words: int = 40,
    distinct: float = 0.5,
) -> dict[str, Any]:
    """Arguments of `assign` for a batch of random observations, a share of them distinct."""
    rows = episodes * steps
    per_group = max(1, round(rows * distinct))
    vocabulary = np.array([f"word{number}" for number in range(_VOCABULARY)])
    state: list[str] = []
    for _ in range(groups):
        texts = [" ".join(rng.choice(vocabulary, words)) for _ in range(per_group)]
        repeats = rng.integers(per_group, size=rows - per_group)
        order = rng.permutation(np.concatenate([np.arange(per_group), repeats]))
        state += [texts[number] for number in order.tolist()]
    step = np.tile(np.arange(steps), groups * episodes)
    won = np.repeat(rng.random(groups * episodes) < 0.5, steps)
    return {
        "group": np.repeat(np.arange(groups), rows),
        "episode": np.repeat(np.arange(groups * episodes), steps),
        "step": step,
        "reward": (won & (step == steps - 1)).astype(np.float64),
        "success": won,
        "state": state,
    }


def time_methods(
    batch: dict[str, Any],
    methods: Iterable[str] = ("gigpo", "proxmo"),
    *,
    dense: bool = True,
    repeats: int = 3,
    **options: Any,
) -> list[Timing]:
    """Time methods on a batch, with the dense version of the two that compare steps.

    Args:
        batch: arguments of `assign`.
        methods: names of methods.
        dense: time the dense version too; it needs rows x rows memory, several times.
        repeats: runs of each, the fastest counts.
        **options: options of all the methods.
    """
    returns = assign("grpo", **batch).step_return
    plain = {
        "proxmo": partial(dense_soft_advantage, batch["state"], batch["group"], returns),
        "gigpo": partial(dense_exact_advantage, batch["state"], batch["group"], returns),
    }
    timings = []
    for name in methods:
        seconds = _fastest(partial(assign, name, **batch, **options), repeats)
        other = _fastest(plain[name], repeats) if dense and name in plain else None
        timings.append(Timing(name, len(returns), seconds, other))
    return timings


def dense_soft_advantage(state: list[str], group: NDArray[Any], value: NDArray) -> NDArray:
    """G_t - B_t by a matrix of all rows: every row embedded, every pair compared, masked."""
    vectors = tfidf(state)
    logits = np.where(group[:, None] == group, vectors @ vectors.T / _TAU, -np.inf)
    weight = np.exp(logits - logits.max(1, keepdims=True))
    return value - (weight @ value) / weight.sum(1)


def dense_exact_advantage(state: list[str], group: NDArray[Any], value: NDArray) -> NDArray:
    """G_t - mean over identical states of the group by a matrix of all rows."""
    text = np.array(state)
    same = (group[:, None] == group) & (text[:, None] == text)
    return value - (same @ value) / same.sum(1)


def _fastest(run: Callable[[], Any], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - started)
    return best

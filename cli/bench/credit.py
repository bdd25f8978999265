"""How long credit assignment takes, beside a plain version written the published way.

Speed depends on the machine; the ratio of two times that were measured in turn is what can be
compared.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.assign import assign
from proxmo.credit.proxmo_released import fitted_to_batch

from .processes import isolated, peak_mb

# Distinct words of all tasks, and of each task.
_VOCABULARY, _PALETTE = 2000, 200
_TAU, _STD_EPS = 0.1, 1e-6


@dataclass(frozen=True, slots=True)
class Timing:
    """A method on a batch of `rows` steps, embedding included, beside the plain version.

    Seconds are medians of runs made in turn, `ratio` is the median of plain over our seconds.
    """

    method: str
    rows: int
    seconds: float
    plain_seconds: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Scale:
    """The costs of comparing many distinct states with each other in ProxMO.

    Attributes:
        rows: distinct states.
        top_k: neighbours of each.
        seconds: for the batch, embedding included.
        peak_mb: most memory of the process, Python and libraries included; 0 where unknown.
        dense_mb: size of the matrix of all pairs in float32.
        recall: share of the true neighbours that were found, on a sample; 1 where search is exact.
    """

    rows: int
    top_k: int
    seconds: float
    peak_mb: float
    dense_mb: float
    recall: float


def synthetic_batch(
    rng: np.random.Generator,
    *,
    groups: int = 16,
    episodes: int = 8,
    steps: int = 50,
    words: int = 40,
    distinct: float = 0.5,
) -> dict[str, Any]:
    """Return arguments of `assign`: observations of their task's words, a share distinct."""
    rows = episodes * steps
    per_group = max(1, round(rows * distinct))
    vocabulary = np.array([f"word{number}" for number in range(_VOCABULARY)])
    state: list[str] = []
    for _ in range(groups):
        palette = vocabulary[rng.choice(_VOCABULARY, _PALETTE, replace=False)]
        drawn = palette[rng.integers(_PALETTE, size=(per_group, words))]
        texts = [" ".join(one) for one in drawn.tolist()]
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


def time_methods(batch: dict[str, Any], *, repeats: int = 5) -> list[Timing]:
    """Time the methods that compare steps, in turn with their plain versions.

    Args:
        batch: arguments of `assign`.
        repeats: runs of each, after one that is not counted.
    """
    returns = assign("grpo", **batch).step_return
    timings = []
    for name, plain in (("gigpo", plain_exact_advantage), ("proxmo", plain_soft_advantage)):
        ours = partial(assign, name, **batch)
        theirs = partial(plain, batch["state"], batch["group"], returns)
        # The first runs import libraries and start their threads.
        ours(), theirs()
        pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(repeats)]
        rows = zip(*((own, other, other / own) for own, other in pairs), strict=True)
        timings.append(Timing(name, len(returns), *map(statistics.median, rows)))
    return timings


def measure_scale(rows: int, *, top_k: int = 64) -> Scale:
    """Run ProxMO on distinct states in the batch scope, in a process of its own for its memory."""
    return isolated(_measure_scale, rows, top_k)


def _measure_scale(rows: int, top_k: int) -> Scale:
    groups = -(-rows // 400)
    whole = synthetic_batch(np.random.default_rng(0), groups=groups, distinct=1.0)
    batch = {name: column[:rows] for name, column in whole.items()}
    del whole
    # Loads libraries and starts their threads, which is not to be timed.
    assign("proxmo", **synthetic_batch(np.random.default_rng(0), groups=1, steps=2), top_k=1)
    started = time.perf_counter()
    found = assign("proxmo", **batch, scope="batch", top_k=top_k).diagnostics
    seconds = time.perf_counter() - started
    recall = found.get("credit/search_recall", 1.0)
    return Scale(rows, top_k, seconds, peak_mb(), 4 * rows**2 / 1e6, recall)


def plain_soft_advantage(state: list[str], group: NDArray[Any], value: NDArray[Any]) -> NDArray:
    """Return G_t - B_t the published way: embed every row, compare all pairs, mask other tasks."""
    vectors = fitted_to_batch(state)(state).astype(np.float64)
    logits = vectors @ vectors.T / _TAU
    logits[np.not_equal.outer(group, group)] = -np.inf
    weight = np.exp(logits - logits.max(1, keepdims=True))
    return value - (weight @ value) / weight.sum(1)


def plain_exact_advantage(state: list[str], group: NDArray[Any], value: NDArray[Any]) -> NDArray:
    """Return (G_t - mean) / std over identical states of the group the published way: in loops."""
    import torch

    values = torch.from_numpy(value)
    members: defaultdict[tuple[Any, str], list[Any]] = defaultdict(list)
    for row, key in enumerate(zip(group.tolist(), state, strict=True)):
        members[key].append(values[row])
    mean, std = {}, {}
    for key, returns in members.items():
        alone = len(returns) == 1
        mean[key] = torch.mean(torch.tensor(returns))
        std[key] = torch.tensor(1.0) if alone else torch.std(torch.tensor(returns))
    result = torch.zeros_like(values)
    for row, key in enumerate(zip(group.tolist(), state, strict=True)):
        result[row] = (values[row] - mean[key]) / (std[key] + _STD_EPS)
    return result.numpy()


def _seconds(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started

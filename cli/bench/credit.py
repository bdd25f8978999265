"""`proxmo bench credit`: credit assignment beside a plain version written the published way.

Speed depends on the machine; the ratio of two times that were measured in turn is what can be
compared.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from timeit import timeit
from typing import Annotated, Any

import click
import numpy as np
from numpy.typing import NDArray

from proxmo.credit.assign import assign
from proxmo.credit.proxmo_released import fitted_to_batch

from .. import options
from ..display import progress, show_json
from .measurements import Column, Sizes, duration, show_measurements
from .processes import isolated, peak_mb

# Distinct words of all tasks, and of each task.
_VOCABULARY, _PALETTE = 2000, 200
_TAU, _STD_EPS = 0.1, 1e-6


@dataclass(frozen=True, slots=True)
class Timing:
    """A method on a batch, embedding included, beside the plain version.

    Seconds are medians of runs made in turn, `ratio` is the median of plain over our seconds.
    """

    method: Annotated[str, Column("method")]
    rows: Annotated[int, Column("steps")]
    seconds: Annotated[float, Column("time", duration)]
    plain_seconds: Annotated[float, Column("plain dense", duration)]
    ratio: Annotated[float, Column("ratio", "{:.1f}")]


@dataclass(frozen=True, slots=True)
class Scale:
    """The costs of comparing many distinct states with each other in ProxMO, embedding included."""

    rows: Annotated[int, Column("states")]
    top_k: Annotated[int, Column("neighbours")]
    seconds: Annotated[float, Column("time", duration)]
    # Of the process, Python and libraries included; 0 where unknown.
    peak_mb: Annotated[float, Column("peak memory", "{:.0f} MB")]
    # The matrix of all pairs in float32.
    dense_mb: Annotated[float, Column("all pairs would take", "{:.0f} MB")]
    # Share of the true neighbours that were found, on a sample; 1 where search is exact.
    recall: Annotated[float, Column("recall", "{:.3f}")]


@click.command("credit")
@options.count("--groups", "Tasks", 16)
@options.count("--episodes", "Episodes a task", 8)
@options.count("--steps", "Steps an episode", 50)
@options.count("--repeats", "Runs of each", 5)
@options.text(
    "--sizes",
    'Distinct states compared across the batch, "" for none',
    "1000,10000,100000",
    metavar="N,...",
    type=Sizes(),
)
@options.count("--top-k", "Their neighbours", 64, metavar="K")
@options.as_json()
@options.debug
def command(repeats: int, sizes: tuple[int, ...], top_k: int, as_json: bool, **shape: int) -> None:
    """Measure credit assignment beside a plain dense version, and its growth with the states.

    The first table has medians of runs made in turn, on observations of 40 words of which half are
    distinct. The second compares every state with the whole batch, each size in its own process.
    """
    with progress("proxmo bench credit", keep=False) as listener:
        batch = synthetic_batch(np.random.default_rng(0), **shape)
        listener.phase("methods", text=f"{len(batch['step'])} steps")
        timings = time_methods(batch, repeats=repeats)
        scales = []
        for size in sizes:
            listener.phase("growth", text=f"{size} states")
            scales.append(measure_scale(size, top_k=top_k))
    if as_json:
        show_json({"methods": timings, "growth": scales})
        return
    show_measurements(timings)
    show_measurements(scales)


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
        pairs = [(timeit(ours, number=1), timeit(theirs, number=1)) for _ in range(repeats)]
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

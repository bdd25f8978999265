"""Soft aggregation: the baseline of a step from the steps that started from similar states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.proximity import BLOCK, Found, ProximityIndex
from proxmo.credit.statistics import check_choice
from proxmo.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXCLUDE = ("none", "self", "episode")


@dataclass(frozen=True, slots=True)
class Baselines:
    """What each of S steps is compared with.

    Attributes:
        value: (S,) weighted mean of the candidates' values; without candidates the own value.
        neighbours: (S,) effective number of candidate steps, 1 / sum of squared weights.
        cut: (S,) most weight that candidates beyond the top k can have, exact search assumed. The
            baseline is off by at most this share of the range of values.
    """

    value: Floats
    neighbours: Floats
    cut: Floats


@dataclass(frozen=True, slots=True)
class Units:
    """Steps with the same baseline, computed once: the same node, the same steps left out.

    Attributes:
        node: (N,) node of the unit, rising.
        row: (N,) a step of the unit.
        of_row: (S,) unit of each step.
    """

    node: Ints
    row: Ints
    of_row: Ints


def soft_baselines(
    index: ProximityIndex,
    value: Floats,
    episode: Ints,
    *,
    tau: float = 0.1,
    exclude: str = "none",
) -> Baselines:
    """B_t = sum_j w_tj x_j, w_t = softmax over the candidates j of (e_t . e_j / tau).

    Memory is O(BLOCK + S): pairs of states are visited block by block and never kept.

    Args:
        index: the states of the S steps.
        value: (S,) values x; returns, in ProxMO.
        episode: (S,) episode of each step.
        tau: temperature > 0; towards 0 only the nearest states count, infinity gives their mean.
        exclude: candidates left out: "none", "self" (the step), "episode" (all of its episode).

    Raises:
        ConfigError: tau or exclude out of range.
    """
    check_aggregation(tau, exclude)
    candidates = _Candidates(index, value, episode, exclude)
    units = candidates.units
    result = np.zeros((3, len(units.node)))
    result[0] = np.nan
    for found in index.search(spare=int(exclude != "none")):
        first, last = np.searchsorted(units.node, [found.query[0], found.query[-1] + 1])
        rows = max(1, BLOCK // found.ids.shape[1])
        for start in range(first, last, rows):
            part = slice(start, min(start + rows, last))
            _aggregate(candidates, found, part, tau, result[:, part])
    baseline, neighbours, cut = result[:, units.of_row]
    # A unit without candidates has steps of several values: each is compared with its own.
    return Baselines(np.where(np.isnan(baseline), value, baseline), neighbours, cut)


def check_aggregation(tau: float, exclude: str) -> None:
    """Raise ConfigError for a temperature or a choice of candidates that is none."""
    if not tau > 0:
        raise ConfigError(f"tau is {tau}; expected a number above 0")
    check_choice("exclude", exclude, EXCLUDE)


class _Candidates:
    """How many steps each node stands for, and their mean value, seen from a unit."""

    def __init__(self, index: ProximityIndex, value: Floats, episode: Ints, exclude: str) -> None:
        nodes = index.nodes
        self.value, self.episode, self.exclude = value, episode, exclude
        self.count = np.bincount(nodes.of_row).astype(np.float64)
        self.total = np.bincount(nodes.of_row, weights=value)
        self.pool_count = np.bincount(nodes.pool, weights=self.count)[nodes.pool]
        pair = nodes.of_row * (int(episode.max(initial=0)) + 1) + episode
        key = {"none": nodes.of_row, "self": np.arange(len(value)), "episode": pair}[exclude]
        # Sorting by node first: units of a block of nodes are then a slice.
        order = np.lexsort((key, nodes.of_row))
        new = np.diff(key[order], prepend=-1) != 0
        of_row = np.empty(len(order), np.int64)
        of_row[order] = np.cumsum(new) - 1
        self.units = Units(nodes.of_row[order[new]], order[new], of_row)
        self.key = key[order[new]]
        self.key_count = np.bincount(of_row).astype(np.float64)
        self.key_total = np.bincount(of_row, weights=value)

    def seen_from(self, part: slice, ids: Ints) -> tuple[Floats, Floats]:
        """(B, k) number and mean value of the candidate steps at nodes `ids`, for some units."""
        count, total = self.count[ids], self.total[ids]
        if self.exclude == "self":
            own = ids == self.units.node[part, None]
            count = count - own
            total = total - own * self.value[self.units.row[part], None]
        if self.exclude == "episode":
            episodes = int(self.episode.max(initial=0)) + 1
            wanted = ids * episodes + self.episode[self.units.row[part], None]
            place = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
            hit = self.key[place] == wanted
            count = count - hit * self.key_count[place]
            total = total - hit * self.key_total[place]
        count = np.where(ids >= 0, count, 0.0)
        return count, np.where(count > 0, total, 0.0) / np.maximum(count, 1.0)


def _aggregate(
    candidates: _Candidates, found: Found, part: slice, tau: float, result: Floats
) -> None:
    """Write value, effective neighbours and cut of a slice of units into result (3, B)."""
    query = candidates.units.node[part] - found.query[0]
    ids, similarity = found.ids[query], found.similarity[query]
    count, mean = candidates.seen_from(part, ids)
    weight, total, top = softmax_weights(similarity, count, tau)
    some = total > 0
    result[0, some] = (weight * mean).sum(1)[some]
    spread = (weight**2 / np.maximum(count, 1.0)).sum(1)
    result[1, some] = 1.0 / spread[some]
    # Whatever was not found is at most as similar as the last neighbour found.
    reached = np.where(ids >= 0, candidates.count[ids], 0.0).sum(1)
    beyond = np.maximum(candidates.pool_count[candidates.units.node[part]] - reached, 0.0)
    last = np.where(ids >= 0, similarity, np.inf).min(1)
    with np.errstate(over="ignore"):
        rest = beyond * np.exp(np.minimum(last - top, 0.0) / tau)
    # Where every neighbour found is left out, the cut took all the candidates there may be.
    result[2] = np.where(some, rest / np.where(some, rest + total, 1.0), beyond > 0)


def softmax_weights(similarity: Floats, count: Floats, tau: float) -> tuple[Floats, Floats, Floats]:
    """Weights proportional to count * exp(similarity / tau).

    Returns:
        (B, k) weights, all zero in a row without candidates; (B,) their sum before scaling, where
        one candidate of the highest similarity counts 1; (B,) that similarity.
    """
    top = np.where(count > 0, similarity, -np.inf).max(1)
    top = np.where(np.isfinite(top), top, 1.0)
    with np.errstate(over="ignore"):  # a tiny tau: exp(-inf) = 0 is right
        weight = count * np.exp(np.minimum(similarity - top[:, None], 0.0) / tau)
    total = weight.sum(1)
    return weight / np.where(total > 0, total, 1.0)[:, None], total, top

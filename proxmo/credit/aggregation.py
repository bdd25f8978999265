"""Soft aggregation: the baseline of a step from the steps that started from similar states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.embeddings import Vectors
from proxmo.credit.nearest import NearestStates
from proxmo.credit.options import Exclude
from proxmo.credit.proximity import ProximityIndex

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Pairs of states in memory at a time, and states of which all pairs are: a square that stays in a
# processor's cache.
BLOCK, TILE = 1 << 21, 1024
# Sums of weights below this may have lost digits; they are formed anew, relative to the largest.
_TINY = 1e-30
# Stands for an infinite temperature, which would turn the -inf of excluded states into nan.
_HOTTEST = 1e300


@dataclass(frozen=True, slots=True)
class Baselines:
    """What each of S steps is compared with.

    Attributes:
        value: (S,) weighted mean of the candidates' values; without candidates the own value.
        neighbours: (S,) effective number of candidate steps, 1 / sum of squared weights.
        cut: (S,) most weight that candidates beyond the top k can have, exact search assumed. The
            baseline is off by at most this share of the range of values.
        recalls: of each pool that was searched approximately.
    """

    value: Floats
    neighbours: Floats
    cut: Floats
    recalls: list[float]


# Sums over the candidate steps at other states than the own one, w = exp((similarity - top) / tau),
# as the rows of a (6, B) array: top, the similarity that counts 1; sum of w; sum of w times the
# step's value; sum of w^2; least similarity of a candidate found; number of candidates not found.
_Sums = Floats


@dataclass(frozen=True, slots=True)
class _Pool:
    """M states that are compared, and the temperature."""

    vectors: Vectors
    itself: Floats
    nearest: NearestStates | None
    tau: float


def soft_baselines(
    index: ProximityIndex,
    value: Floats,
    episode: Ints,
    *,
    tau: float = 0.1,
    exclude: Exclude = "none",
) -> Baselines:
    """B_t = sum_j w_tj x_j, w_t = softmax over the candidates j of (e_t . e_j / tau).

    Memory is O(BLOCK + S): pairs of states are visited block by block and never kept.

    Args:
        index: the states of the S steps.
        value: (S,) values x; returns, in ProxMO.
        episode: (S,) episode of each step.
        tau: temperature > 0; towards 0 only the nearest states count, infinity gives their mean.
        exclude: candidates left out: "none", "self" (the step), "episode" (all of its episode).
    """
    tau = min(tau, _HOTTEST)
    result = Baselines(value.copy(), np.zeros(len(value)), np.zeros(len(value)), [])
    by_node = np.argsort(index.nodes.of_row, kind="stable")
    sorted_nodes = index.nodes.of_row[by_node]
    for first, last in index.nodes.pools():
        rows = by_node[slice(*np.searchsorted(sorted_nodes, [first, last]))]
        # A lone state need not be embedded.
        vectors = index.vectors(first, last) if last - first > 1 else np.ones((1, 1))
        nearest = index.nearest(vectors, spare=int(exclude != "none"))
        if nearest is not None and nearest.recall is not None:
            result.recalls.append(nearest.recall)
        pool = _Pool(vectors, index.to_itself(vectors), nearest, tau)
        node = index.nodes.of_row[rows] - first
        with np.errstate(over="ignore"):  # a tiny tau: exp(-inf) = 0 is right
            if exclude == "episode":
                _without_episodes(pool, rows, node, value, episode, result)
            else:
                _with_all(pool, rows, node, value, exclude, result)
    return result


def _with_all(
    pool: _Pool, rows: Ints, node: Ints, value: Floats, exclude: str, result: Baselines
) -> None:
    count, total = _per_node(pool, node, value[rows])
    if pool.nearest is None:
        sums = _all_pairs(pool, count, total)
        lost = np.flatnonzero(sums[1] < _TINY)
        # Weights relative to the step itself are only too small where that is left out.
        if exclude == "self" and len(lost) and len(count) > 1:
            sums[:, lost] = _relative_to_top(pool, lost, count, total)
    else:
        sums = _relative_to_top(pool, np.arange(len(count)), count, total)
    out = float(exclude == "self")
    own = count[node] - out, total[node] - out * value[rows]
    _write(pool, rows, node, sums[:, node], own, result)


def _without_episodes(
    pool: _Pool, rows: Ints, node: Ints, value: Floats, episode: Ints, result: Baselines
) -> None:
    count, total = _per_node(pool, node, value[rows])
    order = np.argsort(episode[rows], kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(episode[rows][order])) + 1):
        out_count, out_total = _per_node(pool, node[part], value[rows[part]])
        others, values = count - out_count, total - out_total
        queries, place = np.unique(node[part], return_inverse=True)
        sums = _relative_to_top(pool, queries, others, values)
        own = others[node[part]], values[node[part]]
        _write(pool, rows[part], node[part], sums[:, place], own, result)


def _per_node(pool: _Pool, node: Ints, value: Floats) -> tuple[Floats, Floats]:
    """(M,) number of steps at each state, and the sum of their values."""
    size = len(pool.vectors)
    count = np.bincount(node, minlength=size).astype(np.float64)
    return count, np.bincount(node, value, size).astype(np.float64)


def _all_pairs(pool: _Pool, count: Floats, total: Floats) -> _Sums:
    """The sums of all M states, each pair of states visited once; the similarity 1 counts 1."""
    vectors, size = pool.vectors, len(pool.vectors)
    columns = np.stack([count, total], 1).astype(vectors.dtype)
    sums, square = np.zeros((size, 2)), np.zeros(size)
    parts = [slice(start, start + TILE) for start in range(0, size, TILE)]
    for number, left in enumerate(parts):
        for right in parts[number:]:
            weight = vectors[left] @ vectors[right].T
            weight -= 1
            np.minimum(weight, 0, out=weight)
            weight /= pool.tau
            np.exp(weight, out=weight)
            if left == right:
                np.fill_diagonal(weight, 0)  # the state itself
            sums[left] += weight @ columns[right]
            if left != right:
                sums[right] += weight.T @ columns[left]
            weight *= weight
            square[left] += weight @ columns[right, 0]
            if left != right:
                square[right] += weight.T @ columns[left, 0]
    none = np.zeros(size)
    return np.stack([np.ones(size), *sums.T, square, none, none])


def _relative_to_top(pool: _Pool, queries: Ints, count: Floats, total: Floats) -> _Sums:
    """The sums of some states, where the similarity of the nearest candidate counts 1."""
    size = len(pool.vectors)
    blocks = []
    for part in np.array_split(queries, -(-len(queries) * size // BLOCK)):
        if pool.nearest is None:
            counts, totals = count, total
            similarity = pool.vectors[part] @ pool.vectors.T
            similarity[:, count <= 0] = -np.inf
            similarity[np.arange(len(part)), part] = -np.inf
            last = beyond = np.zeros(len(part))
        else:
            ids, similarity = pool.nearest.search(part)
            counts = np.where((ids >= 0) & (ids != part[:, None]), count[ids], 0.0)
            totals = total[ids]
            last = np.where(counts > 0, similarity, np.inf).min(1)
            beyond = count.sum() - count[part] - counts.sum(1)
            similarity = np.where(counts > 0, similarity, -np.inf)
        top = similarity.max(1)
        top = np.where(np.isfinite(top), top, 1.0)
        weight = np.exp((similarity - top[:, None].astype(similarity.dtype)) / pool.tau)
        sums = _dot(weight, counts), _dot(weight, totals), _dot(weight * weight, counts)
        blocks.append(np.stack([top, *sums, last, beyond]))
    return np.concatenate(blocks, axis=1)


def _dot(weight: NDArray[np.floating], column: Floats) -> NDArray[np.floating]:
    """(B,) sums over (B, k) of the weights times what (k,) or (B, k) numbers say."""
    return weight @ column.astype(weight.dtype) if column.ndim == 1 else (weight * column).sum(1)


def _write(
    pool: _Pool,
    rows: Ints,
    node: Ints,
    sums: _Sums,
    own: tuple[Floats, Floats],
    result: Baselines,
) -> None:
    """Write the baselines of B rows: what their own state adds to the sums over the others.

    Args:
        pool: the states.
        rows: (B,) rows.
        node: (B,) their states.
        sums: (6, B) over other states.
        own: (B,) number of candidate steps at the row's own state, and the sum of their values.
        result: what to write into.
    """
    count, total = own
    others_top, others, others_value, others_square, last, beyond = sums
    itself = pool.itself[node]
    top = np.maximum(
        np.where(others > 0, others_top, -np.inf), np.where(count > 0, itself, -np.inf)
    )
    top = np.where(np.isfinite(top), top, 1.0)
    scale = np.where(others > 0, np.exp(np.minimum(others_top - top, 0.0) / pool.tau), 0.0)
    share = np.where(count > 0, np.exp(np.minimum(itself - top, 0.0) / pool.tau), 0.0)
    weight = scale * others + share * count
    value = scale * others_value + share * total
    square = scale**2 * others_square + share**2 * count
    some = weight > 0
    result.value[rows[some]] = value[some] / weight[some]
    result.neighbours[rows[some]] = weight[some] ** 2 / square[some]
    # Whatever was not found is at most as similar as the last neighbour found.
    rest = beyond * np.exp(np.minimum(last - top, 0.0) / pool.tau)
    # Where every neighbour found is left out, the cut took all the candidates there may be.
    result.cut[rows] = np.where(some, rest / np.where(some, rest + weight, 1.0), beyond > 0)


def softmax_weights(similarity: Floats, count: Floats, tau: float) -> Floats:
    """(k,) weights proportional to count * exp(similarity / tau); all zero without candidates."""
    top = similarity[count > 0].max(initial=-np.inf)
    with np.errstate(over="ignore"):
        weight = count * np.exp(np.minimum(similarity - top, 0.0) / min(tau, _HOTTEST))
    return weight / max(weight.sum(), np.finfo(np.float64).tiny)

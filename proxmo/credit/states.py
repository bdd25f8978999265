"""Distinct states: each is embedded and compared once, however often an agent was in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.numbering import number
from proxmo.errors import DataError

Ints = NDArray[np.int64]
States = Sequence[str] | NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class Nodes:
    """M distinct (pool, state) pairs, sorted by pool, then by state.

    A pool is the set of states a step is compared with: its group, or the whole batch.

    Attributes:
        pool: (M,) pool of the node.
        row: (M,) first row with that state.
        of_row: (S,) node of each row.
    """

    pool: Ints
    row: Ints
    of_row: Ints

    def pools(self) -> Iterator[tuple[int, int]]:
        """First and past-last node of every pool."""
        edges = np.flatnonzero(np.diff(self.pool, prepend=-1, append=-1)).tolist()
        return zip(edges[:-1], edges[1:], strict=True)

    def pool_of(self, node: int) -> tuple[int, int]:
        """First and past-last node of the pool of a node."""
        first, last = np.searchsorted(self.pool, [self.pool[node], self.pool[node] + 1])
        return int(first), int(last)


def collapse(code: Ints | None, pool: Ints) -> Nodes:
    """Find the distinct states of each pool.

    Args:
        code: (S,) `state_codes` or `history_codes`.
        pool: (S,) pool of each row, from 0.

    Raises:
        DataError: no states.
    """
    if code is None:
        raise DataError("state is None; this credit method needs the observation of every step")
    key = pool * (code.max(initial=0) + 1) + code
    _, row, of_row = np.unique(key, return_index=True, return_inverse=True)
    return Nodes(pool=pool[row], row=row, of_row=of_row)


def state_codes(state: States) -> Ints | None:
    """(S,) number of each state among the sorted distinct ones; None without states.

    Sorted by what they are and not by where they first occur, so that nothing that goes through
    states one by one depends on the order of the rows.

    Raises:
        DataError: embeddings that are not finite or not two-dimensional.
    """
    if state is None:
        return None
    if isinstance(state, np.ndarray):
        return _codes_of_vectors(state)
    codes, texts = number(state)
    rank = np.empty(len(texts), np.int64)
    rank[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return rank[codes]


def history_codes(code: Ints, episode: Ints) -> Ints:
    """(S,) number of each state with all that came before it in its episode.

    Args:
        code: (S,) `state_codes`.
        episode: (S,) rows of an episode stand together, in the order of its steps.
    """
    depth = steps_before(episode)
    order = np.argsort(depth, kind="stable")
    result, states, numbered = np.empty_like(code), code.max(initial=0) + 1, 0
    for rows in np.split(order, np.cumsum(np.bincount(depth))[:-1]):
        before = result[rows - 1] if numbered else 0
        distinct, place = np.unique(before * states + code[rows], return_inverse=True)
        result[rows] = numbered + place
        numbered += len(distinct)
    return result


def steps_before(episode: Ints) -> Ints:
    """(S,) number of rows before each one in its episode, whose rows stand together."""
    first = np.flatnonzero(np.diff(episode, prepend=-1))
    return np.arange(len(episode)) - np.repeat(first, np.diff(first, append=len(episode)))


def _codes_of_vectors(state: NDArray[Any]) -> Ints:
    if state.ndim != 2 or state.dtype.kind not in "fiu":
        raise DataError(
            f"state is an array of shape {state.shape} and type {state.dtype}; "
            "expected strings or an (S, D) array of numbers"
        )
    if not np.isfinite(state).all():
        row = int(np.flatnonzero(~np.isfinite(state).all(1))[0])
        raise DataError(f"the embedding of row {row} is not finite")
    if not state.shape[1]:
        return np.zeros(len(state), np.int64)
    # Adding 0 turns -0 into 0, so that equal vectors have equal bytes.
    whole = np.ascontiguousarray(state + 0).view(f"V{state.dtype.itemsize * state.shape[1]}")
    return np.unique(whole.ravel(), return_inverse=True)[1]

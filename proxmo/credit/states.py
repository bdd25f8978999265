"""Distinct states: what is embedded and searched once, however often an agent stood there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.numbering import number
from proxmo.credit.rows import States
from proxmo.errors import ConfigError, DataError

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Nodes:
    """M distinct (pool, state) pairs, sorted by pool, in order of first appearance inside it.

    A pool is the set of states a step is compared with: its group, or the whole batch.

    Attributes:
        pool: (M,) pool of the node.
        row: (M,) first row with that state.
        of_row: (S,) node of each row.
        state: S observations or an (S, D) array of embeddings.
    """

    pool: Ints
    row: Ints
    of_row: Ints
    state: Sequence[str] | NDArray[Any]

    def pools(self) -> Iterator[tuple[int, int]]:
        """First and past-last node of every pool."""
        edges = np.flatnonzero(np.diff(self.pool, prepend=-1, append=-1)).tolist()
        return zip(edges[:-1], edges[1:], strict=True)

    def texts(self, first: int, last: int) -> list[str]:
        """The observations of a range of nodes."""
        if isinstance(self.state, np.ndarray):
            raise ConfigError(
                "state is an array of embeddings; this option needs observations (strings)"
            )
        return [self.state[row] for row in self.row[first:last].tolist()]


def collapse(state: States, pool: Ints) -> Nodes:
    """Find the distinct states of each pool.

    Raises:
        DataError: no states, or embeddings that are not finite or not two-dimensional.
    """
    if state is None:
        raise DataError("state is None; this credit method needs the observation of every step")
    if isinstance(state, np.ndarray):
        code = _codes_of_vectors(state)
    else:
        code, _ = number(state)
    if not len(code):
        empty = np.zeros(0, np.int64)
        return Nodes(empty, empty, empty, state)
    _, row, inverse = np.unique(
        pool * (code.max() + 1) + code, return_index=True, return_inverse=True
    )
    order = np.lexsort((row, pool[row]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    row = row[order]
    return Nodes(pool=pool[row], row=row, of_row=rank[inverse], state=state)


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

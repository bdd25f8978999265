"""The proximity index: distinct states as unit vectors, and how similar those of a pool are.

Identical states are one entry whose multiplicity counts in the softmax: the result is the same and
agents repeat themselves enough to halve the work. By default every pair of a pool is compared, by
matrix products; `top_k` keeps the nearest of each state only, found by FAISS (see `nearest`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.checks import check_lengths
from proxmo.credit.embeddings import (
    Embedding,
    Vectors,
    character_hash,
    check_comparable,
    check_embedding,
    find_embedding,
    normalise,
    tfidf,
)
from proxmo.credit.nearest import NearestStates
from proxmo.credit.numbering import number
from proxmo.credit.rows import to_ids, to_numpy, to_states
from proxmo.credit.states import Nodes, collapse, history_codes, state_codes, steps_before
from proxmo.errors import ConfigError, DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# In a search for the top k, TF-IDF vectors of pools larger than this share so many columns.
LARGE, LARGE_COLUMNS = 4096, 512


class ProximityIndex:
    """The states of S rows, by pool.

    Attributes:
        nodes: the distinct ones.
        top_k: how many neighbours of a state are kept; None for all.
    """

    def __init__(
        self,
        state: Any,
        pool: Any,
        *,
        embedding: str | Embedding = "tfidf",
        top_k: int | None = None,
        history: float = 0.0,
        episode: Any = None,
        empty_equals_itself: bool = True,
    ) -> None:
        """Find the distinct states; nothing is embedded before it is compared.

        Args:
            state: S observations, or an (S, D) array of embeddings.
            pool: (S,) which states are compared: those of equal pool. Any hashable ids.
            embedding: of observations: a name, or a function of the distinct ones of a pool.
            top_k: most neighbours per state; None takes all of the pool.
            history: decay d in [0, 1) of what was seen before: the vector of a step is then
                e_t + d e_(t-1) + d^2 e_(t-2) + ... of its episode; 0 takes e_t alone.
            episode: (S,) episode of each row, needed for a history; rows of an episode stand
                together, in the order of its steps.
            empty_equals_itself: whether a state whose vector is zero has similarity 1 to itself.

        Raises:
            ConfigError: top_k below 1, unknown embedding.
            DataError: states that cannot be embedded, or not one pool for each.
        """
        fits = isinstance(top_k, (int, np.integer)) and not isinstance(top_k, bool) and top_k >= 1
        if top_k is not None and not fits:
            raise ConfigError(f"top_k is {top_k!r}; expected at least 1, or None for all states")
        check_embedding(embedding)
        self._state, pools = to_states(state), to_ids("pool", pool)
        check_lengths({"pool": pools}, state=self._state)
        code = state_codes(self._state)
        self._depth: Ints | None = None
        if history and code is not None:
            episodes = to_ids("episode", episode)
            code, self._depth = history_codes(code, episodes), steps_before(episodes)
        self.nodes: Nodes = collapse(code, pools)
        self.top_k = top_k
        self._history, self._empty_equals_itself = history, empty_equals_itself
        is_text = not isinstance(self._state, np.ndarray)
        self._embedding = find_embedding(embedding) if is_text else None

    def vectors(self, first: int, last: int) -> Vectors:
        """(last - first, D) unit vectors of a range of nodes that is one pool.

        Raises:
            DataError: an embedding that gave no vectors.
            ConfigError: more vectors than can be compared.
        """
        rows = self.nodes.row[first:last]
        vectors = self._embed(rows)
        if self.top_k is None:
            check_comparable(*vectors.shape)
        if self._embedding not in (tfidf, character_hash):  # theirs have length 1
            vectors = normalise(vectors)
        if self._depth is not None:
            depth = self._depth[rows]
            for at in range(1, int(depth.max()) + 1):
                deeper = np.flatnonzero(depth == at)
                before = self.nodes.of_row[rows[deeper] - 1] - first
                vectors[deeper] += self._history * vectors[before]
            vectors = normalise(vectors)
        return vectors

    def to_itself(self, vectors: Vectors) -> Floats:
        """(M,) similarity of each state to itself: 1, whatever rounding says."""
        if self._empty_equals_itself:
            return np.ones(len(vectors))
        return np.where(vectors.any(1), 1.0, 0.0)

    def nearest(self, vectors: Vectors, spare: int = 0) -> NearestStates | None:
        """A search for the top k of each state of a pool, or None where k takes all of them.

        Args:
            vectors: of the pool.
            spare: neighbours beyond top_k, for a caller that will leave some out.
        """
        if self.top_k is None or self.top_k + spare >= len(vectors):
            return None
        return NearestStates(vectors, int(self.top_k) + spare)

    def similar(self, node: int, spare: int = 0) -> tuple[Ints, Floats]:
        """The nodes that a node is compared with, and how similar each is; itself is the first."""
        first, last = self.nodes.pool_of(node)
        vectors = self.vectors(first, last)
        own = node - first
        if self.top_k is None or self.top_k + spare >= len(vectors):
            ids = np.arange(len(vectors))
            similarity = np.clip((vectors @ vectors[own]).astype(np.float64), -1.0, 1.0)
        else:
            search = NearestStates(vectors, int(self.top_k) + spare, exact=True)
            (ids,), (similarity,) = search.search(np.array([own]))
        others = (ids != own) & (ids >= 0)
        itself = self.to_itself(vectors)[own]
        return np.append(node, ids[others] + first), np.append(itself, similarity[others])

    def _embed(self, rows: Ints) -> NDArray[Any]:
        """Vectors of some rows of one pool, not normalised."""
        if isinstance(self._state, np.ndarray):
            return self._state[rows]
        assert self._embedding is not None and self._state is not None
        codes, texts = number([self._state[row] for row in rows.tolist()])
        embed = self._embedding
        if embed is tfidf and self.top_k is not None and len(texts) > LARGE:
            embed = partial(tfidf, columns=LARGE_COLUMNS)
        vectors = to_numpy(embed(texts))
        fits = vectors.ndim == 2 and len(vectors) == len(texts) and vectors.dtype.kind in "fiu"
        if not fits or not np.isfinite(vectors).all():
            raise DataError(
                f"the embedding gave an array of shape {vectors.shape} and type {vectors.dtype} "
                f"for {len(texts)} observations; expected one row of finite numbers for each"
            )
        return vectors if len(texts) == len(rows) else vectors[codes]

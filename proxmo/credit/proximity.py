"""The proximity index: for every state the most similar states it is compared with, by FAISS.

One index per pool (a group, or the whole batch). Identical states are one entry whose multiplicity
counts in the softmax: the result is the same and agents repeat themselves enough to halve the work.
A pool up to LARGE states is searched completely, which is exact; a larger one for the top k, and
from APPROXIMATE_FROM states on approximately, with the recall measured against exact search.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.checks import check_lengths
from proxmo.credit.embeddings import (
    LARGE,
    Embedding,
    Vectors,
    check_embedding,
    find_embedding,
    normalise,
)
from proxmo.credit.rows import to_ids, to_numpy, to_states
from proxmo.credit.states import Nodes, collapse
from proxmo.errors import ConfigError, DataError, MissingDependencyError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Neighbours per state of a pool above LARGE states when top_k is not given.
DEFAULT_TOP_K = 256
# (state, neighbour) pairs in memory at a time; about 40 MB with the copies a softmax takes.
BLOCK = 1 << 19

# Up to this many states a ranking search compares all pairs; above it is approximate: an inverted
# file of 4-bit codes picks candidates, whose exact similarities rank them.
APPROXIMATE_FROM = 20_000
# Cells per square root of the states, share of the cells a search visits, states a cell is learnt
# from, dimensions per code, candidates per neighbour. On 100,000 states of 512 dimensions it takes
# a sixth of the time of exact search and finds 3 of 4 among the 64 nearest, the heavy ones.
_CELLS_PER_ROOT, _VISITED, _LEARN_PER_CELL, _CODE_DIMENSIONS, _CANDIDATES = 2.0, 1 / 4, 40, 4, 4
# The most states a search visits: above 100,000 time then grows with the states, not their square.
_MOST_VISITED = 25_000
# Approximate searches that are repeated exactly to measure the recall.
_RECALL_QUERIES = 64
_BELOW_ANY_COSINE = -2.0
# Multiplications of a whole search of a pool by itself that one thread does in a few milliseconds.
_ONE_THREAD_WORK = 2**29
# The most neighbours the GPU index of FAISS returns.
_GPU_MAX_K = 2048


@dataclass(frozen=True, slots=True)
class Found:
    """Neighbours of Q nodes: `ids` (Q, k) nodes (-1 where there is none), `similarity` (Q, k)."""

    query: Ints
    ids: Ints
    similarity: Floats


class ProximityIndex:
    """Distinct states, their vectors, and the search for each one's neighbours."""

    def __init__(
        self,
        state: Any,
        pool: Any,
        *,
        embedding: str | Embedding = "tfidf",
        top_k: int | None = None,
    ) -> None:
        """Collapse identical states; nothing is embedded before it is searched.

        Args:
            state: S observations, or an (S, D) array of embeddings.
            pool: (S,) which states are compared: those of equal pool. Any hashable ids.
            embedding: of observations: a name, or a function of the distinct ones of a pool.
            top_k: most neighbours per state; None takes all of a pool of up to LARGE states.

        Raises:
            ConfigError: top_k below 1, unknown embedding.
            DataError: states that cannot be embedded, or not one pool for each.
        """
        check_top_k(top_k)
        check_embedding(embedding)
        states, pools = to_states(state), to_ids("pool", pool)
        check_lengths({"pool": pools}, states)
        self.nodes: Nodes = collapse(states, pools)
        self.top_k = top_k
        # Recall of each pool that was searched approximately, in the latest search.
        self.recalls: list[float] = []
        is_text = not isinstance(self.nodes.state, np.ndarray)
        self._embedding = find_embedding(embedding) if is_text else None

    def search(self, spare: int = 0) -> Iterator[Found]:
        """Neighbours of all nodes, block by block, the node itself among them.

        Args:
            spare: neighbours beyond top_k, for a caller that will leave some out.
        """
        self.recalls.clear()
        for first, last in self.nodes.pools():
            if last - first == 1:
                alone = np.array([first])
                yield Found(alone, alone[:, None], np.ones((1, 1)))
                continue
            vectors = self.vectors(first, last)
            k = self._neighbours(last - first, spare)
            index = self._build(vectors, k)
            rows = max(1, BLOCK // k)
            for start in range(0, len(vectors), rows):
                with _threads(vectors):
                    found = _found(index, vectors[start : start + rows], k, first, start)
                yield found

    def neighbours(self, node: int, spare: int = 0) -> Found:
        """Neighbours of one node, by exact search."""
        pool = self.nodes.pool[node]
        first, last = (int(edge) for edge in np.searchsorted(self.nodes.pool, [pool, pool + 1]))
        vectors = self.vectors(first, last)
        k = self._neighbours(last - first, spare)
        start = node - first
        return _found(_flat(vectors), vectors[start : start + 1], k, first, start)

    def vectors(self, first: int, last: int) -> Vectors:
        """(last - first, D) unit vectors of a range of nodes that is one pool."""
        state = self.nodes.state
        if isinstance(state, np.ndarray):
            return _whole_codes(normalise(state[self.nodes.row[first:last]]))
        assert self._embedding is not None
        vectors = to_numpy(self._embedding(self.nodes.texts(first, last)))
        fits = vectors.ndim == 2 and len(vectors) == last - first and vectors.dtype.kind in "fiu"
        if not fits or not np.isfinite(vectors).all():
            raise DataError(
                f"the embedding gave an array of shape {vectors.shape} and type {vectors.dtype} "
                f"for {last - first} observations; expected one row of finite numbers for each"
            )
        return _whole_codes(normalise(vectors))

    def _neighbours(self, size: int, spare: int) -> int:
        wanted = self.top_k or (size if size <= LARGE else DEFAULT_TOP_K)
        return int(min(wanted + spare, size))

    def _build(self, vectors: Vectors, k: int) -> Any:
        if k == len(vectors):
            return _flat(vectors)
        if len(vectors) < APPROXIMATE_FROM or _has_gpu():
            return _on_gpu(_flat(vectors), k)
        index = _approximate(vectors)
        self.recalls.append(_recall(index, vectors, k))
        return index


def check_top_k(top_k: int | None) -> None:
    """Raise ConfigError for what is no number of neighbours."""
    fits = isinstance(top_k, (int, np.integer)) and not isinstance(top_k, bool) and top_k >= 1
    if top_k is not None and not fits:
        raise ConfigError(f"top_k is {top_k!r}; expected at least 1, or None for all candidates")


def _found(index: Any, queries: Vectors, k: int, first: int, start: int) -> Found:
    if k == index.ntotal:
        # Everything is wanted: a range search to below the smallest cosine skips the ranking that
        # takes most of a top-k search of so many.
        _, similarity, ids = index.range_search(queries, _BELOW_ANY_COSINE)
        similarity, ids = similarity.reshape(-1, k), ids.reshape(-1, k)
    else:
        similarity, ids = index.search(queries, k)
    query = np.arange(first + start, first + start + len(queries))
    ids = np.where(ids >= 0, ids + first, -1)
    similarity = np.clip(similarity.astype(np.float64), -1.0, 1.0)
    # A state is as similar to itself as can be, whatever float32 says, also one without a token,
    # which a search for the top k may miss.
    missed = ~(ids == query[:, None]).any(1)
    ids[missed, -1] = query[missed]
    similarity[ids == query[:, None]] = 1.0
    return Found(query, ids, similarity)


def _whole_codes(vectors: Vectors) -> Vectors:
    """Pad a pool for approximate search with zero columns up to a whole number of codes."""
    missing = -vectors.shape[1] % _CODE_DIMENSIONS if len(vectors) >= APPROXIMATE_FROM else 0
    return np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors


def _flat(vectors: Vectors) -> Any:
    index = import_faiss().IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index


def _approximate(vectors: Vectors) -> Any:
    """An inverted file of product-quantised vectors that is refined by the vectors themselves."""
    faiss = import_faiss()
    size, width = vectors.shape
    cells = int(_CELLS_PER_ROOT * size**0.5)
    recipe = f"IVF{cells},PQ{width // _CODE_DIMENSIONS}x4fs,RFlat"
    index = faiss.index_factory(width, recipe, faiss.METRIC_INNER_PRODUCT)
    index.k_factor = _CANDIDATES
    visited = min(_VISITED, _MOST_VISITED / size)
    faiss.extract_index_ivf(index).nprobe = max(1, int(cells * visited))
    index.train(np.ascontiguousarray(vectors[:: max(1, size // (cells * _LEARN_PER_CELL))]))
    index.add(vectors)
    return index


def _recall(index: Any, vectors: Vectors, k: int) -> float:
    """Share of the true k nearest that the index finds, over a sample of the vectors."""
    faiss = import_faiss()
    sample = vectors[:: max(1, len(vectors) // _RECALL_QUERIES)][:_RECALL_QUERIES]
    _, exact = faiss.knn(sample, vectors, k, metric=faiss.METRIC_INNER_PRODUCT)
    _, found = index.search(sample, k)
    hits = sum(len(np.intersect1d(one, two)) for one, two in zip(exact, found, strict=True))
    return hits / exact.size


def _has_gpu() -> bool:
    faiss = import_faiss()
    return hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0


def _on_gpu(index: Any, k: int) -> Any:
    """The index on the GPU where FAISS has one, else as it is."""
    if k > _GPU_MAX_K or not _has_gpu():
        return index
    faiss = import_faiss()
    return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)


@contextmanager
def _threads(pool: Vectors) -> Iterator[None]:
    """One thread for a search of less than a few milliseconds, where waking others costs more."""
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    if len(pool) * pool.size < _ONE_THREAD_WORK:
        faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def import_faiss() -> Any:
    """The faiss module, or one line that says how to get it."""
    try:
        import faiss
    except ImportError as error:
        raise MissingDependencyError(
            "faiss is not installed; the proximity index needs it: pip install 'proxmo[cpu]'"
        ) from error
    return faiss

"""The proximity index: for every state the most similar states it is compared with, by FAISS.

One index per pool (a group, or the whole batch). Identical states are one entry whose multiplicity
counts in the softmax: the result is the same and agents repeat themselves enough to halve the work.
A pool up to LARGE states is searched completely, which is exact; a larger one for the top k, and
from IVF_FROM states on through an inverted file, whose recall is measured against exact search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.embeddings import LARGE, Embedding, Vectors, find_embedding, normalise
from proxmo.credit.states import Nodes, collapse
from proxmo.errors import ConfigError, DataError, MissingDependencyError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Neighbours per state of a pool above LARGE states when top_k is not given.
DEFAULT_TOP_K = 256
# (state, neighbour) pairs in memory at a time; about 50 MB with the copies a softmax takes.
BLOCK = 1 << 20

# The inverted file: its use pays from this many states on, cells per square root of the states,
# share of the cells that a search visits, states that its cells are learnt from, and rounds.
IVF_FROM = 20_000
_CELLS_PER_ROOT, _VISITED, _LEARN_PER_CELL, _LEARN_ROUNDS = 2.0, 1 / 16, 40, 6
# Searches of an inverted file that are repeated exactly to measure its recall.
_RECALL_QUERIES = 64
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
        pool: Ints,
        *,
        embedding: str | Embedding = "tfidf",
        top_k: int | None = None,
    ) -> None:
        """Collapse identical states; nothing is embedded before it is searched.

        Args:
            state: S observations, or an (S, D) array of embeddings.
            pool: (S,) which states are compared: those of equal pool.
            embedding: name of the embedding of observations.
            top_k: most neighbours per state; None takes all of a pool of up to LARGE states.

        Raises:
            ConfigError: top_k below 1, unknown embedding.
            DataError: states that cannot be embedded.
        """
        if top_k is not None and top_k < 1:
            raise ConfigError(f"top_k is {top_k}; expected at least 1, or None for all candidates")
        self.nodes: Nodes = collapse(state, pool)
        self.top_k = top_k
        # Recall of each pool that was searched through an inverted file.
        self.recalls: list[float] = []
        is_text = not isinstance(self.nodes.state, np.ndarray)
        self._embedding = find_embedding(embedding) if is_text else None

    def search(self, spare: int = 0) -> Iterator[Found]:
        """Neighbours of all nodes, block by block, best first, the node itself among them.

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
                yield _found(index, vectors[start : start + rows], k, first, start)

    def neighbours(self, node: int) -> Found:
        """Neighbours of one node."""
        edges = [edge for edge in self.nodes.pools() if edge[0] <= node < edge[1]]
        first, last = edges[0]
        vectors = self.vectors(first, last)
        k = self._neighbours(last - first, 0)
        start = node - first
        return _found(_flat(vectors), vectors[start : start + 1], k, first, start)

    def vectors(self, first: int, last: int) -> Vectors:
        """(last - first, D) unit vectors of a range of nodes that is one pool."""
        state = self.nodes.state
        if isinstance(state, np.ndarray):
            return normalise(state[self.nodes.row[first:last]])
        assert self._embedding is not None
        vectors = np.asarray(self._embedding(self.nodes.texts(first, last)))
        if vectors.ndim != 2 or len(vectors) != last - first or not np.isfinite(vectors).all():
            raise DataError(
                f"the embedding gave an array of shape {vectors.shape} for {last - first} "
                "observations; expected one row of finite numbers for each"
            )
        # TF-IDF comes normalised; doing it again costs nothing beside the search.
        return normalise(vectors)

    def _neighbours(self, size: int, spare: int) -> int:
        wanted = self.top_k or (size if size <= LARGE else DEFAULT_TOP_K)
        return min(wanted + spare, size)

    def _build(self, vectors: Vectors, k: int) -> Any:
        if len(vectors) < IVF_FROM:
            return _on_gpu(_flat(vectors), k)
        index = _on_gpu(_inverted_file(vectors), k)
        index.add(vectors)
        sample = vectors[:: max(1, len(vectors) // _RECALL_QUERIES)][:_RECALL_QUERIES]
        faiss = import_faiss()
        _, exact = faiss.knn(sample, vectors, k, metric=faiss.METRIC_INNER_PRODUCT)
        _, found = index.search(sample, k)
        hits = sum(len(np.intersect1d(one, two)) for one, two in zip(exact, found, strict=True))
        self.recalls.append(hits / exact.size)
        return index


def _found(index: Any, queries: Vectors, k: int, first: int, start: int) -> Found:
    similarity, ids = index.search(queries, k)
    query = np.arange(first + start, first + start + len(queries))
    ids = np.where(ids >= 0, ids + first, -1)
    similarity = np.clip(similarity.astype(np.float64), -1.0, 1.0)
    # A state is as similar to itself as can be, whatever float32 says, also one without a token.
    similarity[ids == query[:, None]] = 1.0
    return Found(query, ids, similarity)


def _flat(vectors: Vectors) -> Any:
    index = import_faiss().IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index


def _inverted_file(vectors: Vectors) -> Any:
    """A trained, empty inverted file over the vectors."""
    faiss = import_faiss()
    size, width = vectors.shape
    cells = int(_CELLS_PER_ROOT * size**0.5)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, cells, faiss.METRIC_INNER_PRODUCT)
    index.nprobe = max(1, int(cells * _VISITED))
    index.cp.niter = _LEARN_ROUNDS
    step = max(1, size // (cells * _LEARN_PER_CELL))
    index.train(np.ascontiguousarray(vectors[::step]))
    return index


def _on_gpu(index: Any, k: int) -> Any:
    """The index on the GPU where FAISS has one, else as it is."""
    faiss = import_faiss()
    if k > _GPU_MAX_K or not hasattr(faiss, "StandardGpuResources") or not faiss.get_num_gpus():
        return index
    return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)


def import_faiss() -> Any:
    """The faiss module, or one line that says how to get it."""
    try:
        import faiss
    except ImportError as error:
        raise MissingDependencyError(
            "faiss is not installed; the proximity index needs it: pip install 'proxmo[cpu]'"
        ) from error
    return faiss

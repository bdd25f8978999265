"""The k nearest states of a pool by FAISS: for `top_k`, where comparing all pairs is too much.

Below APPROXIMATE_FROM states the search is exact. From there on it is approximate: an inverted file
of 4-bit codes picks candidates, which are ranked by their exact similarities, and the recall is
measured against exact search. With a GPU build of FAISS and a GPU it is exact, and runs there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.errors import MissingDependencyError

Ints = NDArray[np.int64]

APPROXIMATE_FROM = 20_000
# Cells per square root of the states, share of the cells a search visits, states a cell is learnt
# from, dimensions per code, candidates per neighbour. On 100,000 states of 512 dimensions it takes
# a sixth of the time of exact search and finds 3 of 4 among the 64 nearest, the heavy ones.
_CELLS_PER_ROOT, _VISITED, _LEARN_PER_CELL, _CODE_DIMENSIONS, _CANDIDATES = 2.0, 1 / 4, 40, 4, 4
# The most states a search visits: above 100,000 time then grows with the states, not their square.
_MOST_VISITED = 25_000
# Approximate searches that are repeated exactly to measure the recall.
_RECALL_QUERIES = 64
# The most neighbours the GPU index of FAISS returns.
_GPU_MAX_K = 2048


class NearestStates:
    """An index over the M states of a pool.

    Attributes:
        recall: share of the true k nearest that approximate search finds, on a sample; None where
            search is exact.
    """

    def __init__(self, vectors: NDArray[np.floating], k: int, *, exact: bool = False) -> None:
        """Index (M, D) unit vectors for the k nearest of each; `exact` whatever their number."""
        missing = -vectors.shape[1] % _CODE_DIMENSIONS if len(vectors) >= APPROXIMATE_FROM else 0
        # A whole number of codes needs a whole number of their dimensions.
        padded = np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors
        self._vectors = np.ascontiguousarray(padded, np.float32)
        self._k = k
        self.recall: float | None = None
        on_gpu = _has_gpu() and k <= _GPU_MAX_K
        if exact or len(vectors) < APPROXIMATE_FROM or on_gpu:
            self._index = _flat(self._vectors)
            if on_gpu:
                faiss = import_faiss()
                resources = faiss.StandardGpuResources()
                self._index = faiss.index_cpu_to_gpu(resources, 0, self._index)
        else:
            self._index = _approximate(self._vectors)
            self.recall = self._measure_recall()

    def search(self, states: Ints) -> tuple[Ints, NDArray[np.float64]]:
        """(B, k) numbers of the nearest of some states, -1 for none; (B, k) similarities."""
        similarity, ids = self._index.search(self._vectors[states], self._k)
        return ids, np.clip(similarity.astype(np.float64), -1.0, 1.0)

    def _measure_recall(self) -> float:
        step = max(1, len(self._vectors) // _RECALL_QUERIES)
        sample = self._vectors[::step][:_RECALL_QUERIES]
        faiss = import_faiss()
        _, exact = faiss.knn(sample, self._vectors, self._k, metric=faiss.METRIC_INNER_PRODUCT)
        _, found = self._index.search(sample, self._k)
        hits = sum(len(np.intersect1d(one, two)) for one, two in zip(exact, found, strict=True))
        return hits / exact.size


def _flat(vectors: NDArray[np.float32]) -> Any:
    index = import_faiss().IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index


def _approximate(vectors: NDArray[np.float32]) -> Any:
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


def _has_gpu() -> bool:
    faiss = import_faiss()
    return hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0


def import_faiss() -> Any:
    """The faiss module, or one line that says how to get it."""
    try:
        import faiss
    except ImportError as error:
        raise MissingDependencyError(
            "faiss is not installed; top_k searches with it: pip install 'proxmo[cpu]', or leave "
            "top_k out to compare all states"
        ) from error
    return faiss

"""Proximity-based soft aggregation: the baseline of a step from all steps that started from similar states.

The neighbours come from FAISS, one index per pool (a group, or the batch). Identical states are one entry of the index whose
multiplicity weighs in the softmax: exact, and agents repeat themselves so much that it halves the work or better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.embeddings import embed
from proxmo.credit.states import Nodes
from proxmo.errors import ConfigError, MissingDependencyError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Entries (queries x neighbours) held at a time: 4M entries of 8 + 4 bytes from FAISS and a few float64 copies.
BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """Neighbours of a block of Q nodes: ids (Q, k) of nodes, similarity (Q, k) in [-1, 1]."""

    query: Ints
    ids: Ints
    similarity: Floats


class ProximityIndex:
    """Finds, for every distinct state, the most similar states of its pool."""

    def __init__(self, nodes: Nodes, *, embedding: str = "tfidf", top_k: int | None = None) -> None:
        """Remember what is searched; vectors are made pool by pool.

        Args:
            nodes: the distinct states and their pools.
            embedding: name of the embedding (ignored when the states are vectors).
            top_k: neighbours per state; None takes all of the pool.
        """
        if top_k is not None and top_k < 1:
            raise ConfigError(f"top_k is {top_k}; expected at least 1, or none for all candidates")
        self.nodes, self.embedding, self.top_k = nodes, embedding, top_k

    def search(self) -> Iterator[Found]:
        """The neighbours of all nodes, block by block; the node itself is among them with similarity 1."""
        for first, last in self.nodes.pools():
            if last - first == 1:
                alone = np.array([first])
                yield Found(alone, alone[:, None], np.ones((1, 1)))
            else:
                yield from self._search_pool(first, last)

    def _search_pool(self, first: int, last: int) -> Iterator[Found]:
        vectors = embed(self.nodes, self.embedding, first, last)
        index = import_faiss().IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        k = min(self.top_k or len(vectors), len(vectors))
        for start in range(0, len(vectors), max(1, BLOCK // k)):
            block = vectors[start : start + max(1, BLOCK // k)]
            similarity, ids = index.search(block, k)
            query = np.arange(first + start, first + start + len(block))
            ids = ids + first
            similarity = np.clip(similarity.astype(np.float64), -1.0, 1.0)
            # A state is exactly as similar to itself as can be, whatever float32 says; also one without tokens.
            similarity[ids == query[:, None]] = 1.0
            yield Found(query, ids, similarity)


def softmax_weights(similarity: Floats, count: Floats, tau: float) -> Floats:
    """(Q, k) weights proportional to count * exp(similarity / tau); a row without candidates is all zero."""
    logits = np.where(count > 0, similarity / tau, -np.inf)
    top = logits.max(1, keepdims=True)
    weight = count * np.exp(logits - np.where(np.isfinite(top), top, 0.0))
    total = weight.sum(1, keepdims=True)
    return weight / np.where(total > 0, total, 1.0)


def import_faiss() -> Any:
    """The faiss module, or one line that says how to get it."""
    try:
        import faiss
    except ImportError as error:
        raise MissingDependencyError(
            "faiss is not installed; the proxmo credit method needs it: pip install 'proxmo[cpu]'"
        ) from error
    return faiss

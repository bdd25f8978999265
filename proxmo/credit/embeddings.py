"""State embeddings by name: L2-normalised float32 vectors of observations.

TF-IDF is the default because it needs no model, costs a few milliseconds and tells `drawer 1` from `drawer 2`; frequencies
are those of the states compared with each other, so that one task never changes another's advantages.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import count

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.states import Nodes

Vectors = NDArray[np.float32]

_WORD = re.compile(r"\w+")


def embed(nodes: Nodes, embedding: str, first: int, last: int) -> Vectors:
    """(last - first, D) unit vectors of a pool's distinct states; a state without any token is a zero vector."""
    if isinstance(nodes.state, np.ndarray):
        return normalise(nodes.state[nodes.row[first:last]])
    return tfidf(nodes.texts(first, last))


def normalise(vectors: NDArray[np.floating]) -> Vectors:
    """Rows of length 1; a zero row stays zero."""
    vectors = np.asarray(vectors, np.float32)
    # Dividing by the largest entry first keeps the square of huge and tiny entries finite and nonzero.
    largest = np.abs(vectors).max(1, keepdims=True, initial=0.0)
    vectors = vectors / np.where(largest > 0, largest, 1)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(length > 0, length, 1), np.float32)


def tokens(text: str) -> list[str]:
    """Lower-case words; a number is joined to the word before it ("drawer 1"), since it has no meaning alone."""
    words = _WORD.findall(text.lower())
    return [
        f"{before} {word}" if word.isdigit() else word
        for before, word in zip(["", *words], words, strict=False)
    ]


def tfidf(texts: list[str]) -> Vectors:
    """Term counts times inverse document frequency, ln((1 + n) / (1 + df)) + 1, over n distinct texts."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    terms = [[numbers[token] for token in tokens(text)] for text in texts]
    lengths = [len(one) for one in terms]
    text_of = np.repeat(np.arange(len(texts)), lengths)
    term_of = np.fromiter((term for one in terms for term in one), np.int64, sum(lengths))
    counts = np.zeros((len(texts), max(len(numbers), 1)), np.float32)
    np.add.at(counts, (text_of, term_of), 1.0)
    frequency = (counts > 0).sum(0)
    return normalise(counts * (np.log((1 + len(texts)) / (1 + frequency)) + 1))

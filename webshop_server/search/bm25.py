"""BM25 as Lucene computes it, and the best documents of a query without scoring all of them.

The score of a document is the sum over the query's terms of w - w / f with the weight
w = count * idf of the term and the saturation f = 1 + tf / (k1 * (1 - b + b * length / average)).
Parts are 32-bit floats, summed in 64 bits and rounded to 32: in that order ties fall as in Lucene.
Source: `BM25Similarity` and `SmallFloat` of Lucene 8 and 9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Anserini's defaults, which the original shop searches with.
K1 = np.float32(0.9)
B = np.float32(0.4)


def _decode_length(code: int) -> int:
    """Undo Lucene's one-byte code of a length: exact to 40, then four significant bits."""
    if code < 24:
        return code
    exponent, mantissa = divmod(code - 24, 8)
    return 24 + (mantissa if exponent == 0 else (mantissa | 8) << (exponent - 1))


LENGTHS = np.array([_decode_length(code) for code in range(256)], np.int64)


def length_codes(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the byte each length (in terms) is stored as: the largest code not above it."""
    return np.searchsorted(LENGTHS, lengths, side="right") - 1


def saturations(
    frequencies: NDArray[np.int64], codes: NDArray[np.int64], average: float
) -> NDArray[np.float32]:
    """Return f of terms that occur so often in documents of such a length.

    Args:
        frequencies: (P,) times the term occurs in the document, 1 or more.
        codes: (P,) length of the document, as a byte.
        average: mean true length of the documents.
    """
    one = np.float32(1)
    relative = B * LENGTHS.astype(np.float32) / np.float32(average)
    norms = one / (K1 * ((one - B) + relative))
    return one + frequencies.astype(np.float32) * norms[codes]


def idf(documents: int, frequency: int) -> np.float32:
    """Return the inverse document frequency of a term that `frequency` of `documents` have."""
    return np.float32(math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5)))


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The documents that have a term of the query.

    Attributes:
        documents: (P,) their numbers, ascending.
        codes: (P,) index of each one's saturation in `saturations`.
        saturations: (C,) f of every code.
        weight: w of the term.
        bound: the most that this term adds to a score.
    """

    documents: NDArray[np.int32]
    codes: NDArray[np.unsignedinteger]
    saturations: NDArray[np.float32]
    weight: np.float32
    bound: float

    def parts(self, at: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.float32]:
        """Return what the term adds to the scores of some of its documents."""
        return self.weight - self.weight / self.saturations[self.codes[at]]


def best(
    terms: Sequence[Postings], documents: int, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the k best documents and their scores, best first; ties by ascending number.

    MaxScore (Turtle and Flood, 1995) in whole arrays: terms are taken by what they can add at
    most. When those that are left cannot lift a new document among the k best, they are only
    looked up for the documents met so far, and those that cannot get there any more are dropped.

    Args:
        terms: the distinct terms of the query.
        documents: size of the index; numbers are below it.
        k: 1 or more.
    """
    terms = sorted(terms, key=lambda term: -term.bound)
    # What the terms from i on can add; a hair more, as sums of doubles may round.
    rests = np.append(np.cumsum([term.bound for term in terms][::-1])[::-1], 0.0) * (1 + 1e-12)
    sums = np.zeros(documents)
    met: list[NDArray[np.int64]] = []
    floor = reach = 0.0  # the k-th best sum when last looked at, and what it can be by now
    taken = 0
    while taken < len(terms) and not _below(rests[taken], floor):
        term = terms[taken]
        numbers = term.documents.astype(np.int64)
        before = sums[numbers]
        sums[numbers] = before + term.parts()
        met.append(numbers[before == 0])
        taken += 1
        reach += term.bound
        if _below(rests[taken], reach):
            floor = reach = _kth(sums[np.concatenate(met)], k)
    numbers = np.concatenate(met) if met else np.empty(0, np.int64)
    scores = sums[numbers]
    for i in range(taken, len(terms)):
        kept = ~_below(scores + rests[i], floor)
        numbers, scores = numbers[kept], scores[kept]
        _look_up(terms[i], numbers, scores)
        floor = _kth(scores, k)
    return _top(numbers, scores, k)


def _below(score: NDArray[np.float64] | float, floor: float) -> NDArray[np.bool_]:
    """Tell whether a score is lower as it counts in the end, rounded; equal ones are not."""
    return np.float32(score) < np.float32(floor)


def _kth(scores: NDArray[np.float64], k: int) -> float:
    """Return the k-th largest score, 0 when there are fewer."""
    return float(np.partition(scores, len(scores) - k)[len(scores) - k]) if len(scores) >= k else 0.0


def _look_up(term: Postings, numbers: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
    """Add what a term gives to some documents."""
    at = np.searchsorted(term.documents, numbers.astype(np.int32))
    at[at == len(term.documents)] = 0
    has = term.documents[at] == numbers
    scores[has] += term.parts(at[has])


def _top(
    numbers: NDArray[np.int64], scores: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    rounded = scores.astype(np.float32)
    if len(rounded) > k:
        kept = rounded >= np.partition(rounded, len(rounded) - k)[len(rounded) - k]
        numbers, rounded = numbers[kept], rounded[kept]
    order = np.lexsort((numbers, -rounded))[:k]
    return numbers[order], rounded[order]

"""State embeddings by name: unit-length float32 vectors of observations.

TF-IDF is the default: it needs no model, costs a few milliseconds and tells `drawer 1` from
`drawer 2`. It is fitted to the states that are compared with each other, so that one task never
changes another's advantages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.registry import find_callable
from proxmo.credit.terms import Terms, count_terms
from proxmo.errors import ConfigError, UnknownNameError

Vectors = NDArray[np.floating]
# Maps the distinct observations of one pool to their vectors, (U,) -> (U, D).
Embedding = Callable[[list[str]], NDArray[np.floating]]

# Pools of up to this many states are compared in double precision: it costs little there.
DOUBLE = 1024
# The most numbers of a pool's vectors (half a gigabyte) and multiplications of comparing all pairs
# (up to about a minute of one core).
_MOST_NUMBERS, _MOST_WORK = 2**27, 10**13

HASH_COLUMNS = 512
HASH_NGRAMS = (3, 4, 5)
# Texts hashed at a time; bounds the memory of the n-gram arrays.
_HASH_TEXTS = 1024
# Odd 64-bit constants that spread bits: the golden ratio's, and a multiplier of splitmix64.
_SPREAD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


def check_embedding(
    name: str | Embedding, kind: str = "embedding", others: tuple[str, ...] = ()
) -> None:
    """Raise an error for what names no embedding and is none of `others`; loads nothing."""
    if callable(name):
        return
    if not isinstance(name, str):
        raise ConfigError(f"{kind} is {name!r}; expected a name or module:name")
    known = (*_EMBEDDINGS, "policy", *others)
    if name not in known and not name.partition(":")[2]:
        raise UnknownNameError(kind, name, [*known, "sentence:<model or path>"])


def find_embedding(name: str | Embedding) -> Embedding:
    """The embedding of a name: tfidf, hash, sentence:<model or path>, module:name.

    Raises:
        UnknownNameError: no such name.
        ConfigError: "policy" where observations came instead of hidden states.
    """
    check_embedding(name)
    if callable(name):
        return name
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    if name == "policy":
        raise ConfigError(
            "embedding 'policy' compares hidden states of the policy; pass them as state, an "
            "(S, D) array, instead of observations"
        )
    kind, _, rest = name.partition(":")
    if kind == "sentence":
        from proxmo.credit.sentences import sentence_embedding

        return sentence_embedding(rest)
    return find_callable(name, "embedding")


def normalise(vectors: NDArray[Any], out: Vectors | None = None) -> Vectors:
    """Scale rows to length 1, in `out` if given; a zero row stays zero."""
    # Dividing by the largest entry first keeps squares of huge and tiny entries finite and nonzero.
    largest = np.maximum(vectors.max(1, initial=0), -vectors.min(1, initial=0))[:, None]
    largest = np.where(largest > 0, largest, 1).astype(np.result_type(vectors, np.float32))
    unit = np.empty(vectors.shape, _precision(len(vectors))) if out is None else out
    np.divide(vectors, largest, out=unit, casting="same_kind")
    length = np.sqrt(np.einsum("ij,ij->i", unit, unit))[:, None]
    unit /= np.where(length > 0, length, 1)
    return unit


def check_comparable(states: int, width: int) -> None:
    """Raise ConfigError for more states than can all be compared with each other.

    Args:
        states: distinct states of a pool.
        width: numbers in the vector of each.
    """
    if states * width > _MOST_NUMBERS or states**2 * width > _MOST_WORK:
        raise ConfigError(
            f"{states} distinct states, as vectors of {width} numbers, are too many to compare "
            "all of them with each other; set top_k (the nearest of each, by FAISS), scope = "
            "'group', or an embedding of fewer numbers"
        )


def tfidf(texts: list[str], columns: int | None = None) -> Vectors:
    """Term counts times ln((1 + n) / (1 + df)) + 1, where df of the n distinct texts have the term.

    Args:
        texts: U texts.
        columns: most numbers in a vector; None takes as many as there are terms. With more terms
            the most frequent keep a column of their own and the others share the rest with random
            signs (feature hashing), which leaves inner products right on average.
    """
    terms = count_terms(texts)
    if columns is None:
        check_comparable(len(texts), len(terms.names))
    weight = inverse_document_frequency(terms.document_frequency(), len(texts))
    column = np.arange(len(terms.names))
    if columns is not None and len(column) > columns:
        column, sign = _shared_columns(terms, columns)
        weight *= sign
    vectors = dense(terms, column, weight, min(columns or len(column), len(column)))
    return normalise(vectors, out=vectors)


def inverse_document_frequency(frequency: NDArray[np.integer], documents: int) -> NDArray:
    """Weight of each term, ln((1 + n) / (1 + df)) + 1: never 0, so equal texts stay alike."""
    return np.log((1.0 + documents) / (1.0 + frequency)) + 1.0


def dense(terms: Terms, column: NDArray, weight: NDArray, width: int) -> Vectors:
    """(U, width) sums of weighted counts; a term whose column is negative is left out."""
    width = max(width, 1)
    vectors = np.zeros(terms.texts * width, _precision(terms.texts))
    kept = column[terms.term] >= 0
    text, term = terms.text[kept], terms.term[kept]
    # One flat index and equal types: numpy is then several times faster.
    values = (terms.count[kept] * weight[term]).astype(vectors.dtype)
    np.add.at(vectors, text * width + column[term], values)
    return vectors.reshape(-1, width)


def _precision(states: int) -> type[np.floating]:
    return np.float64 if states <= DOUBLE else np.float32


def _shared_columns(terms: Terms, limit: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A column and a sign for every term: own columns for the frequent half of the columns."""
    key = np.array([crc32(name.encode("utf-8", "surrogatepass")) for name in terms.names])
    shared, sign = _hashed(key.astype(np.uint64), limit - limit // 2)
    rank = np.empty(len(key), np.int64)
    # Ties go by the term itself, so that the order of the texts does not matter.
    rank[np.lexsort((key, -terms.document_frequency()))] = np.arange(len(key))
    own = rank < limit // 2
    return np.where(own, rank, limit // 2 + shared), np.where(own, 1.0, sign)


def character_hash(texts: list[str]) -> Vectors:
    """Signed counts of hashed character n-grams: no vocabulary, any language, no tokens needed."""
    vectors = np.zeros((len(texts), HASH_COLUMNS), _precision(len(texts)))
    for start in range(0, len(texts), _HASH_TEXTS):
        # A blank at both ends marks where words begin and makes one-character texts long enough.
        block = [f" {text.lower()} " if text else "" for text in texts[start : start + _HASH_TEXTS]]
        code = np.frombuffer("".join(block).encode("utf-32-le", "surrogatepass"), np.uint32)
        text_of = np.repeat(np.arange(start, start + len(block)), [len(text) for text in block])
        for size in HASH_NGRAMS:
            _add_ngrams(vectors, code.astype(np.uint64), text_of, size)
    return normalise(vectors, out=vectors)


def _add_ngrams(vectors: Vectors, code: NDArray[np.uint64], text_of: NDArray, size: int) -> None:
    windows = max(len(code) - size + 1, 0)
    key = np.full(windows, size, np.uint64)
    for offset in range(size):
        key = key * _SPREAD + code[offset : offset + windows]
    inside = text_of[:windows] == text_of[len(code) - windows :]
    column, sign = _hashed(key[inside], HASH_COLUMNS)
    np.add.at(vectors, (text_of[:windows][inside], column), sign)


def _hashed(key: NDArray[np.uint64], columns: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A pseudo-random column and sign for each key, the same on every machine."""
    mixed = (key ^ (key >> np.uint64(31))) * _MIX
    mixed ^= mixed >> np.uint64(29)
    column = ((mixed >> np.uint64(1)) % np.uint64(columns)).astype(np.int64)
    return column, np.where(mixed & np.uint64(1), 1.0, -1.0)


_EMBEDDINGS: dict[str, Embedding] = {"tfidf": tfidf, "hash": character_hash}

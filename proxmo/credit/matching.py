"""Which steps of a task start from the same state: the step groups of GiGPO."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.embeddings import check_embedding
from proxmo.credit.proximity import ProximityIndex, Vectors
from proxmo.credit.rows import Rows
from proxmo.credit.states import collapse
from proxmo.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The matcher that compares texts and not their vectors.
BY_TEXT = "difflib"
# Cosines of float32 vectors are exact to about this much.
_COSINE_ROUNDING = 1e-6


def step_groups(rows: Rows, similarity: float | None, matcher: str) -> Ints:
    """(S,) step group of each row: states of a task that are identical, or similar enough.

    Similar states are grouped greedily in row order, as GiGPO releases it: a state joins the first
    group whose first member it is similar enough to.

    Raises:
        ConfigError: similarity out of range, unknown matcher.
    """
    check_embedding(matcher, "matcher", (BY_TEXT,))
    if similarity is None:
        return collapse(rows.state, rows.group).of_row
    if not 0.0 < similarity <= 1.0:
        raise ConfigError(f"similarity is {similarity}; expected a number above 0, at most 1")
    by_text = matcher == BY_TEXT
    if by_text and isinstance(rows.state, np.ndarray):
        raise ConfigError(
            f"matcher is {BY_TEXT!r}, which compares texts, but state is an array of embeddings; "
            "matcher='policy', or another embedding's name, compares its rows"
        )
    index = ProximityIndex(rows.state, rows.group, embedding="tfidf" if by_text else matcher)
    nodes = index.nodes
    leader = np.arange(len(nodes.pool))
    for first, last in nodes.pools():
        # Nodes of a pool are numbered by first appearance, which is the greedy order.
        found = (
            _lead_by_text(nodes.texts(first, last), similarity)
            if by_text
            else _lead_by_vector(index.vectors(first, last), similarity)
        )
        leader[first:last] = first + found
    return np.unique(leader[nodes.of_row], return_inverse=True)[1]


def similarities(rows: Rows, row: int, members: Ints, matcher: str) -> Floats:
    """(M,) how similar the states of the members of a step group are to that of one row of it."""
    nodes = collapse(rows.state, rows.group)
    own, others = nodes.of_row[row], nodes.of_row[members]
    found = np.ones(len(members))
    if (others == own).all():
        return found
    pool = nodes.pool[own]
    first, last = (int(edge) for edge in np.searchsorted(nodes.pool, [pool, pool + 1]))
    if matcher == BY_TEXT:
        texts = nodes.texts(first, last)
        text = texts[own - first]
        found[:] = [SequenceMatcher(None, text, texts[one - first]).ratio() for one in others]
    else:
        vectors = ProximityIndex(rows.state, rows.group, embedding=matcher).vectors(first, last)
        found[:] = np.clip(vectors[others - first] @ vectors[own - first], -1.0, 1.0)
    found[others == own] = 1.0
    return found


def _lead_by_vector(vectors: Vectors, threshold: float) -> Ints:
    leader = np.full(len(vectors), -1)
    for one in range(len(vectors)):
        if leader[one] < 0:
            near = vectors @ vectors[one] >= threshold - _COSINE_ROUNDING
            near[one] = True
            leader[(leader < 0) & near] = one
    return leader


def _lead_by_text(texts: list[str], threshold: float) -> Ints:
    leaders: list[int] = []
    result = np.empty(len(texts), np.int64)
    for one, text in enumerate(texts):
        alike = (two for two in leaders if _alike(text, texts[two], threshold))
        result[one] = next(alike, one)
        if result[one] == one:
            leaders.append(one)
    return result


def _alike(text: str, other: str, threshold: float) -> bool:
    """Whether the ratio of matching characters suffices; cheap upper bounds decide most pairs."""
    matching = SequenceMatcher(None, text, other)
    return (
        matching.real_quick_ratio() >= threshold
        and matching.quick_ratio() >= threshold
        and matching.ratio() >= threshold
    )

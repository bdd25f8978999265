"""Which steps of a task start from the same state: the step groups of GiGPO."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.embeddings import embed
from proxmo.credit.rows import Rows
from proxmo.credit.states import Nodes, collapse
from proxmo.errors import ConfigError


def step_groups(rows: Rows, similarity: float | None, matcher: str) -> NDArray[np.int64]:
    """(S,) step group of each row: identical states of a task, or states similar to a group's first member.

    Similar states are grouped greedily in row order: a state joins the first group whose first member it is similar enough
    to, as GiGPO releases it. The group therefore depends on the order; identical states never part.
    """
    nodes = collapse(rows.state, rows.group)
    if similarity is None:
        return nodes.of_row
    if not 0.0 < similarity <= 1.0:
        raise ConfigError(f"similarity is {similarity}; expected a number above 0 and at most 1")
    leader = np.arange(len(nodes.pool))
    for first, last in nodes.pools():
        # Nodes are numbered by first appearance inside a pool: the greedy order.
        leader[first:last] = first + _greedy(nodes, first, last, similarity, matcher)
    return np.unique(leader[nodes.of_row], return_inverse=True)[1]


def _greedy(nodes: Nodes, first: int, last: int, threshold: float, matcher: str) -> NDArray[np.int64]:
    if matcher == "difflib":
        texts = nodes.texts(first, last)
        return _greedy_by_text(texts, threshold)
    vectors = embed(nodes, matcher, first, last)
    leader = np.full(len(vectors), -1)
    for one in range(len(vectors)):
        if leader[one] < 0:
            near = vectors @ vectors[one] >= threshold
            near[one] = True
            leader[(leader < 0) & near] = one
    return leader


def _greedy_by_text(texts: list[str], threshold: float) -> NDArray[np.int64]:
    leaders: list[int] = []
    result = np.empty(len(texts), np.int64)
    for one, text in enumerate(texts):
        for leader in leaders:
            if _alike(text, texts[leader], threshold):
                result[one] = leader
                break
        else:
            leaders.append(one)
            result[one] = one
    return result


def _alike(text: str, other: str, threshold: float) -> bool:
    """Whether the ratio of matching characters reaches the threshold; cheap upper bounds decide most pairs."""
    matching = SequenceMatcher(None, text, other)
    return (
        matching.real_quick_ratio() >= threshold
        and matching.quick_ratio() >= threshold
        and matching.ratio() >= threshold
    )

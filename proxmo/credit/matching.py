"""Which steps of a task start from the same state: the step groups of GiGPO."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.embeddings import Vectors, check_embedding
from proxmo.credit.proximity import ProximityIndex
from proxmo.credit.rows import Rows
from proxmo.credit.states import Nodes, collapse
from proxmo.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The matcher that compares texts and not their vectors.
BY_TEXT = "difflib"
# Cosines of float32 vectors are exact to about this much.
_COSINE_ROUNDING = 1e-6


class StepGroups:
    """States of a task that are identical, or similar enough.

    Similar states are grouped greedily, as GiGPO releases it: a state joins the first group whose
    first member it is similar enough to. The order is that of the texts (or vectors) themselves,
    so that the order of the rows does not matter.

    Attributes:
        of_row: (S,) step group of each row.
    """

    def __init__(
        self, rows: Rows, similarity: float | None, matcher: str, history: float = 0.0
    ) -> None:
        """Group the states of some rows.

        Args:
            rows: the steps.
            similarity: least similarity in a group; None groups identical states only.
            matcher: "difflib", or the name of an embedding.
            history: decay of earlier observations in the embedding.

        Raises:
            ConfigError: unknown matcher, or one that cannot compare such states.
        """
        check_embedding(matcher, "matcher", (BY_TEXT,))
        self._rows, self._by_text = rows, matcher == BY_TEXT
        if history and (self._by_text or similarity is None):
            raise ConfigError(
                f"history is {history}, but matcher {matcher!r} compares single observations; set "
                "similarity, and matcher to an embedding"
            )
        self._index: ProximityIndex | None = None
        self.nodes: Nodes = collapse(rows.state_code, rows.group)
        if similarity is None:
            self.of_row = self.nodes.of_row
            return
        if self._by_text and isinstance(rows.state, np.ndarray):
            raise ConfigError(
                f"matcher is {BY_TEXT!r}, which compares texts, but state is an array of "
                "embeddings; matcher='policy', or another embedding's name, compares its rows"
            )
        if not self._by_text:
            self._index = ProximityIndex(
                rows.state, rows.group, embedding=matcher, history=history, episode=rows.episode
            )
            self.nodes = self._index.nodes
        leader = np.arange(len(self.nodes.pool))
        for first, last in self.nodes.pools():
            found = (
                lead_by_text(self._texts(first, last), similarity)
                if self._index is None
                else _lead_by_vector(self._index.vectors(first, last), similarity)
            )
            leader[first:last] = first + found
        self.of_row = np.unique(leader[self.nodes.of_row], return_inverse=True)[1]

    def similarities(self, row: int, members: Ints) -> Floats:
        """(M,) how similar the states of some members of a row's step group are to its own."""
        own, others = self.nodes.of_row[row], self.nodes.of_row[members]
        found = np.ones(len(members))
        if (others == own).all():
            return found
        first, last = self.nodes.pool_of(own)
        if self._index is None:
            texts = self._texts(first, last)
            matching = (SequenceMatcher(None, texts[own - first], texts[n - first]) for n in others)
            found[:] = [one.ratio() for one in matching]
        else:
            vectors = self._index.vectors(first, last)
            found[:] = np.clip(vectors[others - first] @ vectors[own - first], -1.0, 1.0)
        found[others == own] = 1.0
        return found

    def _texts(self, first: int, last: int) -> list[str]:
        return [self._rows.text(row) or "" for row in self.nodes.row[first:last].tolist()]


def _lead_by_vector(vectors: Vectors, threshold: float) -> Ints:
    leader = np.full(len(vectors), -1)
    for one in range(len(vectors)):
        if leader[one] < 0:
            near = vectors @ vectors[one] >= threshold - _COSINE_ROUNDING
            near[one] = True
            leader[(leader < 0) & near] = one
    return leader


def lead_by_text(texts: list[str], threshold: float) -> Ints:
    """(U,) the first text each is alike to, among those that are alike to none before them."""
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

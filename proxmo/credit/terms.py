"""Term counts of texts: which token occurs how often in which text, as flat arrays."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Texts tokenised at a time: the token strings of 100,000 texts would take a quarter of a gigabyte.
_TEXTS = 4096
# Ends a text inside the joined block; no token contains it.
_END = "\0"


@dataclass(frozen=True, slots=True)
class Terms:
    """Nonzero term counts of U texts over V terms.

    Attributes:
        texts: number of texts, U.
        text: (N,) text of each entry, rising.
        term: (N,) its term, 0 to V-1.
        count: (N,) how often the term occurs in the text.
        names: the V terms.
    """

    texts: int
    text: Ints
    term: Ints
    count: Ints
    names: list[str]

    def document_frequency(self) -> Ints:
        """(V,) number of texts in which the term occurs."""
        return np.bincount(self.term, minlength=len(self.names))


class _Pieces(dict[str, tuple[int, ...]]):
    """Numbers of the tokens in a piece of text without blanks, looked for once per distinct piece.

    Agents read the same few words over and over: a regular expression over the whole texts takes
    three times as long.
    """

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self.numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._find = re.compile(pattern).findall

    def __missing__(self, piece: str) -> tuple[int, ...]:
        self[piece] = found = tuple(self.numbers[token] for token in self._find(piece))
        return found


def count_terms(texts: list[str], token: str = r"\w+", *, bind_numbers: bool = True) -> Terms:
    """Count the lower-case tokens of each text.

    Args:
        texts: U texts.
        token: regular expression of a token, which holds no blank.
        bind_numbers: make a number one term with the token before it ("drawer 1"): alone it says
            little, and "drawer 1, shelf 2" would equal "drawer 2, shelf 1".
    """
    pieces = _Pieces(rf"{token}|{_END}")
    (end,) = pieces[_END]
    parts = []
    for start in range(0, len(texts), _TEXTS):
        block = [text.replace(_END, " ") for text in texts[start : start + _TEXTS]]
        found = map(pieces.__getitem__, f" {_END} ".join([*block, ""]).lower().split())
        parts.append(np.fromiter(chain.from_iterable(found), np.int64))
    ids = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    words = list(pieces.numbers)
    is_end = ids == end
    key = ids
    if bind_numbers and len(ids):
        is_number = np.array([word.isdigit() for word in words])
        # A number after the end of a text has the key of the number alone, since end is 0.
        key = np.where(is_number[ids], np.roll(ids, 1) * len(words) + ids, ids)
    text_of = np.cumsum(is_end)[~is_end]
    keys, term_of = np.unique(key[~is_end], return_inverse=True)
    entries, times = np.unique(text_of * max(len(keys), 1) + term_of, return_counts=True)
    text, term = np.divmod(entries, max(len(keys), 1))
    before, last = np.divmod(keys, len(words))
    names = [
        f"{words[one]} {words[two]}" if one else words[two]
        for one, two in zip(before.tolist(), last.tolist(), strict=True)
    ]
    return Terms(len(texts), text, term, times, names)

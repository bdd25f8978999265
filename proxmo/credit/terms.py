"""Term counts of texts: which token occurs how often in which text, as flat arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.numbering import number

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


def count_terms(texts: list[str], token: str = r"\w+", *, bind_numbers: bool = True) -> Terms:
    """Count the lower-case tokens of each text.

    Args:
        texts: U texts.
        token: regular expression of a token, which holds no blank.
        bind_numbers: make a number one term with the token before it ("drawer 1"): alone it says
            little, and "drawer 1, shelf 2" would equal "drawer 2, shelf 1".
    """
    blocks = (texts[start : start + _TEXTS] for start in range(0, len(texts), _TEXTS))
    # An end before the first text has it numbered 0.
    pieces = chain([_END], chain.from_iterable(map(_pieces, blocks)))
    ids, words = _number_tokens(pieces, rf"{token}|{_END}")
    ids = ids[1:]
    is_end = ids == 0
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


def _pieces(texts: list[str]) -> list[str]:
    """What stands between blanks in some texts, with an end after each text."""
    return f" {_END} ".join([*(text.replace(_END, " ") for text in texts), ""]).lower().split()


def _number_tokens(pieces: Iterable[str], pattern: str) -> tuple[Ints, list[str]]:
    """(N,) number of each token of a sequence of pieces, and the distinct tokens.

    Tokens are looked for once per distinct piece: agents read the same few words over and over, and
    a regular expression over whole texts takes three times as long.
    """
    codes, distinct = number(pieces)
    found = list(map(re.compile(pattern).findall, distinct))
    token_of, words = number(chain.from_iterable(found))
    length = np.array([len(tokens) for tokens in found], np.int64)
    # Token n of a piece is n places after the first of that piece in token_of.
    size = length[codes]
    first = (np.cumsum(length) - length)[codes] - (np.cumsum(size) - size)
    return token_of[np.repeat(first, size) + np.arange(size.sum())], words

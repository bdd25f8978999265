"""Decide whether two texts count as the same: fuzzy match, and colours by name."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from pathlib import Path

from rapidfuzz.fuzz import token_set_ratio

from webshop_server.data.tables import read_words

# Texts match when their token set ratio is above this; a set that contains the other has 100.
THRESHOLD = 85

COLOR_WORDS = read_words(Path(__file__).with_name("colors.txt"))
# The original intends to drop all but ASCII, but drops only these.
_LATIN_1 = re.compile(r"[\x80-\xff]")
_NOT_WORD = re.compile(r"\W")


def normalize_color(value: str) -> str:
    """Return the first colour word that occurs in `value`, or `value` itself."""
    return next((word for word in COLOR_WORDS if word in value), value)


def normalize_pair(name: str, value: str) -> str:
    """Return an option of a synthetic goal as the original compares it.

    The pair is reduced to a colour only if its name or value *is* a colour word; else it is
    compared in its printed form. A bought value is reduced if it *contains* one, so that some
    goals cannot be met.
    """
    color = next((word for word in COLOR_WORDS if word in (name, value)), None)
    return color if color else str((name, value))


def alike(first: str, second: str) -> bool:
    """Return whether two texts count as the same: their token set ratio is above 85.

    The recorded rewards use the ratio of `difflib`. The ratio of `rapidfuzz` is never below it and
    a hundred times as fast, so that we compute the slow one only for texts that pass the fast one.
    """
    a, b = _words(first), _words(second)
    if not a or not b or round(token_set_ratio(a, b)) <= THRESHOLD:
        return False
    return _token_set_ratio(a, b) > THRESHOLD


def _token_set_ratio(a: str, b: str) -> int:
    """Compare the common words and each text's common and other words, pair by pair."""
    first, second = set(a.split()), set(b.split())
    common = " ".join(sorted(first & second))
    whole = [
        f"{common} {' '.join(sorted(words))}".strip() for words in (first - second, second - first)
    ]
    pairs = ((common, whole[0]), (common, whole[1]), (whole[0], whole[1]))
    return max(round(100 * SequenceMatcher(None, x, y).ratio()) if x and y else 0 for x, y in pairs)


def _words(text: str) -> str:
    return _NOT_WORD.sub(" ", _LATIN_1.sub("", text)).lower().strip()

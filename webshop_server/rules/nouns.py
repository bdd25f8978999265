"""Nouns of a title, which the reward compares: by a rule without a tagger, or from a file.

The original asks spaCy's `en_core_web_sm`. The rule takes every word that starts with a letter and
is no function word; tests/webshop_server/rules/test_nouns.py measures the agreement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from webshop_server.data.json_stream import elements
from webshop_server.data.tables import read_words
from webshop_server.errors import CatalogueError

# (id of the product, its title) -> the nouns of the title, lower case, repeats kept.
NounFinder = Callable[[str, str], Sequence[str]]

# Letters and digits that start with a letter; a word after a digit or an underscore is none.
_WORD = re.compile(r"\b[^\W\d_][^\W_]*\b")
_FUNCTION_WORDS = frozenset(read_words(Path(__file__).with_name("function_words.txt")))


@lru_cache(maxsize=65_536)
def _rule(title: str) -> tuple[str, ...]:
    words = _WORD.findall(title.lower())
    return tuple(word for word in words if word not in _FUNCTION_WORDS)


def rule(asin: str, title: str) -> Sequence[str]:
    """Find nouns without a tagger: words that start with a letter, less the function words."""
    return _rule(title)


def from_file(path: str | Path) -> NounFinder:
    """Use nouns that a tagger found: a JSON object of product ids and lists of their nouns.

    The rule finds the nouns of products that the file does not know. Raises `CatalogueError`,
    which names the line.
    """
    known: dict[str, list[str]] = {}
    for asin, nouns, place in elements(Path(path), "{"):
        if not isinstance(nouns, list) or not all(isinstance(noun, str) for noun in nouns):
            raise CatalogueError(
                f"{place} ({asin}): nouns of a title are {str(nouns)[:50]!r}; expected a list of "
                "words"
            )
        known[asin] = nouns

    def find(asin: str, title: str) -> Sequence[str]:
        return known[asin] if asin in known else rule(asin, title)

    return find

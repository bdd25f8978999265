"""Lucene's English analysis: turns a text into the terms that are indexed and searched.

Cuts words at the default boundaries of Unicode (UAX #29), drops a possessive 's and 33 stop words,
and stems the rest. ASCII text, nearly all there is, takes a faster way to the same words; other
text needs `regex`, which we import on first use.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from webshop_server.data.tables import read_words
from webshop_server.search.stemmer import stem

_STOP_WORDS = frozenset(read_words(Path(__file__).with_name("stop_words.txt")))

# UAX #29 on ASCII: runs of letters, digits and "_", joined by one of .:' between letters and by
# one of .,;' between digits.
_ASCII_WORD = re.compile(
    r"\w+(?:(?:(?<=[a-z])[.:'](?=[a-z])|(?<=[0-9])[.,;'](?=[0-9]))\w+)*", re.ASCII
)

# Lucene cuts a longer word into pieces of this length.
_LONGEST = 255

_POSSESSIVES = ("'s", "\u2019s", "\uff07s")


def analyse(text: str) -> list[str]:
    """Return the terms of a text, in order, repeats kept."""
    return [term for word in words(text) if (term := term_of(word))]


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, before anything is dropped or stemmed."""
    text = text.lower()
    found: list[str] = _ASCII_WORD.findall(text) if text.isascii() else _unicode_words(text)
    return [part for word in found for part in _parts(word)] if len(text) > _LONGEST else found


def term_of(word: str) -> str:
    """Return the term of a word, "" for a stop word or underscores."""
    if word.endswith(_POSSESSIVES):
        word = word[:-2]
    return "" if word in _STOP_WORDS or not word.strip("_") else stem(word)


def _parts(word: str) -> list[str]:
    return [word[at : at + _LONGEST] for at in range(0, len(word), _LONGEST)]


def _unicode_words(text: str) -> list[str]:
    piece, content = _unicode_patterns()
    found: list[str] = []
    # A space is a boundary, and most words are ASCII even here.
    for part in text.split(" "):
        if part.isascii():
            found += _ASCII_WORD.findall(part)
        else:
            found += [word for word in piece.findall(part) if content.search(word)]
    return found


@cache
def _unicode_patterns() -> tuple[Any, Any]:
    """Compile two patterns: a piece between two boundaries, and the content of a word."""
    import regex

    pictographs = "".join(
        "-".join(f"\\U{int(end, 16):08x}" for end in span.split("-"))
        for span in read_words(Path(__file__).with_name("pictographs.txt"))
    )
    # Scripts without spaces between words (Thai, Khmer, ...): Lucene keeps a run of letters whole.
    run = r"\p{Line_Break=SA}[\p{Line_Break=SA}\p{Word_Break=Extend}\p{Word_Break=Format}]*"
    return (
        regex.compile(rf"(?w){run}|\b\S.*?\b", regex.DOTALL),
        regex.compile(
            rf"(?!\p{{Word_Break=Extend}})[\p{{Alphabetic}}\p{{Nd}}{pictographs}]|\p{{RI}}{{2}}"
        ),
    )

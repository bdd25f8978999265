"""Lucene's English analysis: turns a text into the terms that are indexed and searched.

Cuts words at the default boundaries of Unicode (UAX #29), drops a possessive 's and 33 stop words,
and stems the rest. ASCII text, nearly all there is, takes a faster way to the same words; other
text needs `regex`, which we import on first use.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from webshop_server.search.stemmer import stem

_STOP_TEXT = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())

# UAX #29 on ASCII: runs of letters, digits and "_", joined by one of .:' between letters and by
# one of .,;' between digits.
_ASCII_WORD = re.compile(
    r"\w+(?:(?:(?<=[a-z])[.:'](?=[a-z])|(?<=[0-9])[.,;'](?=[0-9]))\w+)*", re.ASCII
)

# Lucene cuts a longer word into pieces of this length.
_LONGEST = 255

_POSSESSIVES = ("'s", "\u2019s", "\uff07s")

# Code points that make a word of a piece without letter or digit, in hexadecimal: those that were
# Extended_Pictographic in Emoji 12, of Lucene 8's time. Later versions took many away.
_PICTOGRAPHS = (
    "a9 ae 203c 2049 2122 2139 2194-2199 21a9 21aa 231a 231b 2328 2388 23cf 23e9-23f3 23f8-23fa "
    "24c2 25aa 25ab 25b6 25c0 25fb-25fe 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 "
    "2716 271d 2721 2728 2733 2734 2744 2747 274c 274e 2753-2755 2757 2763-2767 2795-2797 27a1 "
    "27b0 27bf 2934 2935 2b05-2b07 2b1b 2b1c 2b50 2b55 3030 303d 3297 3299 1f000-1f0ff "
    "1f10d-1f10f 1f12f 1f16c-1f171 1f17e 1f17f 1f18e 1f191-1f19a 1f1ad-1f1e5 1f201-1f20f 1f21a "
    "1f22f 1f232-1f23a 1f23c-1f23f 1f249-1f3fa 1f400-1f53d 1f546-1f64f 1f680-1f6ff 1f774-1f77f "
    "1f7d5-1f7ff 1f80c-1f80f 1f848-1f84f 1f85a-1f85f 1f888-1f88f 1f8ae-1f8ff 1f90c-1f93a "
    "1f93c-1f945 1f947-1fffd"
)


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
        for span in _PICTOGRAPHS.split()
    )
    # Scripts without spaces between words (Thai, Khmer, ...): Lucene keeps a run of letters whole.
    run = r"\p{Line_Break=SA}[\p{Line_Break=SA}\p{Word_Break=Extend}\p{Word_Break=Format}]*"
    return (
        regex.compile(rf"(?w){run}|\b\S.*?\b", regex.DOTALL),
        regex.compile(
            rf"(?!\p{{Word_Break=Extend}})[\p{{Alphabetic}}\p{{Nd}}{pictographs}]|\p{{RI}}{{2}}"
        ),
    )

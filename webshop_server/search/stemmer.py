"""Porter's stemmer with the two endings its author added later, as Lucene has it.

Source: M. F. Porter, "An algorithm for suffix stripping", Program 14 (1980), with `bli` -> `ble`
and `logi` -> `log` of his own later version. The Snowball stemmers differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_STEP_2_TEXT = """
ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e ousli:ous
ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive
biliti:ble logi:log
"""
_STEP_2 = dict(pair.split(":") for pair in _STEP_2_TEXT.split())
_STEP_3_TEXT = "icate:ic ative: alize:al iciti:ic ical:ic ful: ness:"
_STEP_3 = dict(pair.split(":") for pair in _STEP_3_TEXT.split())
_STEP_4_TEXT = "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize"
_STEP_4 = tuple(_STEP_4_TEXT.split())
_STEP_1B = {"at": "ate", "bl": "ble", "iz": "ize"}

_MEASURED = re.compile("v+c+")


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Return the stem of a lower-case word; words of one or two characters stay as they are."""
    if len(word) <= 2:
        return word
    word = _plural(word)
    word = _past_or_continuous(word)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    for endings in (_STEP_2, _STEP_3):
        ending = _ending(word, endings)
        if ending and _measure(word[: -len(ending)]) > 0:
            word = word[: -len(ending)] + endings[ending]
    ending = _ending(word, _STEP_4)
    rest = word[: len(word) - len(ending)]
    if ending and (ending != "ion" or rest.endswith(("s", "t"))) and _measure(rest) > 1:
        word = rest
    return _final(word)


def _plural(word: str) -> str:
    if word.endswith("sses") or word.endswith("ies"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past_or_continuous(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = _ending(word, ("ed", "ing"))
    rest = word[: len(word) - len(ending)]
    if not ending or "v" not in _shape(rest):
        return word
    if rest[-2:] in _STEP_1B:
        return rest[:-2] + _STEP_1B[rest[-2:]]
    if _doubled(rest):
        return rest if rest[-1] in "lsz" else rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _short(rest) else rest


def _final(word: str) -> str:
    measure = _measure(word)
    if word.endswith("e") and (measure > 1 or (measure == 1 and not _short(word[:-1]))):
        word = word[:-1]
    return word[:-1] if word.endswith("l") and _doubled(word) and measure > 1 else word


def _ending(word: str, endings: Iterable[str]) -> str:
    """Return the longest of the endings that the word has, or ""."""
    return max((ending for ending in endings if word.endswith(ending)), key=len, default="")


def _shape(word: str) -> str:
    """Write c for a consonant and v for a vowel; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Count the changes from vowel to consonant, Porter's m."""
    return len(_MEASURED.findall(_shape(word)))


def _doubled(word: str) -> bool:
    return len(word) >= 2 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _short(word: str) -> bool:
    """Return whether a word ends like -wil, -hop: Porter's *o."""
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"

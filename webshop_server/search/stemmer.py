"""Porter's stemmer with the two endings its author added later, as Lucene has it.

The rules are in porter_rules.txt. The Snowball stemmers differ, and importing NLTK, whose stemmer
gives the same, takes two seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path


def _shape(word: str) -> str:
    """Write c for a consonant and v for a vowel; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Count the changes from vowel to consonant, Porter's m."""
    return len(re.findall("v+c+", _shape(word)))


def _short(word: str) -> bool:
    """Return whether a word ends like -wil, -hop: Porter's *o."""
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


_CONDITIONS: dict[str, Callable[[str], bool]] = {
    "always": lambda rest: True,
    "*v*": lambda rest: "v" in _shape(rest),
    "m>0": lambda rest: _measure(rest) > 0,
    "m>1": lambda rest: _measure(rest) > 1,
    "m>1,*s|*t": lambda rest: _measure(rest) > 1 and rest.endswith(("s", "t")),
    "m>1|m=1,!*o": lambda rest: _measure(rest) > 1 or (_measure(rest) == 1 and not _short(rest)),
    "m+1>1": lambda rest: _measure(rest + "l") > 1,
}


def _read_rules() -> dict[str, dict[str, tuple[str, str]]]:
    """Return step -> ending -> (condition, replacement)."""
    steps: dict[str, dict[str, tuple[str, str]]] = {}
    text = Path(__file__).with_name("porter_rules.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            step, condition, *rules = line.split()
            for ending, replacement in (rule.split(":") for rule in rules):
                steps.setdefault(step, {})[ending] = condition, replacement
    return steps


_STEPS = _read_rules()


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Return the stem of a lower-case word; words of one or two characters stay as they are."""
    if len(word) <= 2:
        return word
    word = _apply("1a", word)
    stripped = _apply("1b", word)
    word = stripped if stripped == word or word.endswith("eed") else _mend(stripped)
    for step in ("1c", "2", "3", "4", "5a", "5b"):
        word = _apply(step, word)
    return word


def _apply(step: str, word: str) -> str:
    """Return the word after the rule of the step that has its longest ending."""
    rules = _STEPS[step]
    ending = max(filter(word.endswith, rules), key=len, default=None)
    if ending is None:
        return word
    condition, replacement = rules[ending]
    rest = word.removesuffix(ending)
    return rest + replacement if _CONDITIONS[condition](rest) else word


def _mend(word: str) -> str:
    """Return a word that lost "ed" or "ing": hop of "hopp", file of "fil"."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if word[-1:] == word[-2:-1] and _shape(word).endswith("c"):
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _short(word) else word

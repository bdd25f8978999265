"""The two actions of a shopper, `search[words]` and `click[button]`, read from text.

The profiles differ on purpose. "original" reads as the benchmark does: it ignores the text after
the last bracket, and the name includes every bracket but the last, so that `click[pack [2]]` means
nothing. "clean" reads the whole text, and brackets inside are plain text.
"""

from __future__ import annotations

import re

SEARCH = "search"
CLICK = "click"
# Stands for a search with any words in the list of admissible actions.
SEARCH_TEMPLATE = "search[<your query>]"

_CLEAN = re.compile(r"(search|click)\[(.*)\]", re.DOTALL)


def parse_original(action: str) -> tuple[str, str | None]:
    """Return (name, argument in lower case); without an argument, the whole text is the name."""
    line = action.partition("\n")[0]
    close = line.rfind("]")
    # The last opening bracket with something before it and something between it and the closing
    # one. Not a regular expression: on thousands of brackets its time grows with their square.
    start = line.rfind("[", 1, close - 1) if close > 0 else -1
    if start < 0:
        return action, None
    return line[:start], line[start + 1 : close].lower()


def parse_clean(action: str) -> tuple[str, str | None]:
    """Return (name, argument in lower case with single spaces); (text, None) for anything else."""
    found = _CLEAN.fullmatch(action.strip())
    if found is None:
        return action, None
    return found[1], plain(found[2])


def plain(text: str) -> str:
    """Return the text in lower case with single spaces, to compare labels."""
    return " ".join(text.lower().split())

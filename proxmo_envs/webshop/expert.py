"""An expert for WebShop that knows no more than it has read: a teacher, and an upper line.

It reads text observations (mode "text") and what can be clicked. It searches with the words of the
instruction, opens the results that seem to fit best, picks the options asked for, reads the tabs of
a product where words of the instruction are missing, and buys the best product it has seen before
the steps run out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

__all__ = ["ShopExpert"]

_SEPARATOR: Final = " [SEP] "
_BACK, _PREVIOUS, _BUY = "back to search", "< prev", "buy now"
_TABS: Final = ("features", "description")
_NAVIGATION: Final = frozenset(
    (_BACK, _PREVIOUS, _BUY, "next >", "search", "reviews", "attributes", *_TABS)
)
_PRICE_LIMIT: Final = re.compile(r",? and price lower than ([\d.]+) dollars")
_NUMBER: Final = re.compile(r"\$(\d+(?:\.\d+)?)")
_WORD: Final = re.compile(r"[a-z0-9]+(?:[.'][a-z0-9]+)*")
_CHOSEN: Final = re.compile(r"(.+) \(chosen: (.*)\)")
# Words of an instruction that say nothing about the product.
_FILLER: Final = frozenset(
    """a an the and or of for in on with to that is are be it its i im me my we you your can could
    would will please find get buy want need needs looking look shop order some any like which has
    have having am also should as at by from this those these one ones color colour size style
    price lower than dollars product item after sister asked pick time replace old""".split()
)
# How much of a wish a product must meet to be bought at once.
_GOOD_ENOUGH: Final = 0.999
# Steps of an episode, and products opened at most.
_STEPS: Final = 15


@dataclass(frozen=True, slots=True)
class _Page:
    """An observation, taken apart.

    Attributes:
        kind: "search", "results", "item", "detail" or "end".
        found: (asin, title, price tag) of the results.
        options: option name -> labels that can be clicked.
        chosen: option name -> value, where the page tells.
        title, price: of the product.
        text: everything on the page but its buttons.
    """

    kind: str
    instruction: str = ""
    found: tuple[tuple[str, str, str], ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    chosen: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    price: str = ""
    text: str = ""

"""An expert for WebShop that knows no more than it has read: a teacher, and an upper line.

It reads text observations and what can be clicked. It searches with the words of the instruction,
opens the results that seem to fit, looks which words a product leaves unmet (the tabs of a product
may hold them), and buys the best product it has seen before the steps run out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from webshop_server.search import analyse

__all__ = ["ShopExpert"]

_SEPARATOR: Final = " [SEP] "
_BACK, _PREVIOUS, _NEXT, _BUY = "back to search", "< prev", "next >", "buy now"
_TABS: Final = ("features", "description")
_BUTTONS: Final = frozenset(
    (_BACK, _PREVIOUS, _NEXT, _BUY, "search", "reviews", "attributes", *_TABS)
)
_LIMIT: Final = re.compile(r",? and price lower than ([\d.]+) dollars")
_NUMBER: Final = re.compile(r"\$(\d+(?:\.\d+)?)")
_CHOSEN: Final = re.compile(r"(.+) \(chosen: (.*)\)")
_WORD: Final = re.compile(r"[a-z0-9]+(?:[.'-][a-z0-9]+)*")
# Words of an instruction that say nothing about a product.
_FILLER: Final = frozenset(
    """a an the and or of for in on with to that is are be it its i i'm im me my we you your can
    could would will please find get buy pick want need needs looking look shop order like which
    has have having am also should as at by from this those these one ones some any after sister
    asked time replace old color colour size style""".split()
)
# A result further down must fit better by this to be opened first, per place.
_PLACE: Final = 0.04
_STEPS: Final = 15


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the instruction says: its text, its stems, the words to search with, the price limit."""

    text: str
    stems: frozenset[str]
    query: str
    limit: float


@dataclass(frozen=True, slots=True)
class _Page:
    """An observation, taken apart.

    Attributes:
        kind: "search", "results", "item", "detail" or "end".
        found: (asin, title, price tag) of the results.
        options: option name -> labels that can be clicked.
        chosen: option name -> value, where the page tells.
        title, price: of the product.
        text: of a tab.
    """

    kind: str
    found: tuple[tuple[str, str, str], ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    chosen: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    price: str = ""
    text: str = ""


@dataclass(slots=True)
class _Candidate:
    """A product of the results and what is known of it."""

    asin: str
    title: str
    price: str
    place: int
    opened: bool = False
    wanted: dict[str, str] = field(default_factory=dict)
    hopeless: bool = False
    read: dict[str, str] = field(default_factory=dict)
    fit: float = 0.0
    complete: bool = False


class ShopExpert:
    """Plays one episode at a time; deterministic.

    Call `act` before every step; the first call begins an episode, `reset` another one. What
    happened is read from the pages, so other actions than its own may be executed. Pages that do
    not tell which options are chosen (those of the original) are the exception: there it trusts its
    own clicks.
    """

    def __init__(self, steps: int = _STEPS) -> None:
        """Plan for episodes of `steps` steps."""
        self._limit = steps
        self._started = False

    def reset(self, observation: str) -> None:
        """Begin an episode with its first observation, which holds the instruction."""
        parts = observation.split(_SEPARATOR)
        place = next((i for i, part in enumerate(parts) if part.strip() == "Instruction:"), None)
        if place is None or place + 1 >= len(parts):
            raise ValueError(
                f"the expert found no instruction in {observation[:100]!r}; "
                "it expects a first observation of WebShop in the mode 'text'"
            )
        self._started = True
        self._wish = _read_wish(parts[place + 1])
        self._left = self._limit
        self._candidates: dict[str, _Candidate] = {}
        self._here: _Candidate | None = None
        self._clicked: dict[str, str] = {}
        self._tab = ""

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action, given the newest observation and info."""
        if not self._started:
            self.reset(observation)
        page = _read(observation, info["admissible_actions"])
        action = self._choose(page, info["admissible_actions"])
        self._left -= 1
        return action

    def _choose(self, page: _Page, admissible: Sequence[str]) -> str:
        if page.kind == "results":
            return self._compare(page, admissible)
        if page.kind == "item":
            return self._inspect(page)
        if page.kind == "detail":
            if self._here is not None and self._tab:
                self._here.read[self._tab] = page.text
                self._tab = ""
            return f"click[{_PREVIOUS}]"
        return f"search[{self._wish.query}]"

    def _compare(self, page: _Page, admissible: Sequence[str]) -> str:
        """Open the most promising result, or the best one again to buy it."""
        self._here, self._clicked = None, {}
        for asin, title, price in page.found:
            if asin not in self._candidates:
                place = len(self._candidates)
                new = _Candidate(asin, title, price, place)
                self._rate(new, {})
                self._candidates[asin] = new
        shown = [self._candidates[asin] for asin, _, _ in page.found]
        if not shown:
            return f"click[{_BACK}]"
        best = max(self._candidates.values(), key=lambda c: (c.opened, c.fit))
        fresh = [c for c in shown if not c.opened]
        # From here: open one, prove that it is no better, come back and buy the best one.
        spare = self._left - 4 - len(best.wanted)
        if fresh and (not best.opened or spare >= 0):
            first = max(fresh, key=lambda c: c.fit - _PLACE * c.place)
            if not best.opened or first.fit - _PLACE * first.place > -1:
                return self._open(first)
        if best in shown:
            return self._open(best)
        return f"click[{_PREVIOUS}]" if f"click[{_PREVIOUS}]" in admissible else self._open(shown[0])

    def _open(self, candidate: _Candidate) -> str:
        self._here = candidate
        return f"click[{candidate.asin.lower()}]"

    def _inspect(self, page: _Page) -> str:
        """Buy the product, read more about it, or leave it for another one."""
        here = self._identify(page)
        here.opened = True
        self._rate(here, page.options)
        best = max((c for c in self._candidates.values() if c.opened), key=lambda c: c.fit)
        finish = len(here.wanted) + 1
        if not here.complete:
            unread = next((tab for tab in _TABS if tab not in here.read), None)
            if unread and not here.hopeless and self._left >= finish + 2:
                self._tab = unread
                return f"click[{unread}]"
            untried = any(not c.opened for c in self._candidates.values())
            if untried and self._left >= finish + 4:
                return f"click[{_PREVIOUS}]"
            if best is not here and self._left >= len(best.wanted) + 3:
                return f"click[{_PREVIOUS}]"
        return self._finish(here, page)

    def _finish(self, here: _Candidate, page: _Page) -> str:
        """Choose the options that are not chosen yet, then buy."""
        for name, label in here.wanted.items():
            value = _value(name, label)
            if page.chosen.get(name, self._clicked.get(name)) != value and self._left > 1:
                self._clicked[name] = value
                return f"click[{label}]"
        return f"click[{_BUY}]"

    def _identify(self, page: _Page) -> _Candidate:
        """Return the product of an item page: the one just opened, if the page looks like it."""
        looks = (page.title, page.price)
        if self._here is None or (self._here.title, self._here.price) != looks:
            same = [c for c in self._candidates.values() if (c.title, c.price) == looks]
            fallback = _Candidate("", page.title, page.price, len(self._candidates))
            self._here = same[0] if same else self._candidates.setdefault("", fallback)
            self._clicked = {}
        return self._here

    def _rate(self, candidate: _Candidate, options: Mapping[str, Sequence[str]]) -> None:
        """Work out how much of the wish a product meets, as far as it is known."""
        wish = self._wish
        if options:
            candidate.wanted = {}
            for name, labels in options.items():
                label, sure = _wanted(name, tuple(labels), wish.text)
                if label is not None:
                    candidate.wanted[name] = label
                candidate.hopeless |= not sure
        told = [candidate.title, *candidate.wanted, *candidate.wanted.values()]
        met = wish.stems & _stems(" ".join([*told, *candidate.read.values()]))
        affordable = _affordable(candidate.price, wish.limit)
        candidate.complete = met == wish.stems and affordable == 1.0 and not candidate.hopeless
        candidate.fit = len(met) / max(1, len(wish.stems)) + affordable / 2 - candidate.hopeless / 4


def _read_wish(instruction: str) -> _Wish:
    limit = _LIMIT.search(instruction)
    text = _LIMIT.sub("", instruction).lower()
    words = [word for word in _WORD.findall(text) if word not in _FILLER]
    query = " ".join(words) or text
    return _Wish(text, _stems(query), query, float(limit[1]) if limit else float("inf"))


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    return frozenset(analyse(text))


def _read(observation: str, admissible: Sequence[str]) -> _Page:
    """Take a text observation apart with the help of what can be clicked."""
    labels = {action[6:-1] for action in admissible if action.startswith("click[")}
    parts = observation.split(_SEPARATOR)
    if parts[-1] == "Search":
        return _Page("search")
    if _BUY in labels:
        return _read_item(parts, labels)
    if any(part.startswith("Page ") and "(Total results: " in part for part in parts[:4]):
        return _Page("results", found=tuple(_read_results(parts[4:], labels - _BUTTONS)))
    if _PREVIOUS in labels:
        return _Page("detail", text=" ".join(parts[4:]))
    return _Page("end")


def _read_results(parts: Sequence[str], asins: set[str]) -> list[tuple[str, str, str]]:
    found: list[list[str]] = []
    for part in parts:
        if part.lower() in asins:
            found.append([part])
        elif found:
            found[-1].append(part)
    # A product without a title shows its id and price only.
    return [(one[0], _SEPARATOR.join(one[1:-1]), one[-1]) for one in found if len(one) > 1]


def _read_item(parts: Sequence[str], labels: set[str]) -> _Page:
    end = max(i for i, part in enumerate(parts) if part.startswith("Price: "))
    options: dict[str, list[str]] = {}
    chosen: dict[str, str] = {}
    name = ""
    for part in parts[4 : end - 1]:
        label = " ".join(part.lower().split())
        if label in labels and name:
            options[name].append(label)
            continue
        marked = _CHOSEN.fullmatch(part)
        name = marked[1] if marked else part
        options[name] = []
        if marked:
            chosen[name] = " ".join(marked[2].lower().split())
    return _Page(
        "item",
        options={name: tuple(values) for name, values in options.items()},
        chosen=chosen,
        title=parts[end - 1],
        price=parts[end].removeprefix("Price: "),
    )


def _value(name: str, label: str) -> str:
    """Return the value behind a label: itself, or what stands after "name: "."""
    return label.removeprefix(f"{name}: ")


@lru_cache(maxsize=4096)
def _wanted(name: str, labels: tuple[str, ...], wish: str) -> tuple[str | None, bool]:
    """Return the label that the wish asks for, if any, and False when none of them can be right."""
    pair = f"{name}: "
    if pair in wish:
        asked = wish[wish.index(pair) + len(pair) :]
        exact = [label for label in labels if asked.startswith(_value(name, label))]
        if exact:
            return max(exact, key=len), True
    best = max(labels, key=lambda label: _nearness(_value(name, label), wish), default=None)
    if best is None or _nearness(_value(name, best), wish) < (0.5, 0.0):
        return None, pair not in wish
    return best, pair not in wish


def _nearness(value: str, wish: str) -> tuple[float, float]:
    """Return the share of the words of a value that the wish has, and how many letters those are."""
    words = _WORD.findall(value)
    if re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.]*\w)", wish):
        return 2.0, len(value)
    wished = set(_WORD.findall(wish))
    met = [word for word in words if word in wished and word not in _FILLER]
    return len(met) / max(1, len(words)), sum(map(len, met))


def _affordable(price: str, limit: float) -> float:
    """Return the chance that a product of this price tag costs no more than `limit`."""
    numbers = sorted(float(number) for number in _NUMBER.findall(price)) or [0.0]
    low, high = numbers[0], numbers[-1]
    if high <= limit:
        return 1.0
    return 0.0 if low > limit else (limit - low) / (high - low)

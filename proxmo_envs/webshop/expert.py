"""An expert for WebShop that knows only the pages it has read; a teacher and an upper bound.

It reads text observations and admissible actions. It searches with the words of the instruction,
opens the results that seem to fit, looks which words a product leaves unmet (the tabs of a product
may hold them), and buys the best product it has seen before the steps run out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from webshop_server.data.tables import read_words
from webshop_server.rules.actions import plain
from webshop_server.rules.matching import COLOR_WORDS
from webshop_server.search import analyse

__all__ = ["ShopExpert"]

_SEPARATOR: Final = " [SEP] "
_BACK, _PREVIOUS, _BUY = "back to search", "< prev", "buy now"
# The tab worth two steps: features name more of the wished attributes than the description.
_TAB: Final = "features"
_BUTTONS: Final = frozenset(
    (_BACK, _PREVIOUS, _BUY, "next >", "search", "reviews", "attributes", "description", _TAB)
)
_LIMIT: Final = re.compile(r",? and price lower than ([\d.]+) dollars")
_PAIR: Final = re.compile(r"(?: with|, and) [^,:]+: ")
_NUMBER: Final = re.compile(r"\$(\d+(?:\.\d+)?)")
_CHOSEN: Final = re.compile(r"(.+) \(chosen: (.*)\)")
_WORD: Final = re.compile(r"\w+(?:[.'-]\w+)*")
_FILLER: Final = frozenset(read_words(Path(__file__).with_name("filler_words.txt")))
# For each place further down, a result must fit this much better to be opened first.
_PLACE: Final = 0.04
_STEPS: Final = 15
_SIZES: Final = ("small", "medium", "large", "x-large", "xx-large")


@dataclass(frozen=True, slots=True)
class _Wish:
    """The instruction, taken apart.

    Attributes:
        text: in lower case, without the price limit.
        stems: stems of the words that describe the product.
        query: the words to search with.
        pairs: number of options named as "name: value".
        choices: stems that must be values of options: colours, sizes, numbers.
        limit: the price limit.
    """

    text: str
    stems: frozenset[str]
    query: str
    pairs: int
    choices: frozenset[str]
    limit: float


@dataclass(frozen=True, slots=True)
class _Page:
    """An observation, taken apart.

    Attributes:
        kind: "search", "results", "item", "detail" or "end".
        found: (asin, title, price tag) of the results.
        options: option name -> labels that can be clicked.
        chosen: option name -> value, if the page shows it.
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
    """A product of the results, as far as the expert has read about it."""

    asin: str
    title: str
    price: str
    place: int
    opened: bool = False
    wanted: dict[str, str] = field(default_factory=dict)
    # Number of options in the wish that this product does not offer.
    missing: int = 0
    # The texts of its tabs that the expert has read.
    read: str | None = None
    fit: float = 0.0
    complete: bool = False

    @property
    def steps_to_buy(self) -> int:
        """Steps from its page: one for each option, and the purchase."""
        return len(self.wanted) + 1


class ShopExpert:
    """Plays one episode at a time; deterministic.

    Call `act` before every step; the first call begins an episode, `reset` another one. What
    happened is read from the pages, so other actions than its own may be executed. Only where pages
    do not show the chosen options (those of the original) does it trust its own clicks.
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
            if self._here is not None:
                self._here.read = f"{self._here.read or ''} {page.text}"
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
        fresh = [c for c in shown if not c.opened]
        best = self._best()
        # From here: open one, find it no better, come back, buy the best one.
        if fresh and (best is None or self._left >= 3 + best.steps_to_buy):
            return self._open(max(fresh, key=lambda c: c.fit - _PLACE * c.place))
        if best is not None and best not in shown and f"click[{_PREVIOUS}]" in admissible:
            return f"click[{_PREVIOUS}]"
        return self._open(best or shown[0]) if best in shown or shown else f"click[{_BACK}]"

    def _best(self) -> _Candidate | None:
        """Return the best product among those that were opened."""
        opened = [c for c in self._candidates.values() if c.opened]
        return max(opened, key=lambda c: c.fit, default=None)

    def _open(self, candidate: _Candidate) -> str:
        self._here = candidate
        return f"click[{candidate.asin.lower()}]"

    def _inspect(self, page: _Page) -> str:
        """Buy the product, read more about it, or leave it for another one."""
        here = self._identify(page)
        here.opened = True
        self._rate(here, page.options)
        best = self._best() or here
        # The steps left for other products before the best one has to be bought.
        spare = self._left - best.steps_to_buy - (0 if best is here else 2)
        if here.complete:
            return self._finish(here, page)
        if here.read is None and not here.missing and spare >= 2:
            return f"click[{_TAB}]"
        untried = any(not c.opened for c in self._candidates.values())
        if (untried and spare >= 4) or (best is not here and spare >= 0):
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
        """Rate how much of the wish a product meets, from the texts read so far."""
        wish = self._wish
        if options:
            found = {name: _wanted(name, tuple(v), wish.text) for name, v in options.items()}
            candidate.wanted = {name: label for name, label in found.items() if label}
            met = sum(
                f"{name}: {_value(name, v)}" in wish.text for name, v in candidate.wanted.items()
            )
            candidate.missing = wish.pairs - met
            offers = " ".join([candidate.title, *candidate.wanted.values()])
            if not wish.pairs:
                candidate.missing = len(wish.choices - _stems(offers))
        texts = [candidate.title, *candidate.wanted, *candidate.wanted.values()]
        stems = wish.stems & _stems(" ".join([*texts, candidate.read or ""]))
        affordable = _affordable(candidate.price, wish.limit)
        candidate.complete = stems == wish.stems and affordable == 1.0 and candidate.missing == 0
        candidate.fit = (
            len(stems) / max(1, len(wish.stems)) + affordable / 2 - candidate.missing / 2
        )


def _read_wish(instruction: str) -> _Wish:
    limit = _LIMIT.search(instruction)
    text = _LIMIT.sub("", instruction).lower()
    # Options first, as in "red soft shirt": the words to click later are the first to type, which
    # makes the expert easier to imitate.
    first_pair = _PAIR.search(text)
    end = first_pair.start() if first_pair else len(text)
    words = _WORD.findall(f"{text[end:]} {text[:end]}")
    query = " ".join(word for word in words if word not in _FILLER) or text
    most = float(limit[1]) if limit else float("inf")
    stems = _stems(query)
    numbers = {stem for stem in stems if any(map(str.isdigit, stem))}
    choices = stems & (numbers | _stems(" ".join((*COLOR_WORDS, *_SIZES))))
    return _Wish(text, stems, query, len(_PAIR.findall(text)), choices, most)


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    return frozenset(analyse(text))


def _read(observation: str, admissible: Sequence[str]) -> _Page:
    """Take a text observation apart with the help of the admissible actions."""
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
        label = plain(part)
        if label in labels and name:
            options[name].append(label)
            continue
        marked = _CHOSEN.fullmatch(part)
        name = marked[1] if marked else part
        options[name] = []
        if marked:
            chosen[name] = plain(marked[2])
    return _Page(
        "item",
        options={name: tuple(values) for name, values in options.items()},
        chosen=chosen,
        title=parts[end - 1],
        price=parts[end].removeprefix("Price: "),
    )


def _value(name: str, label: str) -> str:
    """Return the value of a label, which is the label without "name: "."""
    return label.removeprefix(f"{name}: ")


@lru_cache(maxsize=4096)
def _wanted(name: str, labels: tuple[str, ...], wish: str) -> str | None:
    """Return the label that the wish asks for, if any."""
    asked = wish.partition(f"{name}: ")[2]
    exact = [label for label in labels if asked and asked.startswith(_value(name, label))]
    if exact:
        return max(exact, key=len)
    best = max(labels, key=lambda label: _nearness(_value(name, label), wish), default="")
    return best if _nearness(_value(name, best), wish) >= (0.5, 0.0) else None


def _nearness(value: str, wish: str) -> tuple[float, float]:
    """Return the share of a value's words that the wish has, and how many letters those have."""
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

"""A page as data: its texts and buttons in document order.

Text observations, the list of possible clicks and the HTML are all made from it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeVar

from webshop_server.data.products import Product
from webshop_server.rules.actions import plain
from webshop_server.rules.records import Profile

T = TypeVar("T")
PER_PAGE = 10
TABS = ("Description", "Features", "Reviews")
ATTRIBUTES = "Attributes"
_BACK, _PREVIOUS, _NEXT, _BUY = "Back to Search", "< Prev", "Next >", "Buy Now"
_BUTTONS = frozenset(map(plain, (_BACK, _PREVIOUS, _NEXT, _BUY, "Search", ATTRIBUTES, *TABS)))
_SCORE = "Your score (min 0.0, max 1.0)"


class PageKind(str, Enum):
    """The kinds of pages; each value is a word in the address of such a page."""

    SEARCH = ""
    RESULTS = "search_results"
    ITEM = "item_page"
    DETAIL = "item_sub_page"
    DONE = "done"


class Move(str, Enum):
    """The effect of a click."""

    SEARCH = "search"
    HOME = "home"
    PREVIOUS = "previous"
    NEXT = "next"
    TAB = "tab"
    BUY = "buy"
    PRODUCT = "product"
    OPTION = "option"


class Target(NamedTuple):
    """The target of a click: `value` is a tab, an asin or an option's value, `option` its name."""

    move: Move
    value: str = ""
    option: str = ""


class Part(NamedTuple):
    """One text of a page; with a target it can be clicked."""

    text: str
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """One page as one shopper sees it.

    Attributes:
        kind: the kind of page.
        session_id: the shopper's.
        instruction: the task in words.
        profile: "original" or "clean".
        keywords: the words searched for.
        number: of the page of results, from 1.
        total: number of results.
        products: those on this page of results.
        product: the one of an item page, of its details and of the purchase.
        tab: name of the details shown.
        options: option name -> value chosen so far.
        visited: asins of the products opened so far.
        score: of the purchase.
        show_attributes: whether products have the tab "Attributes".
    """

    kind: PageKind
    session_id: str
    instruction: str
    profile: Profile
    keywords: tuple[str, ...] = ()
    number: int = 0
    total: int = 0
    products: tuple[Product, ...] = ()
    product: Product | None = None
    tab: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    visited: frozenset[str] = frozenset()
    score: float | None = None
    show_attributes: bool = False

    @property
    def has_search_bar(self) -> bool:
        """Whether the page offers a search."""
        return self.kind is PageKind.SEARCH

    @property
    def bought(self) -> Product:
        """The product the page is about; only pages of a product have one."""
        assert self.product is not None
        return self.product

    @property
    def tabs(self) -> tuple[str, ...]:
        """Names of the details a product has."""
        return (*TABS, ATTRIBUTES) if self.show_attributes else TABS

    @property
    def has_next(self) -> bool:
        """Whether there is a next page of results; the original offers one without end."""
        return self.profile == "original" or self.number * PER_PAGE < self.total


def on_page(found: Sequence[T], number: int) -> list[T]:
    """Return the results on page `number`; pages below 1 of the original are slices, too."""
    return list(found[(number - 1) * PER_PAGE : number * PER_PAGE])


def parts(page: Page) -> list[Part]:
    """Return the texts and buttons of a page in document order."""
    if page.kind is PageKind.DONE:
        return list(_DONE[page.profile](page))
    if page.kind is PageKind.SEARCH:
        search = Part("Search", Target(Move.SEARCH))
        return [Part("WebShop"), Part("Instruction: "), Part(page.instruction), search]
    head = [Part("Instruction:"), Part(page.instruction), Part(_BACK, Target(Move.HOME))]
    return head + list(_BODIES[page.kind](page))


def _results(page: Page) -> Iterator[Part]:
    yield Part(f"Page {page.number} (Total results: {page.total})")
    if page.number > 1:
        yield Part(_PREVIOUS, Target(Move.PREVIOUS))
    if page.has_next:
        yield Part(_NEXT, Target(Move.NEXT))
    for product in page.products:
        yield Part(product.asin, Target(Move.PRODUCT, product.asin))
        yield Part(product.title)
        yield Part(product.price_tag)


def _item(page: Page) -> Iterator[Part]:
    product = page.bought
    yield Part(_PREVIOUS, Target(Move.PREVIOUS))
    for name, labels in option_labels(page).items():
        yield Part(option_heading(page, name))
        for value, label in labels:
            yield Part(label, Target(Move.OPTION, value, name))
    yield Part(product.title)
    yield Part(f"Price: {product.price_tag}")
    yield Part("Rating: N.A.")
    for tab in page.tabs:
        yield Part(tab, Target(Move.TAB, tab))
    yield Part(_BUY, Target(Move.BUY))


def option_heading(page: Page, name: str) -> str:
    """Return the heading of an option; in "clean" it names the chosen value."""
    chosen = page.options.get(name)
    if page.profile == "original" or chosen is None:
        return name
    return f"{name} (chosen: {chosen})"


def option_labels(page: Page) -> dict[str, list[tuple[str, str]]]:
    """Return for each option its (value, label) pairs.

    In "clean" every label can be clicked: a value that two options share, or that is called like a
    button, is labelled "name: value".
    """
    options = page.bought.options
    if page.profile == "original":
        return {name: [(value, value) for value in values] for name, values in options.items()}
    uses = Counter(plain(value) for values in options.values() for value in values)

    def label(name: str, value: str) -> str:
        short = plain(value)
        return short if uses[short] == 1 and short not in _BUTTONS else plain(f"{name}: {value}")

    return {name: [(v, label(name, v)) for v in values] for name, values in options.items()}


def details(page: Page) -> list[str]:
    """Return the texts of a tab of a product; there are no reviews."""
    product = page.bought
    if page.tab == "Description":
        return [product.description]
    if page.tab == "Features":
        return [f" {bullet}" for bullet in product.bullets]
    if page.tab == ATTRIBUTES:
        named = [f" {attribute}" for attribute in product.attributes]
        return [*named, product.category, product.query, product.product_category]
    return []


def _details(page: Page) -> Iterator[Part]:
    yield Part(_PREVIOUS, Target(Move.PREVIOUS))
    yield from map(Part, details(page))


def purchase_json(page: Page) -> str:
    """Return the chosen options as the original prints them: JSON that is safe inside HTML."""
    written = json.dumps(dict(page.options), sort_keys=True)
    for mark in "<>&'":
        written = written.replace(mark, f"\\u{ord(mark):04x}")
    return written


def _done_original(page: Page) -> Iterator[Part]:
    bought = ("asin", page.bought.asin, "options", purchase_json(page), "attrs", "None")
    unknown = ("category", "None", "query", "None", "product category", "None")
    target = ("asin", "options", "attrs", "price upper", "instuction text", "category")
    yield from map(Part, ("Thank you for shopping with us!", "Your code: ", "None"))
    yield from map(Part, (" (Paste it in your MTurk interface.)", "Purchased", *bought, *unknown))
    yield from map(Part, ("Target", *target, "product category", "query", "Goal ", "None"))
    yield from map(Part, ("Reward", _SCORE, str(page.score), "Reward Details ", "None"))


def _done_clean(page: Page) -> Iterator[Part]:
    chosen = (f"{name}: {value}" for name, value in page.options.items())
    yield from map(Part, ("Thank you for shopping with us!", "Purchased", page.bought.asin))
    yield from map(Part, (page.bought.title, *chosen, _SCORE, str(page.score)))


_BODIES = {PageKind.RESULTS: _results, PageKind.ITEM: _item, PageKind.DETAIL: _details}
_DONE = {"original": _done_original, "clean": _done_clean}


def clickables(page: Page) -> dict[str, Target]:
    """Return all possible clicks by label in lower case: buttons, then products, then options.

    As in the original, an option called like a button is the button, a value of two options belongs
    to the later one, and the list holds "search", which does nothing; "clean" has none of these.
    The original goes by the name alone: "attributes" is the tab even where the page shows none.
    """
    found: tuple[dict[str, Target], ...] = ({}, {}, {})
    for label, target in parts(page):
        if target is not None and (target.move is not Move.SEARCH or page.profile == "original"):
            found[_ORDER.get(target.move, 0)][label.lower()] = target
    buttons, products, options = found
    if page.profile == "original" and ATTRIBUTES.lower() in options:
        options[ATTRIBUTES.lower()] = Target(Move.TAB, ATTRIBUTES)
    # Merging the buttons again gives them back their names; every name keeps its place.
    return buttons | products | options | buttons


_ORDER = {Move.PRODUCT: 1, Move.OPTION: 2}

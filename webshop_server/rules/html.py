"""A page as HTML: our own markup, with the elements, ids and classes that clients look for.

Texts are the same, in the same order, as in the text observations. Addresses name the session and
the move only; the shop one can visit with a browser is in `webshop_server.app`.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from urllib.parse import urlencode

from webshop_server.data.tables import read_table
from webshop_server.rules.pages import (
    ATTRIBUTES,
    Move,
    Page,
    PageKind,
    details,
    option_heading,
    option_labels,
    parts,
    purchase_json,
)

_MARKUP = read_table(Path(__file__).with_name("markup.toml"))
# The names of the elements around the button and around the text of each tab.
_TAB_NAMES = {
    "Description": "description",
    "Features": "bulletpoints",
    "Reviews": "reviews",
    ATTRIBUTES: "attributes",
}


def html(page: Page) -> str:
    """Return the whole document."""
    elements = _BODIES[page.kind](page)
    if page.kind is not PageKind.DONE:
        kind = "first_instruction" if page.kind is PageKind.SEARCH else "instruction"
        elements = [_element(kind, goal=page.instruction), *elements]
    return _element("document", elements, kind=page.kind.name.lower())


def _element(name: str, inner: Iterable[str] = (), /, **texts: object) -> str:
    """Return an element of markup.toml with escaped texts and the elements inside it."""
    escaped = {key: escape(str(text)) for key, text in texts.items()}
    return str(_MARKUP[name]).format(inner="\n".join(inner), **escaped)


def _address(page: Page, **move: str) -> str:
    return "/?" + urlencode({"session_id": page.session_id, **move}, errors="surrogatepass")


def _button(page: Page, label: str, kind: str, **move: str) -> str:
    return _element("button", address=_address(page, **move), kind=kind, label=label)


def _moves(page: Page) -> Iterable[str]:
    """Yield the page's buttons that lead to other pages."""
    for label, target in parts(page):
        if target is not None and target.move in (Move.HOME, Move.PREVIOUS, Move.NEXT):
            kind = "btn-success" if target.move is Move.HOME else "btn-primary"
            yield _button(page, label, kind, move=target.move.value)


def _search(page: Page) -> list[str]:
    return [_element("search", address=_address(page))]


def _results(page: Page) -> list[str]:
    back, *others = _moves(page)
    found = [
        _element(
            "result",
            image=product.image,
            address=_address(page, move="product", asin=product.asin),
            asin=product.asin,
            title=product.title,
            price=product.price_tag,
        )
        for product in page.products
    ]
    return [back, _element("results", number=page.number, total=page.total), *others, *found]


def _item(page: Page) -> list[str]:
    product = page.bought
    options = [
        _element(
            "option",
            ["".join(_radio(page, name, place, *pair) for place, pair in enumerate(pairs))],
            heading=option_heading(page, name),
        )
        for name, pairs in option_labels(page).items()
    ]
    tabs = [
        _element(
            "tab", [_button(page, tab, "btn-primary", move="tab", tab=tab)], name=_TAB_NAMES[tab]
        )
        for tab in page.tabs
    ]
    return [
        *_moves(page),
        _element("image", image=product.image),
        *options,
        _element("product", title=product.title, price=product.price_tag),
        *tabs,
        _button(page, "Buy Now", "purchase", move="buy"),
    ]


def _radio(page: Page, name: str, place: int, value: str, label: str) -> str:
    return _element(
        "radio",
        id=f"radio_{name}{place}",
        name=name,
        label=label,
        address=_address(page, move="option", option=name, value=value),
        checked=" checked" if page.options.get(name) == value else "",
    )


def _details(page: Page) -> list[str]:
    texts = details(page)
    if page.tab == ATTRIBUTES:
        *attributes, category, query, path = texts
        bullets = [_element("attribute", text=text) for text in attributes]
        categories = _element("categories", category=category, query=query, path=path)
        shown = [_element("list", bullets), categories]
    elif page.tab == "Features":
        shown = [_element("list", [_element("feature", text=text) for text in texts])]
    else:
        shown = [_element("paragraph", text=text) for text in texts]
    return [*_moves(page), _element("details", shown, name=_TAB_NAMES[page.tab])]


def _done(page: Page) -> list[str]:
    if page.profile == "original":
        bought = {"asin": page.bought.asin, "options": purchase_json(page), "score": page.score}
        return [_element("done_original", **bought)]
    _, heading, asin, *described, score_label, score = (part.text for part in parts(page))
    lines = [_element("bought", text=text) for text in described]
    texts = {"heading": heading, "asin": asin, "score_label": score_label, "score": score}
    return [_element("done_clean", lines, **texts)]


_BODIES = {
    PageKind.SEARCH: _search,
    PageKind.RESULTS: _results,
    PageKind.ITEM: _item,
    PageKind.DETAIL: _details,
    PageKind.DONE: _done,
}

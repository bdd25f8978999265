"""A page as HTML: our own markup, with the elements, ids and classes that clients look for.

Texts are the same, in the same order, as in the text observations. Addresses name the session and
the move only; the shop one can visit with a browser is in `webshop_server.app`.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from urllib.parse import urlencode

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

# The names of the elements around the button and around the text of each tab.
_TAB_NAMES = {
    "Description": "description",
    "Features": "bulletpoints",
    "Reviews": "reviews",
    ATTRIBUTES: "attributes",
}


def html(page: Page) -> str:
    """Return the whole document."""
    body = _BODIES[page.kind](page)
    if page.kind is not PageKind.DONE:
        body = [_instruction(page), *body]
    lines = "\n".join(body)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>WebShop</title>'
        f'</head>\n<body class="{page.kind.name.lower()}">\n{lines}\n</body>\n</html>\n'
    )


def _instruction(page: Page) -> str:
    logo = '<div id="logo"><h2>WebShop</h2></div>\n' if page.kind is PageKind.SEARCH else ""
    label = "Instruction: " if page.kind is PageKind.SEARCH else "Instruction:"
    goal = escape(page.instruction)
    return f'{logo}<div id="instruction-text"><h4>{label}<br>{goal}</h4></div>'


def _address(page: Page, **move: str) -> str:
    return escape("/?" + urlencode({"session_id": page.session_id, **move}, errors="surrogatepass"))


def _button(page: Page, label: str, kind: str, **move: str) -> str:
    return (
        f'<form method="post" action="{_address(page, **move)}">'
        f'<button type="submit" class="btn {kind}">{escape(label)}</button></form>'
    )


def _moves(page: Page) -> Iterable[str]:
    """Yield the page's buttons that lead to other pages."""
    for label, target in parts(page):
        if target is not None and target.move in (Move.HOME, Move.PREVIOUS, Move.NEXT):
            kind = "btn-success" if target.move is Move.HOME else "btn-primary"
            yield _button(page, label, kind, move=target.move.value)


def _search(page: Page) -> list[str]:
    return [
        f'<form role="form" id="form-buscar" method="post" action="{_address(page)}">',
        '<input id="search_input" type="text" name="search_query" required>',
        '<button class="btn btn-success" type="submit">Search</button>',
        "</form>",
    ]


def _results(page: Page) -> list[str]:
    back, *others = _moves(page)
    lines = [back, f"<h3>Page {page.number} (Total results: {page.total})</h3>", *others]
    for product in page.products:
        address = _address(page, move="product", asin=product.asin)
        lines += [
            '<div class="list-group-item searched-product">',
            f'<img src="{escape(product.image)}" class="result-img" alt="">',
            '<h4 class="product-asin">'
            f'<a class="product-link" href="{address}">{escape(product.asin)}</a></h4>',
            f'<h4 class="product-title">{escape(product.title)}</h4>',
            f'<h5 class="product-price">{escape(product.price_tag)}</h5>',
            "</div>",
        ]
    return lines


def _item(page: Page) -> list[str]:
    product = page.bought
    image = f'<img id="product-image" src="{escape(product.image)}" alt="">'
    lines = [*_moves(page), image]
    for name, labels in option_labels(page).items():
        lines += [f"<h4>{escape(option_heading(page, name))}</h4>", '<div class="radio-toolbar">']
        for place, (value, label) in enumerate(labels):
            lines.append(_radio(page, name, value, label, f"radio_{name}{place}"))
        lines.append("</div>")
    lines += [
        f"<h2>{escape(product.title)}</h2>",
        f"<h4>Price: {escape(product.price_tag)}</h4>",
        "<h4>Rating: N.A.</h4>",
    ]
    for tab in page.tabs:
        button = _button(page, tab, "btn-primary", move="tab", tab=tab)
        lines.append(f'<div name="{_TAB_NAMES[tab]}">{button}</div>')
    return [*lines, _button(page, "Buy Now", "purchase", move="buy")]


def _radio(page: Page, name: str, value: str, label: str, element: str) -> str:
    address = _address(page, move="option", option=name, value=value)
    checked = " checked" if page.options.get(name) == value else ""
    return (
        f'<input type="radio" id="{escape(element)}" name="{escape(name)}" value="{escape(label)}"'
        f' data-url="{address}"{checked}><label for="{escape(element)}">{escape(label)}</label>'
    )


def _details(page: Page) -> list[str]:
    texts = [escape(text) for text in details(page)]
    if page.tab == ATTRIBUTES:
        *attributes, category, query, path = texts
        shown = (
            f'{_bullets("attribute", attributes)}\n<h5 class="product-category">{category}</h5>\n'
            f'<h5 class="product-query">{query}</h5>\n'
            f'<h5 class="product-product_category">{path}</h5>'
        )
    elif page.tab == "Features":
        shown = _bullets("product-info", texts)
    else:
        shown = "\n".join(f'<p class="product-info">{text}</p>' for text in texts)
    return [*_moves(page), f'<div name="{_TAB_NAMES[page.tab]}">\n{shown}\n</div>']


def _bullets(kind: str, texts: list[str]) -> str:
    items = "\n".join(f'<li><p class="{kind}">{text}</p></li>' for text in texts)
    return f"<ul>\n{items}\n</ul>"


def _done(page: Page) -> list[str]:
    thanks = '<div id="thankyou"><h1>Thank you for shopping with us!</h1></div>'
    if page.profile == "original":
        asin, options = escape(page.bought.asin), escape(purchase_json(page))
        return [thanks, _DONE_ORIGINAL.format(asin=asin, options=options, score=page.score)]
    _, heading, asin, *described, score_label, score = (escape(part.text) for part in parts(page))
    lines = "\n".join(f"<p>{text}</p>" for text in described)
    return [
        thanks,
        f'<div id="stats">\n<h2>{heading}</h2>\n<pre id="asin">{asin}</pre>\n{lines}',
        f'<h3 id="reward">{score_label}<pre>{score}</pre></h3>\n</div>',
    ]


_DONE_ORIGINAL = Path(__file__).with_name("done_original.html").read_text(encoding="utf-8").rstrip()
_BODIES = {
    PageKind.SEARCH: _search,
    PageKind.RESULTS: _results,
    PageKind.ITEM: _item,
    PageKind.DETAIL: _details,
    PageKind.DONE: _done,
}

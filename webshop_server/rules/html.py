"""A page as HTML: our own markup, with the elements, ids and classes that clients look for.

Texts are the same, in the same order, as in the text observations. Addresses name the session and
the move only; the shop one can visit with a browser is in `webshop_server.app`.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
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

# Which name the element around a tab's button and around its text has.
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
    """Return the buttons that lead from page to page, as far as the page has them."""
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
        *attributes, category, query, product_category = texts
        named = "\n".join(f'<li><p class="attribute">{text}</p></li>' for text in attributes)
        shown = (
            f'<ul>\n{named}\n</ul>\n<h5 class="product-category">{category}</h5>\n'
            f'<h5 class="product-query">{query}</h5>\n'
            f'<h5 class="product-product_category">{product_category}</h5>'
        )
    elif page.tab == "Features":
        bullets = "\n".join(f'<li><p class="product-info">{text}</p></li>' for text in texts)
        shown = f"<ul>\n{bullets}\n</ul>"
    else:
        shown = "\n".join(f'<p class="product-info">{text}</p>' for text in texts)
    return [*_moves(page), f'<div name="{_TAB_NAMES[page.tab]}">\n{shown}\n</div>']


def _done(page: Page) -> list[str]:
    thanks = '<div id="thankyou"><h1>Thank you for shopping with us!</h1></div>'
    texts = [escape(part.text) for part in parts(page)]
    if page.profile == "clean":
        _, heading, asin, *described, score_label, score = texts
        lines = "\n".join(f"<p>{text}</p>" for text in described)
        return [
            thanks,
            f'<div id="stats">\n<h2>{heading}</h2>\n<pre id="asin">{asin}</pre>\n{lines}',
            f'<h3 id="reward">{score_label}<pre>{score}</pre></h3>\n</div>',
        ]
    bought = {
        "asin": ("asin", escape(page.bought.asin)),
        "options": ("options", escape(purchase_json(page))),
        "purchased_attrs": ("attrs", "None"),
        "purchased-category": ("category", "None"),
        "purchased-query": ("query", "None"),
        "purchased-pc": ("product category", "None"),
    }
    goal = {
        "goal-asin": ("asin", ""),
        "goal-options": ("options", ""),
        "goal-attrs": ("attrs", ""),
        "goal-price": ("price upper", ""),
        "goal-instruction-text": ("instuction text", ""),
        "goal-category": ("category", ""),
        "goal-pc": ("product category", ""),
        "goal-query": ("query", ""),
    }
    return [
        thanks,
        '<div id="stats">\n<h3>Your code: </h3>\n<pre>None</pre> (Paste it in your MTurk '
        'interface.)<div style="display:none">\n<h2>Purchased</h2>',
        *_labelled(bought),
        "<h2>Target</h2>",
        *_labelled(goal),
        '<h4>Goal <div id="goal"><pre>None</pre></div></h4>\n<h2>Reward</h2>\n</div>',
        f'<h3 id="reward">Your score (min 0.0, max 1.0)<pre>{page.score}</pre></h3>',
        '<h4 hidden>Reward Details <div id="reward_info"><pre>None</pre></div></h4>\n</div>',
    ]


def _labelled(rows: dict[str, tuple[str, str]]) -> list[str]:
    return [
        f'<h4 id="{element}">{label}<pre>{value}</pre></h4>'
        for element, (label, value) in rows.items()
    ]


_BODIES = {
    PageKind.SEARCH: _search,
    PageKind.RESULTS: _results,
    PageKind.ITEM: _item,
    PageKind.DETAIL: _details,
    PageKind.DONE: _done,
}

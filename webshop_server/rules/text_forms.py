"""A page as text, for a language model to read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from webshop_server.rules.html import html
from webshop_server.rules.pages import Move, Page, PageKind, Part, Target, parts

SEPARATOR = " [SEP] "
MODES = ("text", "text_rich", "url", "html")
# The address that the recordings of the original hold.
BASE = "http://127.0.0.1:3000"
_BLANKS = " \n\t\f\r"


def observe(page: Page, mode: str, base: str = BASE) -> str:
    """Return a page in one of the four modes."""
    if mode == "text":
        return text(page)
    if mode == "text_rich":
        return text_rich(page, base)
    return url(page, base) if mode == "url" else html(page)


def text(page: Page) -> str:
    """Return all texts of a page, one after the other."""
    return SEPARATOR.join(node.strip() for node, _ in _nodes(page))


def text_rich(page: Page, base: str = BASE) -> str:
    """Return one line for each text; marks buttons, and lists chosen options on top."""
    address = url(page, base)
    lines: list[str] = []
    for node, target in _nodes(page):
        if target is None:
            lines.append(f"{node}\n")
            continue
        clicked = _was_clicked(page, target, address)
        if clicked and target.move is Move.OPTION:
            lines.insert(0, f"You have clicked {node}.\n")
        mark = "clicked button" if clicked else "button"
        indent = {Move.PRODUCT: "\n", Move.OPTION: "  "}.get(target.move, "")
        lines.append(f"{indent}[{mark}] {node} [{mark}_]\n")
    return "".join(lines)


def url(page: Page, base: str = BASE) -> str:
    """Return the address of a page in the original's form; nothing in it is escaped."""
    words = "+".join(page.keywords)
    where = f"{page.kind.value}/{page.session_id}"
    if page.kind is PageKind.SEARCH:
        return f"{base}/{page.session_id}"
    if page.kind is PageKind.RESULTS:
        return f"{base}/{where}/{words}/{page.number}"
    item = f"{base}/{where}/{page.bought.asin}"
    if page.kind is PageKind.ITEM:
        return f"{item}/{words}/{page.number}/{json.dumps(dict(page.options))}"
    if page.kind is PageKind.DETAIL:
        return f"{item}/{words}/{page.number}/{page.tab}/{dict(page.options)}"
    return f"{item}/{dict(page.options)}"


def with_history(current: str, observations: Sequence[str], actions: Sequence[str]) -> str:
    """Return the observation with earlier observations and actions before it, oldest first."""
    pairs = zip_longest(reversed(observations), reversed(actions))
    newest_first: Iterable[str | None] = (
        text for observation, action in pairs for text in (action, observation)
    )
    earlier = [text for text in newest_first if text is not None]
    return SEPARATOR.join([*reversed(earlier), current])


def _was_clicked(page: Page, target: Target, address: str) -> bool:
    if target.move is Move.PRODUCT:
        return target.value in page.visited
    if target.move is not Move.OPTION:
        return False
    if page.profile == "original":
        # The original looks for the quoted value anywhere in the address, the query included.
        return f'"{target.value}"' in address
    return page.options.get(target.option) == target.value


def _nodes(page: Page) -> list[Part]:
    """Return the texts of the page as an HTML parser finds them.

    The parser of the original reduces blank text to one line break, which it skips, or to one
    space, which counts as an (empty) text. "clean" leaves out all blank texts.
    """
    if page.profile == "clean":
        return [part for part in parts(page) if part.text.strip()]
    found = []
    for part in parts(page):
        if part.text.strip(_BLANKS):
            found.append(part)
        elif part.text and "\n" not in part.text:
            found.append(Part(" ", part.target))
    return found

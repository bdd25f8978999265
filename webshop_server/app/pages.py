"""The pages for people: a start page with tasks, then one address for each session.

Every move is a form that posts the action an agent would write, so people and agents play the same
game; the answer leads to the page the shopper is on now. A form names the step it belongs to. From
a page left behind (by the browser's back button) one can search, and open a product that is at most
a few pages back: the shop takes the way back first. All else from there, such as a second click on
"Buy", changes nothing and is explained. The pages need no script and load nothing from elsewhere;
elements have the ids and classes that clients of the original look for.
"""

from __future__ import annotations

import zlib
from typing import Any

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from webshop_server.app.desk import Desk
from webshop_server.app.errors import RequestError
from webshop_server.data.products import Product
from webshop_server.rules.pages import ATTRIBUTES, Move, PageKind, details, option_labels
from webshop_server.session import Session

_SAMPLES = 6
_LARGEST_STEP = 9
_LEFT_BEHIND = (
    "That page is no longer open: the shop does not go back with the browser. You are here now."
)
_BACK, _PREVIOUS = "click[back to search]", "click[< prev]"
# From a product's details to its page and its results, and two pages of results further back.
_MOST_BACK = 4
# Departments with their own drawing, see parts.html.
_DRAWN = frozenset({"beauty", "electronics", "fashion", "garden", "grocery"})


def make_pages(desk: Desk) -> Blueprint:
    """Return the routes of the pages."""
    pages = Blueprint("pages", __name__)
    pages.add_app_template_filter(_price, "price")
    pages.add_app_template_filter(_hue, "hue")
    pages.add_app_template_filter(_drawing, "drawing")

    @pages.get("/")
    def start() -> str:
        goals = [desk.goals[number] for number in desk.draw(_SAMPLES)]
        shop = desk.sessions.shop
        return render_template(
            "start.html", goals=goals, number_of_goals=len(desk.goals), shop=shop
        )

    @pages.post("/shop")
    def enter() -> ResponseReturnValue:
        task_id, number = request.form.get("task_id"), request.form.get("goal_index")
        token = desk.open(desk.goal(task_id, None if number is None else _whole(number)))
        return redirect(url_for("pages.show", token=token), 303)

    @pages.get("/shop/<token>")
    def show(token: str) -> str:
        session, step = desk.sessions.read(token)
        seen = request.args.get("step", str(step))
        return _render(token, session, step, "" if seen == str(step) else _LEFT_BEHIND)

    @pages.post("/shop/<token>")
    def act(token: str) -> ResponseReturnValue:
        query, action = request.form.get("search_query"), request.form.get("action")
        if (query is None) == (action is None):
            raise RequestError("a form of the shop sends either search_query or action")
        seen = _whole(request.form.get("step", ""))
        session, step = desk.sessions.read(token)
        moves: list[str] | None
        if query is not None:
            moves = _search(session, query)
        else:
            moves = [str(action)] if seen == step else _open(session, str(action))
        if moves is None:
            return _render(token, *desk.sessions.read(token), _LEFT_BEHIND), 409
        for move in moves:
            result, session, step = desk.act(token, move, step)
        if not result.valid:
            return _render(token, session, step, f"{result.complaint}.")
        return redirect(url_for("pages.show", token=token, step=step), 303)

    @pages.post("/shop/<token>/leave")
    def leave(token: str) -> ResponseReturnValue:
        desk.close(token)
        return redirect(url_for("pages.start"), 303)

    return pages


def _search(session: Session, query: str) -> list[str]:
    """Return the actions of a search from any page: back to the search page first."""
    here = session.page.has_search_bar or _BACK not in session.admissible or not query.strip()
    return [f"search[{query}]"] if here else [_BACK, f"search[{query}]"]


def _open(session: Session, action: str) -> list[str] | None:
    """Return the actions that open a product of an earlier page; None if it opens none.

    Acts on the session; do not use it afterwards.
    """
    label = action[len("click[") : -1]
    for back in range(_MOST_BACK + 1):
        target = session.clickables.get(label)
        if target is not None and target.move is Move.PRODUCT:
            return [*[_PREVIOUS] * back, action]
        if not session.act(_PREVIOUS).valid:
            break
    return None


def _render(token: str, session: Session, step: int, notice: str = "") -> str:
    page = session.page
    return render_template(
        f"{page.kind.name.lower()}.html",
        token=token,
        step=step,
        notice=notice,
        page=page,
        goal=session.goal,
        can_search=page.has_search_bar or _BACK in session.admissible,
        **_more(session),
    )


def _more(session: Session) -> dict[str, Any]:
    """Return what only one kind of page shows."""
    page = session.page
    if page.kind is PageKind.ITEM:
        return {"options": option_labels(page)}
    if page.kind is PageKind.DETAIL:
        return {"texts": [text for text in details(page) if text.strip()], "attributes": ATTRIBUTES}
    if page.kind is PageKind.DONE:
        return {"score": session.shop.score(page.bought, session.goal, page.options)}
    return {}


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _LARGEST_STEP):
        raise RequestError(f"a whole number from 0 is needed, got {text[:50]!r}")
    return int(text)


def _price(product: Product) -> str:
    """Return the price as people read it; the numbers are those of the price tag."""
    return " – ".join(f"${number:,.2f}" for number in product.pricing)


def _hue(text: str) -> int:
    """Return the hue of a text in degrees, the same at every start."""
    return zlib.crc32(text.encode()) % 360


def _drawing(category: str) -> str:
    return category if category in _DRAWN else "other"

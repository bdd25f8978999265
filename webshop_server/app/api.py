"""The JSON API, with which an environment plays in this shop.

docs/webshop.md lists the requests. With `step`, an action is refused unless the session is at that
step, so that a client may safely send it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, get_args

from flask import Blueprint, Response, jsonify, request
from flask.typing import ResponseReturnValue

from webshop_server.app.desk import Desk
from webshop_server.app.errors import RequestError, UnknownTaskError
from webshop_server.rules.goals import content_hash
from webshop_server.rules.records import Split
from webshop_server.rules.text_forms import MODES
from webshop_server.session import Session

_MOST_IDS = 10_000


def make_api(desk: Desk) -> Blueprint:
    """Return the routes under /api."""
    api = Blueprint("api", __name__, url_prefix="/api")
    _add_tasks(api, desk)
    _add_sessions(api, desk)
    return api


def _add_tasks(api: Blueprint, desk: Desk) -> None:
    @api.get("")
    def describe() -> Response:
        shop = desk.sessions.shop
        return jsonify(
            profile=shop.profile,
            goals=shop.goals.kind,
            number_of_goals=len(shop.goals),
            products=len(shop.catalogue),
            splits={name: len(shop.goals.split(name)) for name in get_args(Split)},
            modes=MODES,
            show_attributes=shop.show_attributes,
            catalogue_hash=shop.catalogue.manifest_hash,
            goals_hash=shop.goals.manifest_hash,
        )

    @api.get("/splits/<name>")
    def split(name: str) -> Response:
        if name not in get_args(Split):
            raise UnknownTaskError(f"unknown split {name[:50]!r}; known: {get_args(Split)}")
        numbers = desk.goals.split(name)  # type: ignore[arg-type]
        offset = _whole("offset", request.args.get("offset", "0"))
        limit = min(_whole("limit", request.args.get("limit", "1000")), _MOST_IDS)
        ids = [desk.goals.id_of(int(number)) for number in numbers[offset : offset + limit]]
        return jsonify(count=len(numbers), task_ids=ids)

    @api.get("/tasks/<path:task_id>")
    def task(task_id: str) -> Response:
        goal = desk.goals[desk.goal(task_id=task_id)]
        return jsonify(
            task_id=task_id,
            task=goal.instruction,
            task_type=goal.category,
            content_hash=content_hash(goal),
        )


def _add_sessions(api: Blueprint, desk: Desk) -> None:
    @api.post("/sessions")
    def create() -> ResponseReturnValue:
        body = _body({"task_id", "goal_index", "modes"})
        modes = _modes(body.get("modes"))
        token = desk.open(desk.goal(body.get("task_id"), body.get("goal_index")))
        return jsonify(_view(token, *desk.sessions.read(token), modes)), 201

    @api.get("/sessions/<token>")
    def look(token: str) -> Response:
        listed = request.args.get("modes")
        modes = _modes(None if listed is None else listed.split(","))
        return jsonify(_view(token, *desk.sessions.read(token), modes))

    @api.post("/sessions/<token>/actions")
    def act(token: str) -> Response:
        body = _body({"action", "step", "modes"})
        action, step, modes = body.get("action"), body.get("step"), _modes(body.get("modes"))
        if not isinstance(action, str):
            raise RequestError(
                f"action is a string such as 'search[red shoes]', got {action!r:.100}"
            )
        if step is not None and (not isinstance(step, int) or isinstance(step, bool)):
            raise RequestError(f"step is a whole number, got {step!r:.100}")
        result, session, step = desk.act(token, action, step)
        return jsonify({**_view(token, session, step, modes), **asdict(result)})

    @api.post("/sessions/<token>/copies")
    def copy(token: str) -> ResponseReturnValue:
        modes = _modes(_body({"modes"}).get("modes"))
        twin = desk.copy(token)
        return jsonify(_view(twin, *desk.sessions.read(twin), modes)), 201

    @api.delete("/sessions/<token>")
    def close(token: str) -> Response:
        desk.close(token)
        # Not 204: waitress closes the connection after an answer without content.
        return jsonify(closed=True)


def _view(token: str, session: Session, step: int, modes: Sequence[str]) -> dict[str, Any]:
    return {
        "session_id": token,
        "step": step,
        "task": session.task,
        "task_id": session.task_id,
        "task_type": session.task_type,
        "page": session.page.kind.name.lower(),
        "bought": session.state.done,
        "observation": {mode: session.observe(mode) for mode in modes},
        "admissible_actions": session.admissible,
    }


def _body(known: set[str]) -> Mapping[str, Any]:
    """Return the JSON object of the request; an empty body is an empty object."""
    try:
        body = request.get_json(force=True, silent=True) if request.get_data() else {}
    except RecursionError as error:
        raise RequestError("the body is nested too deeply") from error
    if not isinstance(body, dict):
        raise RequestError("the body has to be a JSON object")
    strange = sorted(set(body) - known)
    if strange:
        raise RequestError(f"unknown key {strange[0][:50]!r}; known: {', '.join(sorted(known))}")
    return body


def _modes(wanted: object) -> Sequence[str]:
    if wanted is None:
        return ("text",)
    if not isinstance(wanted, list) or any(mode not in MODES for mode in wanted):
        raise RequestError(f"modes are some of {', '.join(MODES)}; got {wanted!r:.100}")
    return wanted


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 12):
        raise RequestError(f"{name} is a whole number from 0, got {text[:50]!r}")
    return int(text)

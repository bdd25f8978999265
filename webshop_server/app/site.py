"""The Flask application: pages, API, health, metrics, headers and errors."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import numpy as np
from flask import Flask, Response, g, jsonify, render_template, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from webshop_server.app.api import make_api
from webshop_server.app.desk import Desk
from webshop_server.app.errors import RequestError
from webshop_server.app.metrics import Metrics
from webshop_server.app.pages import make_pages
from webshop_server.app.store import Limits, Sessions
from webshop_server.app.trajectories import TrajectoryLog
from webshop_server.shop import Shop

logger = logging.getLogger(__name__)
_DEFAULT_LIMITS = Limits()
_LONGEST_BODY = 256 * 1024
# Forbids all scripts, content from other sites, and frames in other sites.
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    # The address of a page holds the session's token.
    "Referrer-Policy": "no-referrer",
}


class _Answer(Response):
    """An answer in UTF-8; replaces the lone surrogates that JSON text may hold."""

    def set_data(self, value: bytes | str) -> None:
        """Set the body."""
        super().set_data(value.encode(errors="replace") if isinstance(value, str) else value)


def create_app(
    shop: Shop,
    directory: Path,
    *,
    limits: Limits = _DEFAULT_LIMITS,
    log: Path | None = None,
    seed: int | None = None,
) -> Flask:
    """Make the WSGI application of a shop.

    Args:
        shop: the shop to serve.
        directory: holds the open sessions; empty, and readable only by this user.
        limits: bounds of the sessions.
        log: directory of trajectories; None writes none.
        seed: seeds the draw of tasks for shoppers who name none; None draws others at each start.
    """
    sessions = Sessions(shop, directory / "sessions.sqlite", limits)
    metrics = Metrics(sessions.count)
    desk = Desk(sessions, metrics, TrajectoryLog(log), np.random.default_rng(seed))
    app = Flask(__name__)
    app.response_class = _Answer
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config.update(MAX_CONTENT_LENGTH=_LONGEST_BODY, SEND_FILE_MAX_AGE_DEFAULT=3600)
    app.jinja_options = {"trim_blocks": True, "lstrip_blocks": True}
    app.extensions["webshop"] = desk
    app.register_blueprint(make_api(desk))
    app.register_blueprint(make_pages(desk))
    _add_health(app, desk)
    _count_requests(app, metrics)
    _answer_errors(app, metrics)
    return app


def _add_health(app: Flask, desk: Desk) -> None:
    @app.get("/health")
    def health() -> Response:
        shop = desk.sessions.shop
        facts = {"products": len(shop.catalogue), "profile": shop.profile}
        return jsonify(status="ok", sessions=desk.sessions.count(), **facts)

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(desk.metrics.text(), mimetype="text/plain; version=0.0.4")


def _count_requests(app: Flask, metrics: Metrics) -> None:
    @app.before_request
    def start() -> None:
        g.started = time.perf_counter()

    @app.after_request
    def count(response: Response) -> Response:
        route = "unknown" if request.url_rule is None else request.url_rule.rule
        seconds = time.perf_counter() - g.started
        metrics.requests.labels(route, response.status_code).observe(seconds)
        response.headers.update(_HEADERS)
        if request.endpoint != "static":
            response.headers["Cache-Control"] = "no-store"
        return response


def _answer_errors(app: Flask, metrics: Metrics) -> None:
    @app.errorhandler(RequestError)
    def refused(error: RequestError) -> Response:
        if error.code == "shop_full":
            metrics.refused.inc()
        response = _explain(error.status, error.code, str(error))
        if error.retry_after_s is not None:
            response.headers["Retry-After"] = str(error.retry_after_s)
        return response

    @app.errorhandler(HTTPException)
    def failed(error: HTTPException) -> Response:
        code = error.name.lower().replace(" ", "_")
        message = error.description or error.name
        if isinstance(error, RequestEntityTooLarge):
            message = f"a request holds no more than {_LONGEST_BODY // 1024} kB"
        response = _explain(error.code or 500, code, message)
        for name, value in error.get_headers():
            if name == "Allow":
                response.headers[name] = value
        return response

    @app.errorhandler(Exception)
    def broken(error: Exception) -> Response:
        logger.error("request failed: %s %s", request.method, request.path, exc_info=error)
        return _explain(500, "internal_error", "the server failed; its log says how")


def _explain(status: int, code: str, message: str) -> Response:
    """Answer with an error: JSON for programs, a page for people."""
    if request.path.startswith("/api"):
        response = jsonify(error={"code": code, "message": message})
    else:
        response = _Answer(render_template("error.html", status=status, message=message))
    response.status_code = status
    return response

"""Errors that a server answers to a request."""

from __future__ import annotations

from webshop_server.errors import ShopError


class RequestError(ShopError):
    """Base of the errors that a client caused; subclasses set status and code.

    Attributes:
        status: status code of the HTTP response.
        code: stable name of the kind of error.
        retry_after_s: seconds after which the client may try again.
    """

    status = 400
    code = "bad_request"
    retry_after_s: int | None = None


class UnknownSessionError(RequestError):
    """No session has this id: it never existed, was closed, or was idle for too long."""

    status = 404
    code = "unknown_session"


class UnknownTaskError(RequestError):
    """No task has this id or number."""

    status = 404
    code = "unknown_task"


class StaleStepError(RequestError):
    """The action is for an earlier step of the session."""

    status = 409
    code = "stale_step"


class ShopFullError(RequestError):
    """As many sessions are open as the server allows."""

    status = 429
    code = "shop_full"
    retry_after_s = 10

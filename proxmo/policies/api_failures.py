"""How requests to an API are spaced, and what each way to fail means for the next try."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import openai

# What no repetition can cure, and what it means to the user.
_FATAL = {
    401: "the API key was refused; check OPENAI_API_KEY",
    402: "the account has no balance left",
    403: "access was denied; check what the API key may use",
    404: "not found; check the model's name and the base URL (most end in /v1)",
}
# Timeout, conflict, too early, too many requests; all of 5xx besides.
_PASSING = {408, 409, 425, 429}


class UnusableReplyError(Exception):
    """A reply of status 200 that holds no text."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request came to nothing.

    `passing`: a repetition may succeed; `fatal`: no request of this run can; `unreachable`: no
    connection came about. `retry_after_s` is the pause the server asked for.
    """

    cause: str
    passing: bool = True
    fatal: bool = False
    unreachable: bool = False
    retry_after_s: float | None = None

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Judges an exception of the client; one that is no failure of a request is raised."""
        import openai

        if isinstance(error, asyncio.TimeoutError | openai.APITimeoutError):
            return cls("no complete reply in time")
        if isinstance(error, openai.APIConnectionError):
            why = error.__cause__ or error
            # Of httpx or httpx2, as the client's version has it; whoever breaks off is there.
            nobody = type(why).__name__ == "ConnectError"
            return cls(f"no connection: {why!r}", unreachable=nobody)
        if isinstance(error, openai.APIStatusError):
            return _of_status(error)
        # What is not JSON reaches us as the error of the parser.
        unusable = UnusableReplyError | openai.APIError | ValueError | RecursionError
        if isinstance(error, unusable):
            return cls(f"unusable reply: {error}")
        raise error


def _of_status(error: openai.APIStatusError) -> Failure:
    status = error.status_code
    told = error.body.get("message") if isinstance(error.body, dict) else None
    cause = f"status {status}: {_one_line(str(told or error.message))}"
    if status in _FATAL:
        return Failure(f"{_FATAL[status]} ({cause})", passing=False, fatal=True)
    if error.code == "insufficient_quota":
        return Failure(f"the account has no quota left ({cause})", passing=False, fatal=True)
    passing = status in _PASSING or status >= 500
    return Failure(cause, passing, retry_after_s=retry_after(error.response.headers))


def _one_line(text: str, longest: int = 300) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[:longest] + " ..."


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Reads `Retry-After` (RFC 9110: seconds or a date) as seconds from now; None: not there."""
    told = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d*)?", told):
        return float(told)
    try:
        when = parsedate_to_datetime(told)
    except ValueError:
        return None
    return max(0.0, when.timestamp() - time.time())


class Gate:
    """Spaces the starts of requests evenly; a hold keeps all of them back."""

    def __init__(self, per_minute: float | None) -> None:
        self._interval_s = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._held_until = 0.0

    async def wait(self) -> None:
        """Returns when the next request may start."""
        clock = asyncio.get_running_loop().time
        mine = max(self._next, clock())
        self._next = mine + self._interval_s
        while (left := max(mine, self._held_until) - clock()) > 0:
            await asyncio.sleep(left)

    def hold(self, seconds: float) -> None:
        """Lets nothing start for so many seconds."""
        self._held_until = max(self._held_until, asyncio.get_running_loop().time() + seconds)

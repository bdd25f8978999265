"""Any model behind an OpenAI-compatible API (OpenAI, Gemini, vLLM, Ollama ...) as a policy.

The openai client repeats what may pass (timeouts, broken connections, status 408, 409, 429 and 5xx)
and waits as long as the server asks. We add a rate limit, count tokens and requests, and stop at
the first error that every further request would meet again.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from proxmo.errors import ApiError, MissingDependencyError, UsageError
from proxmo.policies.base import Response
from proxmo.policies.usage import Prices, Usage

if TYPE_CHECKING:
    import openai

_OFFICIAL = "https://api.openai.com/v1"
# Errors that no repetition cures, and what they mean to the user.
_FATAL = {
    401: "the API key was refused; check OPENAI_API_KEY",
    402: "the account has no balance left",
    403: "access was denied; check what the API key may use",
    404: "not found; check the model's name and the base URL (most end in /v1)",
}


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """How hard an API is asked."""

    # Requests in flight at once.
    workers: int = 8
    # Most responses asked for per minute; None sets no limit.
    rate: float | None = None
    # Seconds without a byte from the server after which the client repeats the request.
    timeout_s: float = 120.0
    # Times one request is sent before its episode fails.
    attempts: int = 6


class OpenAIPolicy:
    """Asks chat completions of one model; use it as a context manager, or call `close`.

    Args:
        model: name of the model at the server.
        base_url: where the API is; None: $OPENAI_BASE_URL, else OpenAI itself.
        limits: concurrency, rate, timeout and retries.
        prices: of its tokens, for `usage.cost`.

    Attributes:
        usage: requests and tokens so far, failures included.

    Raises:
        UsageError: there is no API key and the server is not a local one.
        MissingDependencyError: the package `openai` is not installed.
    """

    # Many threads may call `respond` at the same time.
    concurrent = True

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        limits: ApiLimits | None = None,
        prices: Prices | None = None,
    ) -> None:
        self.model = model
        self.base_url = base_url or os.environ.get("OPENAI_BASE_URL") or _OFFICIAL
        self.limits = limits or ApiLimits()
        self.prices = prices or Prices()
        self.usage = Usage()
        self._answered = False
        self._refused: str | None = None
        self._pending: set[Future[list[Response]]] = set()
        self._next_start = 0.0
        self._slots = asyncio.Semaphore(self.limits.workers)
        self._client = self._connect(_api_key(self.base_url))
        # A loop of its own: `respond` then works in a notebook and from threads.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _connect(self, key: str) -> openai.AsyncOpenAI:
        try:
            import openai
        except ImportError as cause:
            raise MissingDependencyError(
                "the package openai is not installed; run: pip install 'proxmo[api]'"
            ) from cause

        async def count(request: Any) -> None:
            repeated = request.headers.get("x-stainless-retry-count", "0") != "0"
            self.usage += Usage(requests=1, retries=int(repeated))

        return openai.AsyncOpenAI(
            api_key=key,
            base_url=self.base_url,
            max_retries=self.limits.attempts - 1,
            timeout=self.limits.timeout_s,
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"request": [count]}),
        )

    def respond(
        self,
        messages: Sequence[str],
        *,
        temperature: float,
        max_new_tokens: int,
        seed: Sequence[int],
    ) -> list[Response]:
        """Asks for all messages at once, within the limits; see `ChatPolicy.respond`.

        The server draws, so `seed` has no effect.

        Raises:
            ApiError: the server refuses the key, the model, the address or a setting, or nobody
                answers there.
        """
        official = urlsplit(self.base_url).hostname == urlsplit(_OFFICIAL).hostname
        settings = {
            "model": self.model,
            "temperature": temperature,
            # OpenAI's newer models know only the second name, many other servers only the first.
            "max_completion_tokens" if official else "max_tokens": max_new_tokens,
        }
        asked = asyncio.run_coroutine_threadsafe(self._ask_all(messages, settings), self._loop)
        self._pending.add(asked)
        try:
            return asked.result()
        finally:
            # Matters if Ctrl-C ended the waiting; a finished request cannot be cancelled.
            asked.cancel()
            self._pending.discard(asked)

    def abandon(self) -> None:
        """Cancels every request in flight or waiting; its `respond` raises CancelledError."""
        for one in list(self._pending):
            one.cancel()

    def close(self) -> None:
        """Ends the connections; the policy cannot be used any more."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> OpenAIPolicy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _end(self) -> None:
        pending = asyncio.all_tasks() - {asyncio.current_task()}
        for one in pending:
            one.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        await self._client.close()

    async def _ask_all(self, messages: Sequence[str], settings: dict[str, Any]) -> list[Response]:
        asked = [asyncio.ensure_future(self._ask(message, settings)) for message in messages]
        try:
            return list(await asyncio.gather(*asked))
        finally:
            # After a fatal error or Ctrl-C the others would only cost money.
            for one in asked:
                one.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def _ask(self, message: str, settings: dict[str, Any]) -> Response:
        import openai

        async with self._slots:
            await self._wait_for_turn()
            if self._refused is not None:
                raise ApiError(self._refused)
            try:
                completion = await asyncio.wait_for(
                    self._client.chat.completions.create(
                        messages=[{"role": "user", "content": message}], **settings
                    ),
                    # The client's own timeout starts anew with every byte of a slow response.
                    self.limits.attempts * self.limits.timeout_s,
                )
            except openai.APIStatusError as error:
                self._answered = True
                cause = _status_cause(error)
                if _is_fatal(error, settings):
                    self._refuse(cause)
            except (asyncio.TimeoutError, openai.APITimeoutError):
                cause = "no complete response in time"
            except openai.APIConnectionError as error:
                why = error.__cause__ or error
                cause = f"no connection: {why!r}"
                # httpx and httpx2 (it depends on the client's version) have a class of that name.
                if type(why).__name__ == "ConnectError" and not self._answered:
                    raise ApiError(f"nobody answers at {self.base_url}: {cause}") from error
            except (openai.APIError, ValueError, RecursionError) as error:
                cause = f"unusable response: {error}"  # among them what is not JSON
            else:
                self._answered = True
                return self._read(completion)
        return self._failed(cause)

    async def _wait_for_turn(self) -> None:
        """Returns when the rate allows the next request."""
        now = asyncio.get_running_loop().time()
        mine = max(self._next_start, now)
        self._next_start = mine + (60.0 / self.limits.rate if self.limits.rate else 0.0)
        await asyncio.sleep(mine - now)

    def _refuse(self, cause: str) -> None:
        self._refused = f"{self.base_url}, model {self.model!r}: {cause}"
        raise ApiError(self._refused)

    def _failed(self, cause: str) -> Response:
        self.usage += Usage(failures=1)
        return Response((), (), "", "error", 0, error=cause)

    def _read(self, completion: Any) -> Response:
        """Reads text, finish reason and token counts; the client does not check types."""
        try:
            choice = completion.choices[0]
            text = choice.message.content or getattr(choice.message, "refusal", None) or ""
            used = completion.usage
            counts = used and (used.prompt_tokens, used.completion_tokens)
        except (AttributeError, IndexError, KeyError, TypeError):
            # Some servers send their errors with status 200.
            sent = getattr(completion, "model_extra", None) or completion
            return self._failed(f"no chat completion but {str(sent)[:200]!r}")
        # Some servers leave one of the counts out.
        counted = counts if counts and all(isinstance(number, int) for number in counts) else None
        self.usage += Usage.of_response(counted, self.prices)
        if not text and choice.finish_reason != "length":
            return self._failed(f"the response is empty (finish_reason {choice.finish_reason!r})")
        ended = "length" if choice.finish_reason == "length" else "stop"
        return Response((), (), str(text), ended, 0, counted=counted)


def _status_cause(error: openai.APIStatusError) -> str:
    body = error.body.get("message") if isinstance(error.body, dict) else None
    text = " ".join(str(body or error.message).split())
    text = text if len(text) <= 300 else f"{text[:300]} ..."
    cause = f"status {error.status_code}: {text}"
    if error.code == "insufficient_quota":
        return f"the account has no quota left ({cause})"
    return f"{_FATAL[error.status_code]} ({cause})" if error.status_code in _FATAL else cause


def _is_fatal(error: openai.APIStatusError, settings: dict[str, Any]) -> bool:
    """Whether every request of this run would meet the error."""
    if error.status_code in _FATAL or error.code == "insufficient_quota":
        return True
    # A setting the model does not take, such as a temperature; a prompt may just be too long.
    return error.status_code in (400, 422) and error.param in settings


def _api_key(base_url: str) -> str:
    """The key of the environment; a server on this machine or in its network needs none."""
    address = urlsplit(base_url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise UsageError(f"base URL {base_url!r}: expected one such as http://localhost:8000/v1")
    key = os.environ.get("OPENAI_API_KEY")
    if key or _is_local(address.hostname):
        return key or "none"
    raise UsageError(f"no API key for {base_url}: set the environment variable OPENAI_API_KEY")


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal"))

"""Any model behind an OpenAI-compatible API (OpenAI, Gemini, vLLM, Ollama ...) as a policy.

The retries are ours and not those of the client: they are counted, their jitter comes from a
generator that is owned, and a server that asks for a pause gets it from all requests at once.
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

import numpy as np

from proxmo.errors import ApiError, MissingDependencyError, UsageError
from proxmo.policies.api_failures import Failure, Gate, UnusableReplyError
from proxmo.policies.base import Reply
from proxmo.policies.usage import Prices, Usage

if TYPE_CHECKING:
    import openai

_OFFICIAL = "https://api.openai.com/v1"
# A server that asks for a pause of more than so many times the longest own one is given up.
_PATIENCE = 10


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """How hard an API is asked.

    The pause before retry k is `backoff_s` * 2^(k-1), at most `max_pause_s`, times a random factor
    in [0.5, 1.5]; a `Retry-After` of the server counts instead.
    """

    # Requests in flight at once.
    workers: int = 8
    # Most requests started per minute; None: no limit.
    rate: float | None = None
    # Most seconds until a reply is complete.
    timeout_s: float = 120.0
    # Times one request is sent before its episode fails.
    attempts: int = 6
    backoff_s: float = 1.0
    max_pause_s: float = 60.0


class OpenAIPolicy:
    """Asks chat completions of one model; use as a context manager, or call `close`.

    Args:
        model: name of the model at the server.
        base_url: where the API is; None: $OPENAI_BASE_URL, else OpenAI itself.
        limits: concurrency, rate, timeout and retries.
        prices: of its tokens, for `usage.cost`.
        rng: draws the jitter of the pauses.

    Attributes:
        usage: what was asked for so far, notes and failures included.

    Raises:
        UsageError: there is no API key and the server is not a local one.
        MissingDependencyError: the package `openai` is not installed.
    """

    # `reply` may be called from many threads.
    concurrent = True

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        limits: ApiLimits | None = None,
        prices: Prices | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.model = model
        self.base_url = base_url or os.environ.get("OPENAI_BASE_URL") or _OFFICIAL
        self.limits = limits or ApiLimits()
        self.prices = prices or Prices()
        self.usage = Usage()
        self._rng = rng or np.random.default_rng(0)
        self._key = _api_key(self.base_url)
        self._answered = False
        self._refused: str | None = None
        self._pending: set[Future[list[Reply]]] = set()
        self._gate = Gate(self.limits.rate)
        self._slots = asyncio.Semaphore(self.limits.workers)
        self._client = self._connect()
        # A loop of its own: `reply` then works in a notebook, from threads, and keeps connections.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _connect(self) -> openai.AsyncOpenAI:
        try:
            import openai
        except ImportError as cause:
            raise MissingDependencyError(
                "the package openai is not installed; run: pip install 'proxmo[api]'"
            ) from cause
        return openai.AsyncOpenAI(
            api_key=self._key,
            base_url=self.base_url,
            max_retries=0,
            timeout=self.limits.timeout_s,
        )

    def reply(
        self,
        messages: Sequence[str],
        *,
        temperature: float,
        max_new_tokens: int,
        seed: Sequence[int],
    ) -> list[Reply]:
        """Asks for all messages at once, within the limits; see `ChatPolicy.reply`.

        The server draws, so `seed` decides nothing here.

        Raises:
            ApiError: the key, the model or the address is refused, or nobody answers there.
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
            # Cancels nothing that is done: it matters when Ctrl-C broke the waiting off.
            asked.cancel()
            self._pending.discard(asked)

    def abandon(self) -> None:
        """Cancels every request that is in flight or waits; its `reply` raises CancelledError."""
        for one in list(self._pending):
            one.cancel()

    def close(self) -> None:
        """Ends the connections; the policy cannot be asked any more."""
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

    async def _ask_all(self, messages: Sequence[str], settings: dict[str, Any]) -> list[Reply]:
        asked = [asyncio.ensure_future(self._ask(message, settings)) for message in messages]
        try:
            return list(await asyncio.gather(*asked))
        finally:
            # After one fatal error, or Ctrl-C, the others would only cost money.
            for one in asked:
                one.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def _ask(self, message: str, settings: dict[str, Any]) -> Reply:
        attempt = 0
        while True:
            attempt += 1
            async with self._slots:
                await self._gate.wait()
                if self._refused is not None:
                    raise ApiError(self._refused)
                self.usage += Usage(requests=1, retries=int(attempt > 1))
                try:
                    return await self._request(message, settings)
                except Exception as error:  # sorted into: again, never, or not a failed request
                    failure = Failure.of(error)
            self._answered |= not failure.unreachable
            if failure.fatal:
                self._refused = f"{self.base_url}, model {self.model!r}: {failure.cause}"
                raise ApiError(self._refused)
            pause = self._pause(attempt, failure)
            if not failure.passing or attempt == self.limits.attempts or pause is None:
                break
            if failure.retry_after_s is not None:
                self._gate.hold(pause)
            else:
                await asyncio.sleep(pause)
        if failure.unreachable and not self._answered:
            raise ApiError(f"nobody answers at {self.base_url}: {failure.cause}")
        self.usage += Usage(failures=1)
        return Reply((), (), "", "error", 0, error=f"{failure.cause} (asked {attempt} times)")

    async def _request(self, message: str, settings: dict[str, Any]) -> Reply:
        # The client's own timeout starts anew with every byte of a trickling reply.
        completion = await asyncio.wait_for(
            self._client.chat.completions.create(
                messages=[{"role": "user", "content": message}], **settings
            ),
            self.limits.timeout_s,
        )
        self._answered = True
        try:
            text, reason, counts = _read(completion)
        except (AttributeError, IndexError, KeyError, TypeError) as cause:
            # Some servers send their errors with status 200.
            told = getattr(completion, "model_extra", None) or completion
            raise UnusableReplyError(f"no chat completion but {str(told)[:200]!r}") from cause
        self.usage += Usage.of_reply(counts, self.prices)
        if not text and reason != "length":
            raise UnusableReplyError(f"it is empty (finish_reason {reason!r})")
        ended = "length" if reason == "length" else "stop"
        return Reply((), (), text, ended, 0, counted=counts)

    def _pause(self, attempt: int, failure: Failure) -> float | None:
        """Seconds until the next try; None: longer than anybody wants to wait."""
        longest = self.limits.max_pause_s
        if failure.retry_after_s is not None:
            told = failure.retry_after_s
            return told if told <= _PATIENCE * longest else None
        doubled = min(self.limits.backoff_s * 2.0 ** (attempt - 1), longest)
        return doubled * float(self._rng.uniform(0.5, 1.5))


def _read(completion: Any) -> tuple[str, str, tuple[int, int] | None]:
    """Returns text, finish reason and token counts; the client checks no types."""
    choice = completion.choices[0]
    text = choice.message.content or getattr(choice.message, "refusal", None) or ""
    used = completion.usage
    counts = used and (used.prompt_tokens, used.completion_tokens)
    # Some servers leave one of them out.
    counted = counts if counts and all(isinstance(number, int) for number in counts) else None
    return str(text), str(choice.finish_reason), counted


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

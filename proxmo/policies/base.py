"""The interface of a policy: prompts in, responses out, stamped with their weight version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Response:
    """A sampled response.

    Attributes:
        ids: its tokens, end-of-turn token included; empty behind an API, which sends text only.
        logprobs: log-probability of each token under the distribution it was sampled from.
        text: without special tokens.
        finish_reason: "stop" if the model ended its turn, "length" if the response was cut.
        weight_version: of the weights that sampled it.
        error: why there is no response.
        counted: (prompt, response) tokens as an API counted them.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: str
    weight_version: int
    error: str | None = None
    counted: tuple[int, int] | None = None


class Policy(Protocol):
    """Turns tokenised prompts into responses."""

    tokenizer: Any

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        temperature: float,
        max_new_tokens: int,
        seed: Sequence[int],
        seeds: Sequence[Sequence[int]] | None = None,
    ) -> list[Response]:
        """Samples one response per prompt; equal arguments and weights give equal responses.

        With `seeds`, one per prompt, a response does not depend on the other prompts. Temperature 0
        is greedy; the log-probabilities are then those of temperature 1.
        """
        ...


@runtime_checkable
class ChatPolicy(Protocol):
    """Turns a user's messages into responses; applies the chat template and tokenises itself."""

    def respond(
        self,
        messages: Sequence[str],
        *,
        temperature: float,
        max_new_tokens: int,
        seed: Sequence[int],
    ) -> list[Response]:
        """Returns one response per message, each the only one of its chat.

        A request that fails gives a response with `error` set. An error that every further request
        would meet (no access, no such model) is raised as a ProxmoError.
        """
        ...

"""What every policy is to the rollout: prompts in, replies out, stamped with their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Reply:
    """A sampled reply: `logprobs[i]` is the log-probability of `ids[i]` as it was sampled.

    `finish_reason` is "stop" when the model ended its turn (the end token is then the last of
    `ids`) and "length" when it was cut. `text` is the reply without special tokens. Policies behind
    an API know text only: `ids` and `logprobs` are empty, and `counted` holds the number of prompt
    and reply tokens, if the server tells it. `error` says why there is no reply.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: str
    weight_version: int
    error: str | None = None
    counted: tuple[int, int] | None = None


class Policy(Protocol):
    """Turns tokenised prompts into replies."""

    tokenizer: Any

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        temperature: float,
        max_new_tokens: int,
        seed: Sequence[int],
        seeds: Sequence[Sequence[int]] | None = None,
    ) -> list[Reply]:
        """Samples one reply per prompt; equal arguments and weights give equal replies.

        With `seeds`, one per prompt, the draws of a reply do not depend on the other prompts.
        Temperature 0 is greedy; the log-probabilities are then those of temperature 1.
        """
        ...


@runtime_checkable
class ChatPolicy(Protocol):
    """Turns messages of a user into replies; the chat template and the tokens are its own."""

    def reply(
        self,
        messages: Sequence[str],
        *,
        temperature: float,
        max_new_tokens: int,
        seed: Sequence[int],
    ) -> list[Reply]:
        """Returns one reply per message, each the only one of its chat.

        What could not be answered comes back with `error` set; what makes every further request
        pointless (no access, no such model) is raised as a ProxmoError.
        """
        ...

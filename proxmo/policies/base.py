"""What every policy is to the rollout: prompts in, replies out, each stamped with the weights that made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Reply:
    """A sampled reply: `logprobs[i]` is the log-probability of `ids[i]` at the sampling temperature.

    `finish_reason` is "stop" when the model ended its turn (the end token is then the last of
    `ids`) and "length" when it was cut. `text` is the reply without special tokens.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: str
    weight_version: int


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
    ) -> list[Reply]:
        """Samples one reply per prompt; equal arguments and weights give equal replies. Temperature 0 is greedy."""
        ...

"""Requests sent to an API, tokens and their cost."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Prices:
    """Price of a million tokens, in the currency of the user's bill."""

    prompt: float = 0.0
    completion: float = 0.0

    def cost(self, prompt: int, completion: int) -> float:
        """Cost of so many prompt and completion tokens."""
        return (prompt * self.prompt + completion * self.completion) / 1e6


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests and tokens; add them with `+`.

    Attributes:
        requests: all that were sent.
        retries: those of them that repeat an earlier one.
        failures: responses that never came.
        uncounted: responses without a token count; tokens and cost are then too low.
        prompt_tokens: as the server counted them; likewise completion_tokens.
        cost: by `Prices`.
    """

    requests: int = 0
    retries: int = 0
    failures: int = 0
    uncounted: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __str__(self) -> str:
        cost = f", cost {self.cost:.4f}" if self.cost else ""
        uncounted = f" ({self.uncounted} responses uncounted)" if self.uncounted else ""
        return (
            f"{self.requests} requests, {self.retries} of them retries; {self.failures} failures; "
            f"{self.prompt_tokens} tokens read, {self.completion_tokens} written{uncounted}{cost}"
        )

    @classmethod
    def of_response(cls, counts: tuple[int, int] | None, prices: Prices) -> Usage:
        """The usage of a response of (prompt, completion) tokens; None if nobody counted."""
        if counts is None:
            return cls(uncounted=1)
        prompt, completion = counts
        cost = prices.cost(prompt, completion)
        return cls(prompt_tokens=prompt, completion_tokens=completion, cost=cost)

"""What an API was asked for and what that cost."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Prices:
    """Price of a million tokens, in the currency of the user's bill."""

    prompt: float = 0.0
    completion: float = 0.0

    def cost(self, prompt: int, completion: int) -> float:
        """What so many tokens read and written cost."""
        return (prompt * self.prompt + completion * self.completion) / 1e6


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests and tokens, as the server counted them; sums with `+`.

    `requests` counts every one that was sent, `retries` those among them that repeat an earlier
    one, `failures` the replies that never came. `uncounted` replies came without a token count, so
    `prompt_tokens`, `completion_tokens` and `cost` are then too low.
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
        uncounted = f" ({self.uncounted} replies uncounted)" if self.uncounted else ""
        return (
            f"{self.requests} requests, {self.retries} of them retries; {self.failures} failures; "
            f"{self.prompt_tokens} tokens read, {self.completion_tokens} written{uncounted}{cost}"
        )

    @classmethod
    def of_reply(cls, counts: tuple[int, int] | None, prices: Prices) -> Usage:
        """The usage of a reply that came, of (prompt, completion) tokens; None: not counted."""
        if counts is None:
            return cls(uncounted=1)
        prompt, completion = counts
        cost = prices.cost(prompt, completion)
        return cls(prompt_tokens=prompt, completion_tokens=completion, cost=cost)

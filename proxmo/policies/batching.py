"""Turns step samples into tensors: micro-batches under a token budget, log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Sample = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Prompts padded on the left, responses on the right: all responses start in the same column.

    `ids`, `attention`, `positions` are (B, P + L); `response_mask` is (B, L).
    """

    ids: Tensor
    attention: Tensor
    positions: Tensor
    response_mask: Tensor

    @property
    def response_ids(self) -> Tensor:
        """The sampled tokens, (B, L)."""
        return self.ids[:, -self.response_mask.shape[1] :]


def collate(samples: Sequence[Sample], *, pad_id: int, device: Any) -> TokenBatch:
    """Lays out (prompt ids, response ids) pairs as one `TokenBatch`."""
    import torch

    before = max(len(prompt) for prompt, _ in samples)
    after = max(len(response) for _, response in samples)
    ids, attention = [], []
    for prompt, response in samples:
        left, right = before - len(prompt), after - len(response)
        ids.append([pad_id] * left + list(prompt) + list(response) + [pad_id] * right)
        attention.append([0] * left + [1] * (len(prompt) + len(response)) + [0] * right)
    mask = torch.tensor(attention, device=device)
    return TokenBatch(
        ids=torch.tensor(ids, device=device),
        attention=mask,
        # Left padding shifts every real token; positions must be those the model sampled at.
        positions=(mask.cumsum(-1) - 1).clamp_min(0),
        response_mask=mask[:, before:].bool(),
    )


def micro_batches(
    samples: Sequence[Sample], rows: Sequence[int], *, token_budget: int
) -> Iterator[list[int]]:
    """Groups rows of similar length; rows x (longest prompt + response) stays in the budget.

    A single row over the budget forms a batch of its own.
    """
    order = sorted(rows, key=lambda i: (len(samples[i][0]) + len(samples[i][1]), i))
    batch: list[int] = []
    before = after = 0
    for i in order:
        prompt, response = len(samples[i][0]), len(samples[i][1])
        if batch and (len(batch) + 1) * (max(before, prompt) + max(after, response)) > token_budget:
            yield batch
            batch, before, after = [], 0, 0
        batch.append(i)
        before, after = max(before, prompt), max(after, response)
    if batch:
        yield batch


def shared_micro_batches(
    samples: Sequence[Sample], rows: Sequence[int], *, token_budget: int, rank: int, size: int
) -> list[tuple[list[int], bool]]:
    """Deals rows out to processes and returns the micro-batches of one; see `micro_batches`.

    Every process gets equally many batches of similar shape, because FSDP2 synchronises in each. A
    process with fewer repeats a row that does not count: the second of the pair is then False.
    """
    by_length = sorted(rows, key=lambda i: (len(samples[i][0]) + len(samples[i][1]), i))
    shares = [
        list(micro_batches(samples, by_length[first::size], token_budget=token_budget))
        for first in range(size)
    ]
    own = [(batch, True) for batch in shares[rank]]
    return own + [(by_length[:1], False)] * (max(map(len, shares)) - len(own))


def response_logprobs(
    model: Any, batch: TokenBatch, *, temperature: float
) -> tuple[Tensor, Tensor]:
    """Log-probabilities of the response tokens, (B, L), and of the whole vocabulary, (B, L, V).

    Both are float32 and at `temperature`. Only columns that predict response tokens go through the
    output head.
    """
    import torch

    width = batch.response_mask.shape[1]
    logits = model(
        input_ids=batch.ids,
        attention_mask=batch.attention,
        position_ids=batch.positions,
        logits_to_keep=width + 1,
        use_cache=False,
    ).logits[:, -width - 1 : -1]  # a model may not know `logits_to_keep`
    distribution = torch.log_softmax(logits.float() / (temperature or 1.0), dim=-1)
    chosen = distribution.gather(-1, batch.response_ids.unsqueeze(-1)).squeeze(-1)
    return chosen, distribution

"""From step samples to tensors: micro-batches under a token budget, and log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Sample = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Prompts padded on the left, replies on the right: all replies start in the same column.

    `ids`, `attention`, `positions` are (B, P + L); `reply_mask` is (B, L).
    """

    ids: Tensor
    attention: Tensor
    positions: Tensor
    reply_mask: Tensor

    @property
    def reply_ids(self) -> Tensor:
        """The sampled tokens, (B, L)."""
        return self.ids[:, -self.reply_mask.shape[1] :]


def collate(samples: Sequence[Sample], *, pad_id: int, device: Any) -> TokenBatch:
    """Lays out (prompt ids, reply ids) pairs as one `TokenBatch`."""
    import torch

    before = max(len(prompt) for prompt, _ in samples)
    after = max(len(reply) for _, reply in samples)
    ids, attention = [], []
    for prompt, reply in samples:
        left, right = before - len(prompt), after - len(reply)
        ids.append([pad_id] * left + list(prompt) + list(reply) + [pad_id] * right)
        attention.append([0] * left + [1] * (len(prompt) + len(reply)) + [0] * right)
    mask = torch.tensor(attention, device=device)
    return TokenBatch(
        ids=torch.tensor(ids, device=device),
        attention=mask,
        # Left padding moves every real token to the right; without this the model would see other
        # positions than it saw when it sampled.
        positions=(mask.cumsum(-1) - 1).clamp_min(0),
        reply_mask=mask[:, before:].bool(),
    )


def micro_batches(
    samples: Sequence[Sample], rows: Sequence[int], *, token_budget: int
) -> Iterator[list[int]]:
    """Groups rows of similar length; rows x (longest prompt + longest reply) stays in the budget.

    A single row over the budget forms a batch of its own.
    """
    order = sorted(rows, key=lambda i: (len(samples[i][0]) + len(samples[i][1]), i))
    batch: list[int] = []
    before = after = 0
    for i in order:
        prompt, reply = len(samples[i][0]), len(samples[i][1])
        if batch and (len(batch) + 1) * (max(before, prompt) + max(after, reply)) > token_budget:
            yield batch
            batch, before, after = [], 0, 0
        batch.append(i)
        before, after = max(before, prompt), max(after, reply)
    if batch:
        yield batch


def shared_micro_batches(
    samples: Sequence[Sample], rows: Sequence[int], *, token_budget: int, rank: int, size: int
) -> list[tuple[list[int], bool]]:
    """Deals rows out to processes and groups those of one of them; see `micro_batches`.

    Every process gets equally many batches of like shape, as they may have to meet in each. One
    that has fewer goes along with a row that does not count: the second of each pair is then False.
    """
    by_length = sorted(rows, key=lambda i: (len(samples[i][0]) + len(samples[i][1]), i))
    shares = [
        list(micro_batches(samples, by_length[first::size], token_budget=token_budget))
        for first in range(size)
    ]
    own = [(batch, True) for batch in shares[rank]]
    return own + [(by_length[:1], False)] * (max(map(len, shares)) - len(own))


def reply_logprobs(model: Any, batch: TokenBatch, *, temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probabilities of the reply tokens and those of all tokens there, (B, L) and (B, L, V).

    Both are float32 and at `temperature`. Only the columns that predict reply tokens go through the
    output head.
    """
    import torch

    width = batch.reply_mask.shape[1]
    logits = model(
        input_ids=batch.ids,
        attention_mask=batch.attention,
        position_ids=batch.positions,
        logits_to_keep=width + 1,
        use_cache=False,
    ).logits[:, -width - 1 : -1]  # a model may not know `logits_to_keep`
    distribution = torch.log_softmax(logits.float() / (temperature or 1.0), dim=-1)
    chosen = distribution.gather(-1, batch.reply_ids.unsqueeze(-1)).squeeze(-1)
    return chosen, distribution

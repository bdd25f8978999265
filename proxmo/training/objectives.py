"""What a learner minimises: the loss of a micro-batch, as a sum over its tokens.

An objective gets the `Learner` that asks for it; naming its type here would make a circle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proxmo.policies.batching import TokenBatch, response_logprobs
from proxmo.training.loss import LossTerms, loss_terms, token_entropy, token_weights

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The steps of one forward pass: B steps, responses of at most L tokens.

    Attributes:
        tokens: prompts and responses.
        advantages: (B,).
        sampled: (B, L) log-probabilities of the response tokens as the sampler gave them.
        old: (B, L) those under the weights before the update; None if they were not computed.
    """

    tokens: TokenBatch
    advantages: torch.Tensor
    sampled: torch.Tensor
    old: torch.Tensor | None


def clipped_policy_gradient(learner: Any, batch: MicroBatch) -> LossTerms:
    """The objective of reinforcement learning; see `loss.loss_terms`."""
    import torch

    config, mask = learner.config, batch.tokens.response_mask
    logprobs, distribution = response_logprobs(
        learner.model, batch.tokens, temperature=learner.temperature
    )
    # A metric alone needs no gradient, which costs as much memory as the distribution itself.
    with torch.set_grad_enabled(config.entropy_coef != 0.0):
        entropy = token_entropy(distribution)
    recomputed = config.old_logprobs == "recomputed"
    old = batch.sampled
    if recomputed:
        old = logprobs.detach() if batch.old is None else batch.old
    return loss_terms(
        logprobs,
        entropy,
        old,
        batch.sampled,
        learner.reference_logprobs(batch.tokens) if learner.anchored else None,
        batch.advantages,
        mask,
        token_weights(mask, config.aggregation, learner.max_response),
        clip_low=config.clip_low,
        clip_high=config.clip_high,
        importance_cap=config.importance_cap if recomputed else None,
        kl_estimator=config.kl_estimator,
    )


def cross_entropy(learner: Any, batch: MicroBatch) -> LossTerms:
    """The objective of imitation: minus the log-probabilities of the responses."""
    logprobs, _ = response_logprobs(learner.model, batch.tokens, temperature=1.0)
    loss = -logprobs.masked_fill(~batch.tokens.response_mask, 0.0).sum()
    zero = loss.new_zeros(())
    return LossTerms(loss, zero, zero, zero, zero, zero)


# The learner divides the sums by what `loss.normaliser` says.
Objective = Callable[[Any, MicroBatch], LossTerms]

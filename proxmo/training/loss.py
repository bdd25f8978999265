"""The clipped policy objective and its KL penalty, as pure functions on token arrays (B, L)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class LossTerms:
    """Sums over a micro-batch: weighted ones for the objective, plain ones for the metrics."""

    policy: Tensor
    kl: Tensor
    entropy: Tensor
    plain_entropy: Tensor
    clipped: Tensor
    sampler_gap: Tensor

    def total(self, kl_coef: float, entropy_coef: float) -> Tensor:
        """The objective to minimise: policy + kl_coef * KL - entropy_coef * entropy."""
        return self.policy + kl_coef * self.kl - entropy_coef * self.entropy


def clipped_policy_loss(
    logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, *, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """Token-level clipped surrogate, -min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A).

    Args:
        logprobs: (B, L) log-probabilities under the weights being trained.
        old_logprobs: (B, L) log-probabilities when the tokens were sampled.
        advantages: (B, L) or (B, 1).
        clip_low: distance of the lower clip bound from 1.
        clip_high: distance of the upper clip bound from 1.

    Returns:
        The loss per token, and whether its clip was active; both (B, L).

    Source: Schulman et al. 2017 (arXiv 1707.06347), eq. 7; separate bounds as in DAPO (arXiv
        2503.14476).
    """
    import torch

    ratio = torch.exp(logprobs - old_logprobs)
    free = -ratio * advantages
    clipped = -ratio.clamp(1.0 - clip_low, 1.0 + clip_high) * advantages
    return torch.maximum(free, clipped), clipped > free


def token_entropy(distribution: Tensor) -> Tensor:
    """Entropy in nats of each distribution, (B, L), from the log-probabilities (B, L, V)."""
    return -(distribution.exp() * distribution).sum(-1)


def kl_divergence(logprobs: Tensor, reference_logprobs: Tensor, estimator: str) -> Tensor:
    """Estimates KL(policy || reference) per token, with d = reference - policy.

    k2 = d^2 / 2 has the gradient of the KL divergence in expectation, -d grad(policy), over tokens
    that the policy samples. k3 = exp(d) - d - 1 >= 0 has its value in expectation; the gradient of
    k3, (1 - exp(d)) grad(policy), is that of KL(reference || policy). The plain k1 = -d is no loss:
    its gradient is 0 in expectation.

    Source: Schulman, "Approximating KL divergence" (2020); k3 as in GRPO (arXiv 2402.03300, eq. 4).
    """
    import torch

    gap = reference_logprobs - logprobs
    if estimator == "k2":
        return 0.5 * gap.square()
    return torch.exp(gap) - gap - 1.0


def importance_weights(old_logprobs: Tensor, sampler_logprobs: Tensor, cap: float) -> Tensor:
    """min(exp(trainer - sampler), cap) per token: corrects for sampling by another distribution.

    Args:
        old_logprobs: (B, L) under the trainer's weights before the update.
        sampler_logprobs: (B, L) as the sampler gave them.
        cap: largest weight.

    Source: truncated importance sampling, Ionides 2008; for rollouts of another engine Yao et al.
        2025, "Your efficient RL framework secretly brings you off-policy RL training".
    """
    import torch

    return torch.exp(old_logprobs - sampler_logprobs).clamp_max(cap)


def token_weights(mask: Tensor, aggregation: str, longest: int) -> Tensor:
    """The weight of each response token in its minibatch's sum, (B, L); see `normaliser`.

    Args:
        mask: (B, L), true for response tokens.
        aggregation: "token" and "constant" count every token alike, "sequence" each response once.
        longest: most tokens of a response.
    """
    weights = mask.float()
    if aggregation == "sequence":
        return weights / weights.sum(-1, keepdim=True).clamp_min(1.0)
    if aggregation == "constant":
        return weights / longest
    return weights


def normaliser(aggregation: str, *, responses: int, tokens: int) -> int:
    """The divisor of the weighted sum over a minibatch: its tokens or its responses."""
    return tokens if aggregation == "token" else responses


def loss_terms(
    logprobs: Tensor,
    entropy: Tensor,
    old_logprobs: Tensor,
    sampler_logprobs: Tensor,
    reference_logprobs: Tensor | None,
    advantages: Tensor,
    mask: Tensor,
    weights: Tensor,
    *,
    clip_low: float,
    clip_high: float,
    importance_cap: float | None = None,
    kl_estimator: str = "k3",
) -> LossTerms:
    """Sums every term over the tokens where `mask` (B, L) is true, the objective's by `weights`.

    `advantages` is (B,), one per step; all others are (B, L). With `importance_cap` the policy term
    of a token is multiplied by its truncated importance weight.
    """
    # Sets padding to 0 before any exp: an overflow there would survive the mask as nan.
    logprobs = logprobs.masked_fill(~mask, 0.0)
    old_logprobs = old_logprobs.masked_fill(~mask, 0.0)
    sampler_logprobs = sampler_logprobs.masked_fill(~mask, 0.0)
    policy, clipped = clipped_policy_loss(
        logprobs, old_logprobs, advantages.unsqueeze(-1), clip_low=clip_low, clip_high=clip_high
    )
    if importance_cap is not None:
        policy = policy * importance_weights(old_logprobs, sampler_logprobs, importance_cap)
    kl = logprobs.new_zeros(())
    if reference_logprobs is not None:
        reference_logprobs = reference_logprobs.masked_fill(~mask, 0.0)
        kl = (kl_divergence(logprobs, reference_logprobs, kl_estimator) * weights).sum()
    return LossTerms(
        policy=(policy * weights).sum(),
        kl=kl,
        entropy=(entropy * weights).sum(),
        plain_entropy=(entropy * mask).detach().sum(),
        clipped=(clipped & mask).sum(),
        sampler_gap=(old_logprobs - sampler_logprobs).detach().abs().sum()
        if importance_cap is not None
        else (logprobs - sampler_logprobs).detach().abs().sum(),
    )

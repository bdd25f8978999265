"""The clipped policy objective and its KL penalty, as pure functions on token arrays (B, L)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class LossTerms:
    """Sums over the tokens of a micro-batch; over the tokens of the minibatch they are means."""

    policy: Tensor
    kl: Tensor
    entropy: Tensor
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


def kl_k3(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """Estimates KL(policy || reference) per token: exp(d) - d - 1 >= 0, d = reference - policy.

    Source: Schulman, "Approximating KL divergence" (2020), estimator k3; used by GRPO (arXiv
        2402.03300, eq. 4).
    """
    import torch

    gap = reference_logprobs - logprobs
    return torch.exp(gap) - gap - 1.0


def loss_terms(
    logprobs: Tensor,
    entropy: Tensor,
    old_logprobs: Tensor,
    reference_logprobs: Tensor | None,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip_low: float,
    clip_high: float,
) -> LossTerms:
    """Sums every term over the tokens where `mask` (B, L) is true.

    `advantages` is (B,), one per step; all others are (B, L).
    """
    # Padding is put to 0 before any exp: an overflow there would survive the product with the mask
    # as nan.
    logprobs = logprobs.masked_fill(~mask, 0.0)
    old_logprobs = old_logprobs.masked_fill(~mask, 0.0)
    policy, clipped = clipped_policy_loss(
        logprobs, old_logprobs, advantages.unsqueeze(-1), clip_low=clip_low, clip_high=clip_high
    )
    kl = (
        logprobs.new_zeros(())
        if reference_logprobs is None
        else kl_k3(logprobs, reference_logprobs.masked_fill(~mask, 0.0)).sum()
    )
    return LossTerms(
        policy=(policy * mask).sum(),
        kl=kl,
        entropy=(entropy * mask).sum(),
        clipped=(clipped & mask).sum(),
        sampler_gap=(logprobs - old_logprobs).detach().abs().sum(),
    )

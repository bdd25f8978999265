"""The learner: policy, frozen reference and optimiser, and what one update does to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from proxmo.config import OptimConfig
from proxmo.training.batching import Sample, TokenBatch, collate, micro_batches, reply_logprobs
from proxmo.training.loss import LossTerms, loss_terms, token_entropy
from proxmo.types import Step

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray


# What a minibatch sums over its tokens.
SUMMED = ("policy", "kl", "entropy", "clipped", "sampler_gap")


class Learner:
    """Trains a causal language model in place.

    Weights of half precision have float32 copies that the optimiser works on: in bfloat16 a weight
    of 0.02 moves in steps of 0.0001, so that updates of 0.000001 would be lost one by one.

    Args:
        model: what is trained.
        reference: frozen model of the KL penalty, or None for no penalty.
        config: objective, rates and batch sizes.
        temperature: of the sampler; the objective is that of the distribution sampled from.
        pad_id: padding token.
    """

    def __init__(
        self,
        model: Any,
        reference: Any | None,
        config: OptimConfig,
        *,
        temperature: float,
        pad_id: int,
    ) -> None:
        import torch

        self.model = model
        self.reference = reference
        self.config = config
        self.temperature = temperature
        self.pad_id = pad_id
        self._copied = [w for w in model.parameters() if w.dtype != torch.float32]
        self._copies = [w.detach().to(torch.float32, copy=True) for w in self._copied]
        self._trained = [w for w in model.parameters() if w.dtype == torch.float32] + self._copies
        self.optimizer = torch.optim.AdamW(
            self._trained, lr=config.lr, weight_decay=config.weight_decay
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / max(1, config.warmup_steps))
        )

    def state(self) -> dict[str, Any]:
        """What a resumed run needs besides the weights."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "copies": self._copies,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Takes over what `state` returned."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        # A run that goes on in another precision has none, or needs none.
        for copy, saved in zip(self._copies, state["copies"], strict=False):
            copy.copy_(saved)

    def update(
        self, steps: Sequence[Step], advantages: NDArray[np.floating], *, rng: np.random.Generator
    ) -> dict[str, float]:
        """Makes `epochs` passes of `minibatches` optimiser steps; returns `loss/*` and `optim/*`.

        Args:
            steps: S step samples.
            advantages: (S,) one per step, shared by the tokens of its reply.
            rng: decides which steps share a minibatch.
        """
        samples: list[Sample] = [(step.prompt_ids, step.response_ids) for step in steps]
        parts = max(1, min(self.config.minibatches, len(steps)))
        rounds: list[dict[str, float]] = []
        # Not in training mode: with dropout the policy would not be the one that was sampled from.
        self.model.eval()
        for _ in range(self.config.epochs):
            for rows in np.array_split(rng.permutation(len(steps)), parts):
                rounds.append(self._minibatch(steps, samples, advantages, rows.tolist()))
        return _means(rounds) | {"optim/lr": float(self.schedule.get_last_lr()[0])}

    def _minibatch(
        self,
        steps: Sequence[Step],
        samples: list[Sample],
        advantages: NDArray[np.floating],
        rows: list[int],
    ) -> dict[str, float]:
        """One optimiser step; every token weighs 1 / tokens, whichever micro-batch it falls in."""
        config = self.config
        tokens = sum(len(samples[i][1]) for i in rows)
        if self.reference is None and config.entropy_coef == 0.0:
            # Without a KL or entropy term a step of zero advantage has zero gradient: leaving it
            # out changes nothing but the time (`tokens` still counts its tokens).
            rows = [i for i in rows if advantages[i] != 0.0]
        sums = dict.fromkeys(SUMMED, 0.0)
        for chunk in micro_batches(samples, rows, token_budget=config.micro_batch_tokens):
            terms = self._terms(
                [steps[i] for i in chunk], [samples[i] for i in chunk], advantages[chunk]
            )
            (terms.total(config.kl_coef, config.entropy_coef) / tokens).backward()
            self._collect_gradients()
            for name in SUMMED:
                sums[name] += getattr(terms, name).item()
        trained = sum(len(samples[i][1]) for i in rows)
        return sums | {
            "tokens": tokens,
            "trained": trained,
            "grad_norm": self._optimizer_step(),
        }

    def _terms(
        self, steps: list[Step], samples: list[Sample], advantages: NDArray[np.floating]
    ) -> LossTerms:
        import torch

        batch = collate(samples, pad_id=self.pad_id, device=self.model.device)
        logprobs, distribution = reply_logprobs(self.model, batch, temperature=self.temperature)
        # A metric alone needs no gradient, which costs as much memory as the distribution itself.
        with torch.set_grad_enabled(self.config.entropy_coef != 0.0):
            entropy = token_entropy(distribution)
        anchor = None
        if self.reference is not None:
            with torch.no_grad():
                anchor, _ = reply_logprobs(self.reference, batch, temperature=self.temperature)
        return loss_terms(
            logprobs,
            entropy,
            _pad_right([step.logprobs for step in steps], batch, logprobs),
            anchor,
            torch.as_tensor(advantages, dtype=logprobs.dtype, device=logprobs.device),
            batch.reply_mask,
            clip_low=self.config.clip_low,
            clip_high=self.config.clip_high,
        )

    def _collect_gradients(self) -> None:
        """Adds the gradients of half-precision weights to those of their copies."""
        for weight, copy in zip(self._copied, self._copies, strict=True):
            if weight.grad is not None:
                gradient = weight.grad.to(copy.dtype)
                copy.grad = gradient if copy.grad is None else copy.grad.add_(gradient)
                weight.grad = None

    def _optimizer_step(self) -> float:
        """Clips, steps, and returns the norm before clipping; a gradient of nan is not applied."""
        import torch

        norm = float(torch.nn.utils.clip_grad_norm_(self._trained, self.config.max_grad_norm))
        if np.isfinite(norm):
            self.optimizer.step()
            self.schedule.step()
            with torch.no_grad():
                for weight, copy in zip(self._copied, self._copies, strict=True):
                    weight.copy_(copy)
        self.optimizer.zero_grad(set_to_none=True)
        return norm


def _means(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Token means of a few optimiser steps; nan for what no token was looked at for."""
    total = {name: sum(sums[name] for sums in rounds) for name in rounds[0]}
    trained = total["trained"] or float("nan")
    return {
        "loss/policy": total["policy"] / total["tokens"],
        "loss/kl": total["kl"] / max(total["trained"], 1.0),
        "loss/entropy": total["entropy"] / trained,
        "loss/clip_fraction": total["clipped"] / trained,
        "loss/sampler_gap": total["sampler_gap"] / trained,
        "loss/grad_norm": total["grad_norm"] / len(rounds),
    }


def _pad_right(
    rows: Sequence[Sequence[float]], batch: TokenBatch, like: torch.Tensor
) -> torch.Tensor:
    """Pads per-token values to the reply columns of the batch."""
    import torch

    width = batch.reply_mask.shape[1]
    return torch.tensor(
        [list(row) + [0.0] * (width - len(row)) for row in rows],
        dtype=like.dtype,
        device=like.device,
    )

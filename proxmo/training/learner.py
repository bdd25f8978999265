"""The learner: policy, frozen reference and optimiser, and what one update does to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from proxmo.config import OptimConfig
from proxmo.training.batching import Sample, TokenBatch, collate, micro_batches, reply_logprobs
from proxmo.training.loss import loss_terms
from proxmo.types import Step

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray


class Learner:
    """Trains a causal language model in place.

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
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=config.lr, weight_decay=config.weight_decay
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / max(1, config.warmup_steps))
        )

    def state(self) -> dict[str, Any]:
        """What a resumed run needs besides the weights."""
        return {"optimizer": self.optimizer.state_dict(), "schedule": self.schedule.state_dict()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Takes over what `state` returned."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])

    def update(
        self, steps: Sequence[Step], advantages: NDArray[np.floating], *, rng: np.random.Generator
    ) -> dict[str, float]:
        """Makes `epochs` passes of `minibatches` optimiser steps and returns the metrics `loss/*` and `optim/*`.

        Args:
            steps: S step samples.
            advantages: (S,) one per step, shared by the tokens of its reply.
            rng: decides which steps share a minibatch.
        """
        samples: list[Sample] = [(step.prompt_ids, step.response_ids) for step in steps]
        parts = max(1, min(self.config.minibatches, len(steps)))
        rounds: list[tuple[int, dict[str, float]]] = []
        self.model.train()
        for _ in range(self.config.epochs):
            for rows in np.array_split(rng.permutation(len(steps)), parts):
                rounds.append(self._minibatch(steps, samples, advantages, rows.tolist()))
        tokens = max(1, sum(count for count, _ in rounds))
        metrics = {
            name: sum(count * sums[name] for count, sums in rounds) / tokens
            for name in rounds[0][1]
        }
        return metrics | {"optim/lr": float(self.schedule.get_last_lr()[0])}

    def _minibatch(
        self,
        steps: Sequence[Step],
        samples: list[Sample],
        advantages: NDArray[np.floating],
        rows: list[int],
    ) -> tuple[int, dict[str, float]]:
        """One optimiser step; every token weighs 1 / tokens, whichever micro-batch it falls in."""
        config = self.config
        tokens = sum(len(samples[i][1]) for i in rows)
        if self.reference is None and config.entropy_coef == 0.0:
            # Without a KL or entropy term a step of zero advantage has zero gradient: leaving it
            # out changes nothing but the time (`tokens` still counts its tokens).
            rows = [i for i in rows if advantages[i] != 0.0]
        trained = max(1, sum(len(samples[i][1]) for i in rows))
        sums = dict.fromkeys(("policy", "kl", "entropy", "clip_fraction", "sampler_gap"), 0.0)
        for chunk in micro_batches(samples, rows, token_budget=config.micro_batch_tokens):
            terms = self._terms(
                [steps[i] for i in chunk], [samples[i] for i in chunk], advantages[chunk]
            )
            (terms.total(config.kl_coef, config.entropy_coef) / tokens).backward()
            sums["policy"] += float(terms.policy) / tokens
            sums["kl"] += float(terms.kl) / trained
            sums["entropy"] += float(terms.entropy) / trained
            sums["clip_fraction"] += float(terms.clipped) / trained
            sums["sampler_gap"] += float(terms.sampler_gap) / trained
        sums["grad_norm"] = self._optimizer_step()
        return tokens, {f"loss/{name}": value for name, value in sums.items()}

    def _terms(
        self, steps: list[Step], samples: list[Sample], advantages: NDArray[np.floating]
    ) -> Any:
        import torch

        batch = collate(samples, pad_id=self.pad_id, device=self.model.device)
        logprobs, entropy = reply_logprobs(self.model, batch, temperature=self.temperature)
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

    def _optimizer_step(self) -> float:
        """Clips, steps, and returns the gradient norm before clipping; a non-finite gradient is not applied."""
        import torch

        norm = float(
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm)
        )
        if np.isfinite(norm):
            self.optimizer.step()
            self.schedule.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm


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

"""The learner: policy, frozen reference and optimiser, and what one update does to them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from proxmo.config import OptimConfig
from proxmo.distributed import SINGLE, ProcessGroup
from proxmo.errors import TrainingError
from proxmo.policies.batching import (
    Sample,
    TokenBatch,
    collate,
    response_logprobs,
    shared_micro_batches,
)
from proxmo.policies.memory import memory_advice
from proxmo.training.adapters import has_adapters
from proxmo.training.loss import normaliser
from proxmo.training.objectives import MicroBatch, Objective, clipped_policy_gradient
from proxmo.training.schedule import learning_rate
from proxmo.training.sharding import assembled, copy_weights, piece_of, shard, sharded_copy
from proxmo.types import Step

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray


logger = logging.getLogger(__name__)

# The terms of `LossTerms` that a minibatch sums over its tokens.
SUMMED = ("policy", "kl", "plain_entropy", "clipped", "sampler_gap")


class Learner:
    """Trains a causal language model in place.

    The optimiser works on float32 copies of half-precision weights: in bfloat16 a weight of 0.02
    moves in steps of 0.0001, so that updates of 0.000001 would be lost one by one.

    Args:
        model: the model to train.
        reference: frozen model of the KL penalty; None without a penalty, and with adapters, as the
            model without its adapters is then the reference.
        config: rates, batch sizes and coefficients of the objective.
        temperature: of the sampler; the objective uses the distribution that was sampled from.
        pad_id: padding token.
        max_response: most tokens of a response; the aggregation "constant" divides by it.
        processes: the processes that share the work; all make every call, with equal arguments.
        sharded: each process holds a piece of the trained weights (FSDP2) instead of all of them.
        objective: the loss to minimise.
    """

    def __init__(
        self,
        model: Any,
        reference: Any | None,
        config: OptimConfig,
        *,
        temperature: float,
        pad_id: int,
        max_response: int = 1,
        processes: ProcessGroup = SINGLE,
        sharded: bool = False,
        objective: Objective = clipped_policy_gradient,
    ) -> None:
        import torch

        self.processes = processes
        self.whole = model
        if sharded:
            model = sharded_copy(model)
            if reference is not None:
                reference = shard(reference, self.whole.device.type)
        self.model = model
        self.reference = reference
        self.config = config
        self.temperature = temperature
        self.pad_id = pad_id
        self.max_response = max_response
        self._objective = objective
        self._skipped = 0
        weights = [w for w in model.parameters() if w.requires_grad]
        self._copied = [w for w in weights if w.dtype != torch.float32]
        self._copies = [w.detach().to(torch.float32, copy=True) for w in self._copied]
        self._trained = [w for w in weights if w.dtype == torch.float32] + self._copies
        # A checkpoint of half precision does not hold these.
        half = sharded and self.whole.dtype != torch.float32
        self._masters = self._trained if half else self._copies
        self.optimizer = torch.optim.AdamW(
            self._trained, lr=config.lr, weight_decay=config.weight_decay
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: learning_rate(config, step)
        )

    @property
    def sharded(self) -> bool:
        """Whether each process trains its piece of a copy of the model."""
        return self.model is not self.whole

    @property
    def anchored(self) -> bool:
        """Whether the update computes a KL penalty to a reference."""
        return self.config.kl_coef > 0 and (self.reference is not None or has_adapters(self.model))

    def state(self) -> dict[str, Any]:
        """The state a resumed run needs besides the weights, for any number of processes.

        With sharded weights only the main process gets all of it.
        """
        state = {
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "copies": self._masters,
            "skipped": self._skipped,
            # A checkpoint holds them only added to the weights, which loses bits.
            "adapters": {
                name: weight.detach()
                for name, weight in self.model.named_parameters()
                if weight.requires_grad and has_adapters(self.model)
            },
        }
        return assembled(state, keep=self.processes.is_main) if self.sharded else state

    def load_state(self, state: dict[str, Any]) -> None:
        """Continues from what `state` returned."""
        import torch

        moments = {
            number: {name: piece_of(value, self._trained[number]) for name, value in one.items()}
            for number, one in state["optimizer"]["state"].items()
        }
        self.optimizer.load_state_dict({**state["optimizer"], "state": moments})
        self.schedule.load_state_dict(state["schedule"])
        for group in self.optimizer.param_groups:
            # Not the saved rate: the run may have become longer, and its rate then falls later.
            group["lr"] = self.config.lr * learning_rate(self.config, self.schedule.last_epoch)
        self._skipped = int(state.get("skipped", 0))
        adapters = state.get("adapters", {})
        with torch.no_grad():
            # A run that continues in another precision has no copies, or needs none.
            for master, saved in zip(self._masters, state["copies"], strict=False):
                master.copy_(piece_of(saved, master))
            for name, weight in self.model.named_parameters():
                if name in adapters:
                    weight.copy_(piece_of(adapters[name], weight))
        if self.sharded:
            copy_weights(self.model, self.whole)

    def update(
        self, steps: Sequence[Step], advantages: NDArray[np.floating], *, rng: np.random.Generator
    ) -> dict[str, float]:
        """Makes `epochs` passes of `minibatches` optimiser steps; returns `loss/*` and `optim/*`.

        Args:
            steps: S step samples.
            advantages: (S,) one per step, shared by the tokens of its response.
            rng: draws which steps share a minibatch.

        Raises:
            TrainingError: out of memory, or `max_skipped` updates in a row were not finite.
        """
        samples: list[Sample] = [(step.prompt_ids, step.response_ids) for step in steps]
        parts = max(1, min(self.config.minibatches, len(steps)))
        rounds: list[dict[str, float]] = []
        with _as_sampled(self.model), _memory_advice(self.config):
            # With one optimiser step per iteration the old log-probabilities are the present ones.
            once = self.config.epochs * parts == 1
            old = None
            if self.config.old_logprobs == "recomputed" and not once:
                old = self._logprobs(samples)
            for _ in range(self.config.epochs):
                for rows in np.array_split(rng.permutation(len(steps)), parts):
                    rounds.append(self._minibatch(steps, samples, advantages, rows.tolist(), old))
            if self.sharded:
                copy_weights(self.model, self.whole)
        return _means(rounds) | {
            "optim/lr": float(self.schedule.get_last_lr()[0]),
            "optim/skipped_updates": float(sum(not np.isfinite(r["grad_norm"]) for r in rounds)),
        }

    def _logprobs(self, samples: list[Sample]) -> list[list[float]]:
        """Log-probabilities of all responses under the present weights."""
        import torch

        found: dict[int, list[float]] = {}
        with torch.no_grad():
            for chunk, _ in self._passes(samples, range(len(samples))):
                batch = collate(
                    [samples[i] for i in chunk], pad_id=self.pad_id, device=self.model.device
                )
                logprobs, _ = response_logprobs(self.model, batch, temperature=self.temperature)
                for i, row in zip(chunk, logprobs.tolist(), strict=True):
                    found[i] = row[: len(samples[i][1])]
        known = {i: row for part in self.processes.all_gather(found) for i, row in part.items()}
        return [known[i] for i in range(len(samples))]

    def _passes(self, samples: list[Sample], rows: Sequence[int]) -> list[tuple[list[int], bool]]:
        """The micro-batches of this process, and whether each counts."""
        budget = self.config.micro_batch_tokens
        rank, size = self.processes.rank, self.processes.size
        return shared_micro_batches(samples, rows, token_budget=budget, rank=rank, size=size)

    def _minibatch(
        self,
        steps: Sequence[Step],
        samples: list[Sample],
        advantages: NDArray[np.floating],
        rows: list[int],
        old: list[list[float]] | None,
    ) -> dict[str, float]:
        """One optimiser step; the weight of a token does not depend on its micro-batch."""
        config = self.config
        tokens = sum(len(samples[i][1]) for i in rows)
        whole = normaliser(config.aggregation, responses=len(rows), tokens=tokens)
        if not self.anchored and config.entropy_coef == 0.0:
            # Without a KL or entropy term a step of zero advantage has zero gradient. Skipping it
            # only saves time (`tokens` still counts its tokens).
            rows = [i for i in rows if advantages[i] != 0.0]
        sums = dict.fromkeys(SUMMED, 0.0)
        for chunk, counts in self._passes(samples, rows):
            batch = self._collate(
                [steps[i] for i in chunk],
                [samples[i] for i in chunk],
                advantages[chunk],
                None if old is None else [old[i] for i in chunk],
            )
            terms = self._objective(self, batch)
            loss = terms.total(config.kl_coef, config.entropy_coef) / whole
            (loss if counts else 0.0 * loss).backward()
            self._collect_gradients()
            for name in SUMMED if counts else ():
                sums[name] += getattr(terms, name).item()
        self.processes.all_reduce_gradients(self._trained)
        trained = sum(len(samples[i][1]) for i in rows)
        return self.processes.all_reduce(sums) | {
            "whole": whole,
            "tokens": tokens,
            "trained": trained,
            "grad_norm": self._optimizer_step(),
        }

    def _collate(
        self,
        steps: list[Step],
        samples: list[Sample],
        advantages: NDArray[np.floating],
        old: list[list[float]] | None,
    ) -> MicroBatch:
        import torch

        tokens = collate(samples, pad_id=self.pad_id, device=self.model.device)
        return MicroBatch(
            tokens=tokens,
            advantages=torch.as_tensor(advantages, dtype=torch.float32, device=self.model.device),
            sampled=_pad_right([step.logprobs for step in steps], tokens),
            old=None if old is None else _pad_right(old, tokens),
        )

    def reference_logprobs(self, batch: TokenBatch) -> torch.Tensor:
        """Log-probabilities under the reference, (B, L)."""
        import torch

        with torch.no_grad():
            if self.reference is not None:
                return response_logprobs(self.reference, batch, temperature=self.temperature)[0]
            with self.model.disable_adapter():
                return response_logprobs(self.model, batch, temperature=self.temperature)[0]

    def _collect_gradients(self) -> None:
        """Adds the gradients of half-precision weights to those of their copies."""
        for weight, copy in zip(self._copied, self._copies, strict=True):
            if weight.grad is not None:
                gradient = weight.grad.to(copy.dtype)
                copy.grad = gradient if copy.grad is None else copy.grad.add_(gradient)
                weight.grad = None

    def _optimizer_step(self) -> float:
        """Clips and applies the gradient if it is finite; returns its norm before clipping."""
        import torch

        total = torch.nn.utils.clip_grad_norm_(self._trained, self.config.max_grad_norm)
        norm = float(assembled(total, keep=True) if self.sharded else total)
        self._skipped = 0 if np.isfinite(norm) else self._skipped + 1
        if self._skipped >= self.config.max_skipped:
            raise TrainingError(
                f"{self._skipped} updates in a row had no finite gradient and were not applied; "
                "lower optim.lr, or look at loss/* and the rewards in metrics.jsonl "
                "(optim.max_skipped sets how many are tolerated)"
            )
        if np.isfinite(norm):
            self.optimizer.step()
            self.schedule.step()
            with torch.no_grad():
                for weight, copy in zip(self._copied, self._copies, strict=True):
                    weight.copy_(copy)
        self.optimizer.zero_grad(set_to_none=True)
        return norm


@contextmanager
def _as_sampled(model: Any) -> Iterator[None]:
    """Disables dropout, so that we train the policy we sampled from.

    Gradient checkpointing works in training mode only; there we set every dropout rate to 0.
    """
    checkpointing = any(getattr(m, "gradient_checkpointing", False) for m in model.modules())
    if checkpointing:
        for module in model.modules():
            for name in ("p", "dropout", "attention_dropout", "resid_dropout"):
                if isinstance(getattr(module, name, None), float):
                    setattr(module, name, 0.0)
    model.train(checkpointing)
    try:
        yield
    finally:
        model.eval()


def _memory_advice(config: OptimConfig) -> AbstractContextManager[None]:
    """Says which setting to change when memory runs out."""
    return memory_advice(
        TrainingError,
        f"in the update: lower optim.micro_batch_tokens (now {config.micro_batch_tokens}), set "
        "model.gradient_checkpointing = true, or train adapters with model.lora_rank",
    )


def _means(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means per token over a few optimiser steps; nan if no token was trained on."""
    total = {name: sum(sums[name] for sums in rounds) for name in rounds[0]}
    trained = total["trained"] or float("nan")
    return {
        "loss/policy": total["policy"] / total["whole"],
        "loss/kl": total["kl"] / total["whole"],
        "loss/entropy": total["plain_entropy"] / trained,
        "loss/clip_fraction": total["clipped"] / trained,
        "loss/sampler_gap": total["sampler_gap"] / trained,
        "loss/grad_norm": total["grad_norm"] / len(rounds),
    }


def _pad_right(rows: Sequence[Sequence[float]], batch: TokenBatch) -> torch.Tensor:
    """Pads per-token values to the response columns of the batch."""
    import torch

    width = batch.response_mask.shape[1]
    padded = [[*row, *[0.0] * (width - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.float32, device=batch.ids.device)

"""The sampler of a run: a policy with the trainer's weights, checked after every update."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from proxmo.config import Config
from proxmo.distributed import SINGLE, ProcessGroup
from proxmo.errors import RolloutError, TrainingError
from proxmo.policies.batching import Sample, collate, response_logprobs
from proxmo.policies.engines import NO_ENGINE, Engine, EngineRequest, find_engine
from proxmo.policies.transformers import TransformersPolicy, end_token_ids
from proxmo.training.adapters import export_model

# Prompts and response tokens to compare log-probabilities on after an update.
PROBES = 4
PROBE_TOKENS = 4
# Prompt of the comparison before the first rollout.
_FIRST_PROBE = "look around"
# Largest mean gap of log-probabilities that rounding explains, by parameter type.
TOLERANCE = {"float32": 1e-3, "bfloat16": 5e-2}


class Sampler:
    """Samples with the weights that are trained; `weight_version` is the number of updates.

    Args:
        config: of the run.
        model: the model in training.
        tokenizer: its tokenizer.
        source: directory or hub id the model was loaded from; an engine starts with it.
        processes: the processes that sample together, each with an engine or all with one server.

    Raises:
        RolloutError: the engine does not start.
        MissingDependencyError: it is not installed.
    """

    def __init__(
        self,
        config: Config,
        model: Any,
        tokenizer: Any,
        source: str,
        processes: ProcessGroup = SINGLE,
    ) -> None:
        self.processes = processes
        self.model = model
        self.config = config
        self.temperature = config.sampling.temperature
        self._engine = _start_engine(config, model, tokenizer, source)
        self._shared = getattr(self._engine, "shared", False)
        self.policy: Any = self._engine or TransformersPolicy(model, tokenizer)

    def begin(self, version: int) -> None:
        """Makes sure that the first responses come from the trainer's weights.

        An engine has started with them; a shared server has those of the run that used it last.

        Args:
            version: updates done.

        Raises:
            RolloutError: sampler and trainer do not have the same weights.
            TrainingError: the trainer's weights are not finite.
        """
        self.policy.weight_version = version
        if self._engine is not None and self._shared:
            self._hand_over(self._engine, version)
        self.check(version, [self.policy.tokenizer.encode(_FIRST_PROBE)])

    def rest(self) -> None:
        """Leaves the device to the training, unless episodes are played meanwhile."""
        if self._engine is not None and self.config.rollout.lag == 0:
            self._engine.sleep()

    def update(self, version: int, probes: Sequence[Sequence[int]]) -> dict[str, float]:
        """Hands over the trained weights and compares; no request may be in flight.

        Args:
            version: updates done.
            probes: prompts to compare log-probabilities on.

        Returns:
            `rollout/sync_gap`, the mean absolute difference.

        Raises:
            RolloutError: sampler and trainer do not have the same weights.
            TrainingError: the update broke the trainer's weights.
        """
        if self._engine is None:
            self.policy.weight_version = version
        else:
            if self.config.rollout.lag == 0:
                self._engine.wake()
            self._hand_over(self._engine, version)
        return {"rollout/sync_gap": max(self.processes.all_gather(self.check(version, probes)))}

    def _hand_over(self, engine: Engine, version: int) -> None:
        """The main process writes the weights, and every engine reads them."""
        shared = Path("/dev/shm")
        with tempfile.TemporaryDirectory(
            prefix="proxmo-weights-", dir=shared if os.access(shared, os.W_OK) else None
        ) as own:
            if self.processes.is_main:
                export_model(self.model, Path(own))
            directory = Path(self.processes.broadcast(own))
            if self.processes.is_main or not self._shared:
                engine.load_weights(directory, version)
            else:
                engine.weight_version = version
            self.processes.all_gather(None)  # until all have read

    def check(self, version: int, probes: Sequence[Sequence[int]]) -> float:
        """Mean gap of the log-probabilities of a few sampled tokens; see `update`."""
        import torch

        prompts = list(probes)[:PROBES]
        responses = self.policy.generate(
            prompts,
            temperature=self.temperature,
            max_new_tokens=PROBE_TOKENS,
            seed=(version,),
        )
        failed = [response.error for response in responses if response.error is not None]
        if failed:
            raise RolloutError(f"the sampler does not answer when compared: {failed[0]}")
        samples: list[Sample] = [(p, r.ids) for p, r in zip(prompts, responses, strict=True)]
        pad = self.policy.tokenizer.pad_token_id
        batch = collate(samples, pad_id=pad, device=self.model.device)
        with torch.no_grad():
            ours, _ = response_logprobs(self.model, batch, temperature=self.temperature)
        if not ours.isfinite().all():
            raise TrainingError(
                f"after update {version} the model's log-probabilities are not finite: the update "
                "has broken its weights; lower optim.lr (earlier checkpoints are intact)"
                if version
                else "the log-probabilities of the model are not finite before any update: its "
                "weights are broken, or too large for model.dtype"
            )
        gaps = [
            np.abs(row[: len(response.ids)] - np.array(response.logprobs))
            for row, response in zip(ours.float().cpu().numpy(), responses, strict=True)
        ]
        gap = float(np.concatenate(gaps).mean())
        limit = self.config.rollout.sync_tolerance
        limit = limit or TOLERANCE[str(self.model.dtype).removeprefix("torch.")]
        if not gap <= limit:
            raise RolloutError(
                f"after update {version} the sampler's log-probabilities differ from the trainer's "
                f"by {gap:.3g} on average (rollout.sync_tolerance is {limit:g}): it does not have "
                "the trained weights, or computes otherwise; nothing sampled so can be trained on"
            )
        return gap

    def close(self) -> None:
        """Ends the engine."""
        if self._engine is not None:
            self._engine.close()


def _start_engine(config: Config, model: Any, tokenizer: Any, source: str) -> Engine | None:
    """The engine of a run, None if the run samples with the model itself."""
    if config.rollout.engine == NO_ENGINE:
        return None
    request = EngineRequest(
        source=source,
        tokenizer=tokenizer,
        end_ids=tuple(sorted(end_token_ids(model, tokenizer))),
        dtype=str(model.dtype).removeprefix("torch."),
        device=model.device.type,
        max_tokens=config.prompt.max_prompt_tokens + config.sampling.max_new_tokens,
        rollout=config.rollout,
    )
    return find_engine(config.rollout.engine)(request)

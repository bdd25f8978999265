"""The sampler of a run: a policy that has the trainer's weights, and the proof that it has them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from proxmo.config import Config
from proxmo.distributed import SINGLE, ProcessGroup
from proxmo.errors import RolloutError, TrainingError
from proxmo.policies.base import Policy
from proxmo.policies.transformers import TransformersPolicy, end_token_ids
from proxmo.training.adapters import export_model
from proxmo.training.batching import Sample, collate, reply_logprobs

# Prompts and reply tokens that are compared after an update.
PROBES = 4
PROBE_TOKENS = 4
# What is compared on before there is any prompt.
_FIRST_PROBE = "look around"
# Mean gap of log-probabilities that rounding explains, by parameter type.
TOLERANCE = {"float32": 1e-3, "bfloat16": 5e-2}


class SleepingPolicy(Policy, Protocol):
    """A policy with weights of its own."""

    weight_version: int

    def load_weights(self, directory: Path, version: int) -> None:
        """Takes over the weights of a directory of safetensors."""
        ...

    def sleep(self) -> None:
        """Leaves the device to the trainer."""
        ...

    def wake(self) -> None:
        """Takes it back."""
        ...

    def close(self) -> None:
        """Ends what the policy has started."""
        ...


class Sampler:
    """Samples with the weights that are trained; `weight_version` is the number of updates.

    Args:
        config: of the run.
        model: what is trained.
        tokenizer: its tokenizer.
        source: directory or hub id the model was loaded from; a vLLM engine starts with it.
        processes: the processes that sample together, with an engine each or all with one server.

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
        self._remote: SleepingPolicy | None = _vllm(config, model, tokenizer, source)
        self.policy: Any = self._remote or TransformersPolicy(model, tokenizer)

    def begin(self, version: int) -> None:
        """Makes sure that the first replies, too, are sampled with the trainer's weights.

        An engine has started with them. A server has those of whatever run used it last.

        Args:
            version: updates done.

        Raises:
            RolloutError: sampler and trainer do not have the same weights.
            TrainingError: the trainer's are no numbers.
        """
        self.policy.weight_version = version
        if self._remote is not None and self.config.rollout.engine == "vllm-server":
            self._hand_over(self._remote, version)
        self.check(version, [self.policy.tokenizer.encode(_FIRST_PROBE)])

    def rest(self) -> None:
        """Leaves the device to the training; not where episodes are played beside it."""
        if self._remote is not None and self.config.rollout.lag == 0:
            self._remote.sleep()

    def update(self, version: int, probes: Sequence[Sequence[int]]) -> dict[str, float]:
        """Hands over the trained weights and compares; nothing may be in flight.

        Args:
            version: updates done.
            probes: some prompts to compare the log-probabilities on.

        Returns:
            `rollout/sync_gap`, the mean absolute difference.

        Raises:
            RolloutError: sampler and trainer do not have the same weights.
            TrainingError: the trainer's are no numbers any more.
        """
        if self._remote is None:
            self.policy.weight_version = version
        else:
            if self.config.rollout.lag == 0:
                self._remote.wake()
            self._hand_over(self._remote, version)
        return {"rollout/sync_gap": max(self.processes.all_gather(self.check(version, probes)))}

    def _hand_over(self, policy: SleepingPolicy, version: int) -> None:
        """The first process writes the weights, and every engine reads them."""
        shared = Path("/dev/shm")
        with tempfile.TemporaryDirectory(
            prefix="proxmo-weights-", dir=shared if os.access(shared, os.W_OK) else None
        ) as own:
            if self.processes.is_main:
                export_model(self.model, Path(own))
            directory = Path(self.processes.broadcast(own))
            if self.processes.is_main or self.config.rollout.engine != "vllm-server":
                policy.load_weights(directory, version)
            else:
                policy.weight_version = version
            self.processes.all_gather(None)  # until all have read

    def check(self, version: int, probes: Sequence[Sequence[int]]) -> float:
        """Mean gap of the log-probabilities of a few sampled tokens; see `update`."""
        import torch

        prompts = list(probes)[:PROBES]
        replies = self.policy.generate(
            prompts,
            temperature=self.temperature,
            max_new_tokens=PROBE_TOKENS,
            seed=(version,),
        )
        failed = [reply.error for reply in replies if reply.error is not None]
        if failed:
            raise RolloutError(f"the sampler does not answer when compared: {failed[0]}")
        samples: list[Sample] = [(p, r.ids) for p, r in zip(prompts, replies, strict=True)]
        pad = self.policy.tokenizer.pad_token_id
        batch = collate(samples, pad_id=pad, device=self.model.device)
        with torch.no_grad():
            ours, _ = reply_logprobs(self.model, batch, temperature=self.temperature)
        if not ours.isfinite().all():
            raise TrainingError(
                f"after update {version} the model's log-probabilities are not finite: the update "
                "has broken its weights; lower optim.lr (what was saved before is intact)"
                if version
                else "the log-probabilities of the model are not finite before any update: its "
                "weights are broken, or too large for model.dtype"
            )
        gaps = [
            np.abs(row[: len(reply.ids)] - np.array(reply.logprobs))
            for row, reply in zip(ours.float().cpu().numpy(), replies, strict=True)
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
        if self._remote is not None:
            self._remote.close()


def _vllm(config: Config, model: Any, tokenizer: Any, source: str) -> SleepingPolicy | None:
    """The vLLM policy a run asks for, None when it samples with the model itself."""
    rollout = config.rollout
    ends = sorted(end_token_ids(model, tokenizer))
    if rollout.engine == "vllm-server":
        from proxmo.policies.vllm_server import VllmServerPolicy

        return VllmServerPolicy(str(rollout.engine_url), tokenizer, end_ids=ends)
    if rollout.engine == "vllm":
        from proxmo.policies.vllm import VllmPolicy

        options = dict(rollout.engine_options)
        if model.device.type == "cuda" and rollout.lag == 0:
            options.setdefault("enable_sleep_mode", True)
        return VllmPolicy(
            source,
            tokenizer,
            end_ids=ends,
            dtype=str(model.dtype).removeprefix("torch."),
            max_tokens=config.prompt.max_prompt_tokens + config.sampling.max_new_tokens,
            gpu_memory=rollout.gpu_memory,
            **options,
        )
    return None

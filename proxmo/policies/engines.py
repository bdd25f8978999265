"""Engines: policies with their own copy of the weights, found by name.

`rollout.engine` names one of `ENGINES`, or `module:function` for an engine of your own: a function
that takes an `EngineRequest` and returns an `Engine`. With "transformers" there is no engine: the
trained model itself samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from proxmo.config import RolloutConfig
from proxmo.credit.registry import find_callable
from proxmo.policies.base import Policy

NO_ENGINE = "transformers"
ENGINES = {
    "vllm": "proxmo.policies.vllm:VllmPolicy",
    "vllm-server": "proxmo.policies.vllm_server:VllmServerPolicy",
}


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """The settings an engine starts with.

    Attributes:
        source: directory or hub id of the weights to start with.
        tokenizer: the model's tokenizer.
        end_ids: tokens that end a response.
        dtype: type of the weights, as torch names it.
        device: type of the trainer's device, "cpu" or "cuda".
        max_tokens: longest prompt and response together.
        rollout: engine_url, engine_options, gpu_memory, lag.
    """

    source: str
    tokenizer: Any
    end_ids: tuple[int, ...]
    dtype: str
    device: str
    max_tokens: int
    rollout: RolloutConfig


class Engine(Policy, Protocol):
    """A policy with its own copy of the weights.

    Two optional attributes, False where they are missing: `concurrent` says that many threads may
    call `generate` at the same time, `shared` that all processes use the same server, which may
    start with the weights of another run.
    """

    weight_version: int

    def load_weights(self, directory: Path, version: int) -> None:
        """Loads the safetensors in a directory; later responses carry this weight version."""
        ...

    def sleep(self) -> None:
        """Frees the device while the trainer updates; may do nothing."""
        ...

    def wake(self) -> None:
        """Takes the device back."""
        ...

    def close(self) -> None:
        """Ends everything the engine has started."""
        ...


def find_engine(name: str) -> Callable[[EngineRequest], Engine]:
    """The function that starts an engine.

    Raises:
        ConfigError: the module cannot be imported.
        UnknownNameError: the module has no such function.
    """
    return find_callable(ENGINES.get(name, name), "rollout engine")

"""What each value of a configuration may be: ranges and choices, checked before anything runs."""

from __future__ import annotations

import math
import re
from typing import Any

from proxmo.config import Config
from proxmo.errors import ConfigError, UnknownNameError

# key -> (least, is the least itself allowed, largest or None)
_RANGES: dict[str, tuple[float, bool, float | None]] = {
    "seed": (0, True, None),
    "env.max_steps": (1, True, None),
    "prompt.history": (0, True, None),
    "prompt.max_prompt_tokens": (1, True, None),
    "sampling.temperature": (0, False, None),
    "sampling.max_new_tokens": (1, True, None),
    "model.lora_rank": (0, True, None),
    "model.lora_alpha": (1, True, None),
    "rollout.tasks": (1, True, None),
    "rollout.group_size": (1, True, None),
    "rollout.invalid_penalty": (0, True, None),
    "rollout.gpu_memory": (0, False, 1),
    "rollout.max_live": (1, True, None),
    "rollout.episode_timeout_s": (0, False, None),
    "rollout.retries": (0, True, None),
    "rollout.lag": (0, True, 1),
    "rollout.resample": (0, True, None),
    "rollout.sync_tolerance": (0, False, None),
    "credit.gamma": (0, True, 1),
    "credit.omega": (0, True, None),
    "optim.iterations": (0, True, None),
    "optim.lr": (0, True, None),
    "optim.weight_decay": (0, True, None),
    "optim.warmup_steps": (0, True, None),
    "optim.max_grad_norm": (0, False, None),
    "optim.clip_low": (0, False, 1),
    "optim.clip_high": (0, False, None),
    "optim.kl_coef": (0, True, None),
    "optim.entropy_coef": (0, True, None),
    "optim.importance_cap": (0, False, None),
    "optim.value_lr": (0, True, None),
    "optim.value_epochs": (1, True, None),
    "optim.value_clip": (0, False, None),
    "optim.max_skipped": (1, True, None),
    "optim.minibatches": (1, True, None),
    "optim.epochs": (1, True, None),
    "optim.micro_batch_tokens": (1, True, None),
    "eval.episodes": (1, True, None),
    "eval.every": (0, True, None),
    "eval.temperature": (0, True, None),
    "checkpoint.every": (1, True, None),
    "checkpoint.keep": (1, True, None),
}
_CHOICES = {
    "model.dtype": ("auto", "float32", "bfloat16"),
    "model.parallel": ("data", "fsdp"),
    "prompt.style": ("think", "terse", "bare"),
    "optim.lr_schedule": ("constant", "linear", "cosine"),
    "optim.kl_estimator": ("k1", "k2", "k3"),
    "optim.aggregation": ("token", "sequence", "constant"),
    "optim.old_logprobs": ("sampler", "recomputed"),
    "rollout.engine": ("transformers", "vllm", "vllm-server"),
}
_NOT_EMPTY = ("env.id", "env.split", "env.data", "model.name", "credit.method", "eval.split")
_DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")


def check_values(config: Config) -> None:
    """Raise ConfigError for the first value that no run can use."""
    for key, (least, inclusive, largest) in _RANGES.items():
        value = _get(config, key)
        if value is not None:
            _check_range(key, value, least, inclusive, largest)
    for key, choices in _CHOICES.items():
        # An engine of the user's own is module:name.
        own = key == "rollout.engine" and ":" in config.rollout.engine
        if _get(config, key) not in choices and not own:
            raise UnknownNameError(key, _get(config, key), choices)
    for key in _NOT_EMPTY:
        value = _get(config, key)
        if value is not None and not value.strip():
            raise ConfigError(f"{key} is empty, expected a name; leave it out for the default")
    for name in ("gamma", "omega"):
        if name in config.credit.options:
            raise ConfigError(f"credit.options.{name} has a key of its own: set credit.{name}")
    engine, url = config.rollout.engine, config.rollout.engine_url
    if ":" not in engine and (engine == "vllm-server") != (url is not None):
        raise ConfigError(
            f"rollout.engine is {config.rollout.engine!r} and rollout.engine_url "
            f"{config.rollout.engine_url!r}; a vllm-server needs an address, nothing else does"
        )
    if config.model.load_in_4bit and not config.model.lora_rank:
        raise ConfigError("model.load_in_4bit trains adapters only; set model.lora_rank too")
    if config.model.load_in_4bit and config.rollout.engine != "transformers":
        raise ConfigError(
            "weights of 4 bits cannot be handed to another engine; set rollout.engine = "
            "transformers"
        )
    if config.model.load_in_4bit and config.model.parallel == "fsdp":
        raise ConfigError("weights of 4 bits are not cut in pieces; set model.parallel = data")
    if config.rollout.lag and config.rollout.engine == "transformers":
        raise ConfigError(
            "rollout.lag is 1, but the engine transformers samples with the weights being trained; "
            "it needs rollout.engine = vllm or vllm-server"
        )
    if not _DEVICE.fullmatch(config.model.device):
        raise ConfigError(
            f'model.device is {config.model.device!r}, expected "auto", "cpu", "cuda" or "cuda:1"'
        )


def _check_range(
    key: str, value: float, least: float, inclusive: bool, largest: float | None
) -> None:
    enough = value >= least if inclusive else value > least
    if enough and math.isfinite(value) and (largest is None or value <= largest):
        return
    wanted = f"a number of {least:g} or more" if inclusive else f"a number above {least:g}"
    if largest is not None:
        wanted += f" and at most {largest:g}"
    raise ConfigError(f"{key} is {value}, expected {wanted}")


def _get(config: Config, key: str) -> Any:
    value: Any = config
    for name in key.split("."):
        value = getattr(value, name)
    return value

"""Loads the model of a run: initial or saved weights, adapters, reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from proxmo.config import Config
from proxmo.policies.transformers import check_context, load_model
from proxmo.training.adapters import add_adapters

if TYPE_CHECKING:
    from proxmo.training.run_directory import RunDirectory

EMBEDDED = "tiny"


def initial_model(config: Config, directory: RunDirectory, progress: Callable[..., None]) -> str:
    """Returns the directory or hub id of the initial model.

    Builds the embedded model if the cache lacks it; a run keeps a copy, so that resuming needs no
    cache.
    """
    if config.model.name != EMBEDDED:
        return config.model.name
    if directory.initial.exists():
        return str(directory.initial)
    from proxmo.training.tiny import tiny_config, tiny_model_path

    return str(tiny_model_path(config.env, config.prompt, tiny_config(config.env.id), progress))


def load_trained(config: Config, source: str, saved: str | None) -> tuple[Any, Any, Any | None]:
    """Loads model, tokenizer and reference.

    Args:
        config: of the run.
        source: directory or hub id of the initial model.
        saved: checkpoint to continue from; None at the start.

    Returns:
        The reference is None without a KL penalty, and with adapters, whose base is the reference.

    Raises:
        DataError: a model cannot be loaded.
        UsageError: prompts and responses may exceed its context.
        MissingDependencyError: peft or bitsandbytes is not installed.
    """
    wanted = config.model
    where: dict[str, Any] = {"device": wanted.device, "dtype": wanted.dtype}
    reference = None
    if wanted.lora_rank:
        # Loads the initial base; the learner's state holds the adapters.
        model, tokenizer = load_model(source, **where, load_in_4bit=wanted.load_in_4bit)
        model = add_adapters(model, wanted, config.seed)
    else:
        model, tokenizer = load_model(saved or source, **where)
        if config.optim.kl_coef > 0:
            reference = load_model(source, **where)[0].eval().requires_grad_(False)
    if wanted.gradient_checkpointing:
        # transformers renamed the method; versions with both warn about the old name.
        enable = getattr(model, "activation_checkpointing_enable", None)
        (enable or model.gradient_checkpointing_enable)({"use_reentrant": False})
    check_context(
        model,
        prompt_tokens=config.prompt.max_prompt_tokens,
        new_tokens=config.sampling.max_new_tokens,
    )
    return model, tokenizer, reference

"""LoRA and QLoRA (peft): trains a few weights and shares the rest with the reference."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from proxmo.config import ModelConfig
from proxmo.errors import MissingDependencyError


def add_adapters(model: Any, config: ModelConfig, seed: int) -> Any:
    """Wraps a model so that only adapters of `lora_rank` on its linear layers are trained.

    Hu et al. 2021 (arXiv 2106.09685); the adapters are float32 and start as no change at all.

    Raises:
        MissingDependencyError: peft is not installed.
    """
    import torch

    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as cause:
        raise MissingDependencyError(
            "model.lora_rank needs peft: pip install 'proxmo[lora]'"
        ) from cause
    # Initialisation has no generator argument in peft.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return get_peft_model(
            model,
            LoraConfig(
                r=config.lora_rank,
                lora_alpha=config.lora_alpha,
                lora_dropout=0.0,
                target_modules="all-linear",
                task_type="CAUSAL_LM",
            ),
        )


def has_adapters(model: Any) -> bool:
    """Whether `add_adapters` has wrapped the model."""
    return hasattr(model, "disable_adapter")


def export_model(model: Any, directory: Path) -> None:
    """Writes an ordinary Hugging Face model, with adapters added to its weights.

    Of a model loaded in 4 bits only the adapters can be written.
    """
    if has_adapters(model) and not getattr(model, "is_loaded_in_4bit", False):
        # A copy: undoing the addition would not restore the same bits.
        model = copy.deepcopy(model).merge_and_unload()
    model.save_pretrained(directory)

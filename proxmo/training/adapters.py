"""LoRA and QLoRA (peft): trains a few weights and shares the rest with the reference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxmo.config import ModelConfig
from proxmo.errors import MissingDependencyError

if TYPE_CHECKING:
    from torch import Tensor

# Where peft keeps the wrapped model and its original layers.
_WRAPPER = "base_model.model."
_ORIGINAL = ".base_layer"


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


@contextmanager
def without_adapters(model: Any) -> Iterator[Any]:
    """Disables the adapters inside the block: the reference, without memory of its own."""
    with model.disable_adapter():
        yield model


def export_model(model: Any, directory: Path) -> None:
    """Writes an ordinary Hugging Face model, with adapters added to its weights.

    Of a model loaded in 4 bits only the adapters can be written.
    """
    if not has_adapters(model) or getattr(model, "is_loaded_in_4bit", False):
        model.save_pretrained(directory)
        return
    model.get_base_model().save_pretrained(directory, state_dict=merged_weights(model))


def merged_weights(model: Any) -> dict[str, Tensor]:
    """The weights of the plain model with the adapters added, W + (alpha / r) B A, by its names.

    Leaves the model as it is: undoing an addition would not restore the same bits.
    """
    import torch
    from peft.tuners.lora import LoraLayer

    merged = {
        name.removeprefix(_WRAPPER).replace(_ORIGINAL, ""): tensor
        for name, tensor in model.state_dict().items()
        if ".lora_" not in name
    }
    with torch.no_grad():
        layers: list[tuple[str, Any]] = [
            (path, layer) for path, layer in model.named_modules() if isinstance(layer, LoraLayer)
        ]
        for path, layer in layers:
            name = path.removeprefix(_WRAPPER) + ".weight"
            for adapter in layer.active_adapters:
                delta = layer.get_delta_weight(adapter)
                merged[name] = (merged[name].to(delta.dtype) + delta).to(merged[name].dtype)
    return merged

"""The sizes of a language model, from its configuration alone: nothing is loaded or downloaded.

We count instead of building the model on torch's meta device, because importing torch and
transformers would make a dry run of half a second one of five.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxmo.training.tiny import NUMBER_TOKENS, tiny_config
from proxmo_envs import description_of

# Families with the layers that we count: gated MLP, grouped keys, RMS norms.
FAMILIES = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder of one of `FAMILIES`.

    Attributes:
        parameters: weights of the whole model.
        linear_layers: (inputs, outputs) of the seven linear layers of a block.
        context: most tokens of prompt and response; None if unknown.
    """

    parameters: int
    vocabulary: int
    hidden: int
    layers: int
    linear_layers: tuple[tuple[int, int], ...]
    context: int | None

    def adapter_parameters(self, rank: int) -> int:
        """Weights of LoRA adapters of a rank on all linear layers of the blocks."""
        return self.layers * sum(rank * (i + o) for i, o in self.linear_layers)

    @property
    def cached_values(self) -> int:
        """Numbers in the keys and values of one token."""
        return 2 * self.layers * self.linear_layers[1][1]


def _qwen(vocabulary: int, hidden: int, layers: int, heads: int, kv: int, mlp: int) -> dict:
    """config.json of a Qwen2.5 (arXiv 2412.15115, table 1); the small ones tie embeddings."""
    return {
        "model_type": "qwen2",
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "intermediate_size": mlp,
        "tie_word_embeddings": hidden < 3584,
        "max_position_embeddings": 32768,
    }


# Models of the recipes, so that a plan can be made before they are downloaded.
KNOWN = {
    "qwen2.5-0.5b": _qwen(151936, 896, 24, 14, 2, 4864),
    "qwen2.5-1.5b": _qwen(151936, 1536, 28, 12, 2, 8960),
    "qwen2.5-7b": _qwen(152064, 3584, 28, 28, 4, 18944),
}


def find_architecture(name: str, env_id: str) -> Architecture | None:
    """The sizes of a model by directory or hub id; None if this machine does not know them.

    Read from config.json in the directory or in the hub's cache, else from `KNOWN`. The embedded
    model's vocabulary depends on the environment.
    """
    try:
        if name == "tiny":
            return architecture(_embedded(env_id))
        path = _config_file(name)
        if path is not None:
            return architecture(json.loads(path.read_text(encoding="utf-8")))
        return architecture(KNOWN[name.rpartition("/")[2].lower().removesuffix("-instruct")])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def architecture(table: Mapping[str, Any]) -> Architecture:
    """The sizes in a config.json.

    Raises:
        KeyError: a size is missing; ValueError: the family is not one of `FAMILIES`.
    """
    family = table["model_type"]
    if family not in FAMILIES:
        raise ValueError(f"unknown family {family!r}")
    hidden, heads, mlp = (
        table[key] for key in ("hidden_size", "num_attention_heads", "intermediate_size")
    )
    size = table.get("head_dim") or hidden // heads
    queries, keys = heads * size, (table.get("num_key_value_heads") or heads) * size
    attention = ((hidden, queries), (hidden, keys), (hidden, keys), (queries, hidden))
    linear = (*attention, (hidden, mlp), (hidden, mlp), (mlp, hidden))
    biased = table.get("attention_bias", False)
    block = sum(inputs * outputs for inputs, outputs in linear) + 2 * hidden  # two norms
    block += (queries + 2 * keys) * (biased or family == "qwen2")
    block += hidden * (biased and family != "qwen2") + 2 * size * (family == "qwen3")
    block += (2 * mlp + hidden) * bool(table.get("mlp_bias", False))
    embeddings = table["vocab_size"] * hidden * (1 if table.get("tie_word_embeddings") else 2)
    return Architecture(
        parameters=embeddings + table["num_hidden_layers"] * block + hidden,
        vocabulary=table["vocab_size"],
        hidden=hidden,
        layers=table["num_hidden_layers"],
        linear_layers=linear,
        context=table.get("max_position_embeddings"),
    )


def _embedded(env_id: str) -> dict[str, Any]:
    """config.json of the embedded model, of the largest possible vocabulary if nobody counted."""
    size = tiny_config(env_id)
    counted = description_of(env_id).embedded.vocabulary
    vocabulary = counted or size.vocabulary + len(NUMBER_TOKENS)
    table = _qwen(
        vocabulary, size.hidden, size.layers, size.heads, size.kv_heads, size.intermediate
    )
    return table | {"max_position_embeddings": size.context}


def _config_file(name: str) -> Path | None:
    """config.json in a model directory or in the hub's cache."""
    if Path(name).is_dir():
        return Path(name) / "config.json"
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None
    return Path(cached) if isinstance(cached, str) else None

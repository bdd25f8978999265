"""The sizes of a language model, from its configuration alone: nothing is loaded or downloaded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxmo.training.tiny import NUMBER_TOKENS, tiny_config
from proxmo_envs import description_of

# Families with the layers that `Architecture` counts: gated MLP, grouped keys, RMS norms.
FAMILIES = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder of one of `FAMILIES`.

    We count instead of building the model on torch's meta device, because importing torch and
    transformers would make a dry run of half a second one of five.

    Attributes:
        tied: whether embeddings and output head share their weights.
        context: most tokens of prompt and response; None if unknown.
        qkv_bias: whether these linear layers have a bias; likewise output_bias and mlp_bias.
        qk_norm: whether queries and keys are normalised.
    """

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    intermediate: int
    tied: bool
    context: int | None = None
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False

    @property
    def parameters(self) -> int:
        """Weights of the whole model."""
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        biases = (queries + 2 * keys) * self.qkv_bias + self.hidden * self.output_bias
        biases += (2 * self.intermediate + self.hidden) * self.mlp_bias
        norms = 2 * self.hidden + 2 * self.head_size * self.qk_norm
        layer = sum(rows * columns for rows, columns in self.linear_layers) + biases + norms
        return embeddings + self.layers * layer + self.hidden

    @property
    def linear_layers(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of the seven linear layers of a block."""
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        attention = [(self.hidden, queries), (self.hidden, keys), (self.hidden, keys)]
        attention.append((queries, self.hidden))
        mlp = [(self.hidden, self.intermediate)] * 2 + [(self.intermediate, self.hidden)]
        return attention + mlp

    def adapter_parameters(self, rank: int) -> int:
        """Weights of LoRA adapters of a rank on all linear layers of the blocks."""
        return self.layers * sum(rank * (i + o) for i, o in self.linear_layers)

    @property
    def cached_values(self) -> int:
        """Numbers in the keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head_size


def _qwen(vocabulary: int, hidden: int, layers: int, heads: int, kv: int, mlp: int) -> Architecture:
    """Qwen2.5 (arXiv 2412.15115, table 1); the small ones share embeddings and head."""
    return Architecture(
        vocabulary=vocabulary,
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv,
        head_size=hidden // heads,
        intermediate=mlp,
        tied=hidden < 3584,
        context=32768,
        qkv_bias=True,
    )


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
    if name == "tiny":
        return embedded_architecture(env_id)
    path = _config_file(name)
    if path is not None:
        return read_architecture(path)
    short = name.rpartition("/")[2].lower().removesuffix("-instruct")
    return KNOWN.get(short)


def embedded_architecture(env_id: str) -> Architecture:
    """The sizes of the embedded model; its vocabulary is the largest possible if nobody counted."""
    size = tiny_config(env_id)
    counted = description_of(env_id).embedded.vocabulary
    return Architecture(
        vocabulary=counted or size.vocabulary + len(NUMBER_TOKENS),
        hidden=size.hidden,
        layers=size.layers,
        heads=size.heads,
        kv_heads=size.kv_heads,
        head_size=size.hidden // size.heads,
        intermediate=size.intermediate,
        tied=True,
        context=size.context,
        qkv_bias=True,
    )


def read_architecture(path: Path) -> Architecture | None:
    """The sizes in a config.json; None for a family outside `FAMILIES`."""
    try:
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if table.get("model_type") not in FAMILIES:
            return None
        heads = table["num_attention_heads"]
        biased = bool(table.get("attention_bias", False))
        return Architecture(
            vocabulary=table["vocab_size"],
            hidden=table["hidden_size"],
            layers=table["num_hidden_layers"],
            heads=heads,
            kv_heads=table.get("num_key_value_heads") or heads,
            head_size=table.get("head_dim") or table["hidden_size"] // heads,
            intermediate=table["intermediate_size"],
            tied=bool(table.get("tie_word_embeddings", False)),
            context=table.get("max_position_embeddings"),
            qkv_bias=biased or table["model_type"] == "qwen2",
            output_bias=biased and table["model_type"] != "qwen2",
            mlp_bias=bool(table.get("mlp_bias", False)),
            qk_norm=table["model_type"] == "qwen3",
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


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

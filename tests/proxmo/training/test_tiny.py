"""The embedded model, at a size and with a training that mean nothing."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from proxmo.agents.prompts import PromptBuilder
from proxmo.config import Config
from proxmo.config_loading import resolve
from proxmo.policies.transformers import load_model
from proxmo.training.architecture import find_architecture
from proxmo.training.sft import SftConfig
from proxmo.training.tiny import (
    TinyConfig,
    build_tiny,
    build_tokenizer,
    cache_directory,
    new_model,
    record_demonstrations,
    tiny_config,
    tiny_model_path,
)
from tests.fakes import rng

torch = pytest.importorskip("torch")

PRESET = resolve(["tiny"])
SHOP = resolve(["tiny-webshop"])
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


def test_a_blank_in_an_action_that_is_played_at_random_is_filled_with_a_word_of_the_task():
    noisy = replace(SIZE, noise=1.0, games=20)
    played = record_demonstrations(SHOP.env, noisy, 1, rng(), silent)
    searched = [
        (turn.action, one.view.task)
        for one in played
        for turn in one.view.history
        if turn.action.startswith("search[")
    ]
    assert len(searched) > 10
    for action, task in searched:
        assert action.removeprefix("search[").removesuffix("]") in task.split()


@pytest.mark.parametrize("slips", [False, True])
def test_a_demonstrator_who_errs_is_imitated_in_what_was_possible(*, slips: bool):
    noisy = replace(SIZE, noise=1.0, games=20, imitate_slips=slips)
    played = record_demonstrations(PRESET.env, noisy, 1, rng(), silent)
    pairs = [
        (shown, after.view.history[-1].action)
        for shown, after in itertools.pairwise(played)
        if after.view.step == shown.view.step + 1
    ]
    assert len(pairs) > 100
    imitated = [shown.action == done for shown, done in pairs]
    # Half of the slips are actions of another place, which are not imitated.
    assert (0.4 < np.mean(imitated) < 0.8) if slips else np.mean(imitated) < 0.3
    assert all(shown.action in shown.view.admissible for shown, _ in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("preset", [PRESET, SHOP], ids=["household", "shop"])
def test_the_model_of_a_world_has_the_size_that_plans_count_with(preset: Config):
    world = preset.env.id
    config = tiny_config(world)
    # As `build_tiny` draws them.
    drawn = np.random.default_rng([config.seed, 1])
    shown = record_demonstrations(preset.env, config, preset.prompt.history, drawn, silent)
    tokenizer = build_tokenizer(shown, preset.prompt, config)
    with torch.random.fork_rng(devices=[]):
        made = new_model(tokenizer, config).num_parameters()
    planned = find_architecture("tiny", world)
    assert planned is not None
    assert (len(tokenizer), made) == (planned.vocabulary, planned.parameters)


def test_the_shop_has_settings_of_its_own_and_other_worlds_the_common_ones():
    assert tiny_config("proxmo_envs:WebShop-v0") == tiny_config("WebShop-v0") != TinyConfig()
    assert tiny_config("ALFWorld-v0") == TinyConfig()


def test_words_that_differ_in_what_precedes_them_start_from_kindred_vectors():
    demonstrations = record_demonstrations(SHOP.env, replace(SIZE, games=40), 1, rng(), silent)
    tokenizer = build_tokenizer(demonstrations, SHOP.prompt, SIZE)

    def likeness(one: str, other: str, *, kindred: bool) -> float:
        torch.manual_seed(0)
        config = replace(SIZE, kindred_words=kindred)
        rows = new_model(tokenizer, config).get_input_embeddings().weight.detach()
        ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in (one, other)]
        assert [len(found) for found in ids] == [1, 1]
        return float(torch.cosine_similarity(*(rows[found[0]] for found in ids), dim=0))

    with torch.random.fork_rng(devices=[]):
        assert likeness(" red", "[red", kindred=True) > 0.3
        assert abs(likeness(" red", "[blue", kindred=True)) < 0.35
        assert abs(likeness(" red", "[red", kindred=False)) < 0.35


def test_a_change_to_the_shop_makes_another_embedded_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The key of the cache covers the world that is played, and only that."""
    from proxmo.training import tiny

    def keys() -> list[str]:
        presets = (PRESET, SHOP)
        return [tiny._fingerprint(one.env, one.prompt, SIZE) for one in presets]

    before = keys()
    changed = tmp_path / "webshop_server" / "__init__.py"
    changed.parent.mkdir()
    changed.write_text("")
    (changed.parent / "words.toml").write_text("")
    whole = tiny.importlib.import_module

    def elsewhere(name: str) -> Any:
        return SimpleNamespace(__file__=str(changed)) if name == "webshop_server" else whole(name)

    monkeypatch.setattr(tiny.importlib, "import_module", elsewhere)
    after = keys()
    assert after[0] == before[0] and after[1] != before[1]

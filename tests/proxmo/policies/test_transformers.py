"""Sampling: the right distribution, the right log-probabilities, the right end."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proxmo.errors import DataError, UsageError
from proxmo.policies.batching import collate, response_logprobs
from proxmo.policies.transformers import (
    TransformersPolicy,
    check_context,
    end_token_ids,
    load_model,
)
from tests.fakes import dropout_model, save_tiny_model, tiny_model, tiny_tokenizer

torch = pytest.importorskip("torch")

TEXTS = ["now 1", "to 12 now 3 up", "0", "up down to 7 8 9 up down up down now 0"]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny_tokenizer()


@pytest.fixture(scope="module")
def prompts(tokenizer: Any) -> list[list[int]]:
    return [tokenizer(text)["input_ids"] for text in TEXTS]


def sample(model: Any, prompts: list[list[int]], **options: Any) -> list[Any]:
    batch = options.pop("max_batch_tokens", 65536)
    options = {"temperature": 1.0, "max_new_tokens": 8, "seed": (1, 2), **options}
    policy = TransformersPolicy(model, tiny_tokenizer(), max_batch_tokens=batch)
    return policy.generate(prompts, **options)


def next_distribution(model: Any, prompt: list[int], temperature: float) -> np.ndarray:
    """What the model says about the token after a prompt, computed without any padding."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt])).logits[0, -1].double()
    return torch.softmax(logits / temperature, dim=-1).numpy()


@pytest.mark.parametrize("seeds", [None, [(4, row) for row in range(len(TEXTS))]])
@pytest.mark.parametrize("make", [tiny_model, dropout_model])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_the_trainer_computes_the_log_probabilities_the_sampler_recorded(
    make: Any, temperature: float, seeds: Any, prompts: list[list[int]]
):
    model = make()
    # The last prompt is ten times as long as the third: without position ids of its own, a padded
    # row would be read at other places than it was written at.
    responses = sample(model, prompts, temperature=temperature, seeds=seeds)
    batch = collate(
        [(p, r.ids) for p, r in zip(prompts, responses, strict=True)], pad_id=0, device="cpu"
    )
    model.eval()
    with torch.no_grad():
        computed, _ = response_logprobs(model, batch, temperature=temperature)
    for row, response in enumerate(responses):
        recorded = torch.tensor(response.logprobs)
        assert torch.allclose(computed[row, : len(response.ids)], recorded, atol=1e-5)


@pytest.mark.parametrize("own_seeds", [False, True])
@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.5])
def test_tokens_are_drawn_with_their_probabilities(
    temperature: float, own_seeds: bool, prompts: list[list[int]]
):
    model, draws = tiny_model(), 6000
    seeds = [(3, row) for row in range(draws)] if own_seeds else None
    options: dict[str, Any] = {"temperature": temperature, "max_new_tokens": 1, "seeds": seeds}
    responses = sample(model, [prompts[0]] * draws, **options)
    counted = np.bincount([r.ids[0] for r in responses], minlength=len(tiny_tokenizer()))
    expected = draws * next_distribution(model, prompts[0], temperature)
    # Rare tokens together, as the test needs a few of each.
    rare = expected < 5
    counted = np.append(counted[~rare], counted[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    chi_square = ((counted - expected) ** 2 / np.maximum(expected, 1e-9)).sum()
    freedom = len(expected) - 1
    assert freedom > 5
    # Mean and spread of chi-square are k and sqrt(2 k); the seed is fixed, so this is no gamble.
    assert chi_square < freedom + 4 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_the_recorded_log_probability_is_that_of_the_distribution_sampled_from(
    temperature: float, prompts: list[list[int]]
):
    model = tiny_model()
    responses = sample(model, prompts, temperature=temperature)
    for prompt, response in zip(prompts, responses, strict=True):
        for at, token in enumerate(response.ids):
            before = prompt + list(response.ids[:at])
            distribution = next_distribution(model, before, temperature or 1.0)
            assert response.logprobs[at] == pytest.approx(math.log(distribution[token]), abs=1e-5)
            assert temperature or token == distribution.argmax()


def test_equal_seeds_give_equal_responses_and_others_others(prompts: list[list[int]]):
    model = tiny_model()
    global_state = torch.random.get_rng_state()
    first = sample(model, prompts, seed=(3, 4))
    assert sample(model, prompts, seed=(3, 4)) == first
    assert sample(model, prompts, seed=(3, 5)) != first
    assert len({r.ids for r in sample(model, [prompts[0]] * 20)}) > 10
    assert sample(model, []) == []
    assert torch.equal(global_state, torch.random.get_rng_state())


def test_with_seeds_of_their_own_responses_do_not_depend_on_their_company(prompts):
    model, seeds = tiny_model(), [(1, row) for row in range(len(TEXTS))]
    together = sample(model, prompts, seeds=seeds, seed=(0,))
    for batch in (1, 60):
        apart = sample(model, prompts, seeds=seeds, seed=(9,), max_batch_tokens=batch)
        assert [r.ids for r in apart] == [r.ids for r in together]
    for prompt, seed, response in zip(prompts, seeds, together, strict=True):
        assert sample(model, [prompt], seeds=[seed])[0].ids == response.ids
    others = sample(model, prompts, seeds=[(2, row) for row in range(len(TEXTS))])
    assert [r.ids for r in others] != [r.ids for r in together]


def test_a_response_ends_with_the_first_end_token_or_is_cut(prompts, tokenizer):
    responses = sample(tiny_model(), prompts * 20, max_new_tokens=12)
    end = tokenizer.eos_token_id
    kinds = {r.finish_reason for r in responses}
    assert kinds == {"stop", "length"}
    for response in responses:
        if response.finish_reason == "stop":
            assert response.ids[-1] == end and response.ids.count(end) == 1
        else:
            assert len(response.ids) == 12 and end not in response.ids
        assert len(response.ids) == len(response.logprobs)
        assert response.text == tokenizer.decode(response.ids, skip_special_tokens=True)
        assert "<" not in response.text


def test_the_end_tokens_are_those_of_the_generation_config_and_of_the_tokenizer(
    tokenizer: Any, prompts: list[list[int]]
):
    model = tiny_model()
    model.generation_config.eos_token_id = 7
    assert end_token_ids(model, tokenizer) == {7, tokenizer.eos_token_id}
    model.generation_config.eos_token_id = [3, 10, 11]
    responses = sample(model, prompts * 10, max_new_tokens=12)
    assert {r.ids[-1] for r in responses if r.finish_reason == "stop"} == {3, 10, 11}
    model.generation_config.eos_token_id = None
    assert end_token_ids(model, tokenizer) == {tokenizer.eos_token_id}


def test_a_model_without_any_end_token_is_a_usage_error(tokenizer):
    model = tiny_model()
    model.generation_config.eos_token_id = None
    other = tiny_tokenizer()
    other.eos_token = None
    with pytest.raises(UsageError, match="end-of-turn"):
        end_token_ids(model, other)


@pytest.mark.parametrize(
    "settings",
    [
        {"repetition_penalty": 5.0},
        {"no_repeat_ngram_size": 1},
        {"suppress_tokens": [5, 6, 7, 8, 9, 10, 11, 12]},
        {"min_new_tokens": 8},
        {"num_beams": 3},
        {"do_sample": True, "temperature": 0.01, "top_k": 1, "top_p": 0.1},
        {"max_length": 3},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_the_models_own_generation_settings_change_nothing_and_are_kept(
    settings: dict[str, Any], prompts: list[list[int]]
):
    plain, model = tiny_model(), tiny_model()
    for name, value in settings.items():
        setattr(model.generation_config, name, value)
    assert sample(model, prompts * 5) == sample(plain, prompts * 5)
    assert all(getattr(model.generation_config, n) == v for n, v in settings.items())


def test_sampling_is_without_dropout_and_leaves_the_training_mode_as_it_was(prompts):
    model = dropout_model().train()
    first = sample(model, prompts, temperature=0.0)
    assert model.training
    assert sample(model, prompts, temperature=0.0) == first
    assert sample(model.eval(), prompts, temperature=0.0) == first
    assert not model.training


def test_a_saved_model_loads_as_what_it_was(tmp_path: Path, prompts: list[list[int]]):
    save_tiny_model(tmp_path, seed=3)
    model, tokenizer = load_model(str(tmp_path), device="cpu")
    assert [tokenizer(text)["input_ids"] for text in TEXTS] == prompts
    ours = dict(tiny_model(seed=3).named_parameters())
    assert all(torch.equal(w, ours[name]) for name, w in model.named_parameters())
    assert not model.training


@pytest.mark.parametrize(
    ("dtype", "expected"), [("auto", "float32"), ("float32", "float32"), ("bfloat16", "bfloat16")]
)
def test_weights_are_loaded_in_the_type_asked_for(tmp_path: Path, dtype: str, expected: str):
    save_tiny_model(tmp_path)
    model, _ = load_model(str(tmp_path), device="cpu", dtype=dtype)
    assert next(model.parameters()).dtype == getattr(torch, expected)


@pytest.mark.parametrize("missing", [["pad_token"], ["pad_token", "eos_token"]])
def test_a_tokenizer_pads_with_its_end_token_or_with_that_of_the_model(
    missing: list[str], tmp_path: Path
):
    save_tiny_model(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    settings.update(dict.fromkeys(missing))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    model, tokenizer = load_model(str(tmp_path), device="cpu")
    end = model.generation_config.eos_token_id
    assert tokenizer.pad_token_id == tokenizer.eos_token_id == end is not None


def leave_weights_out(path: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(path / "model.safetensors")
    del weights["model.norm.weight"], weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})


def remove_tokenizer(path: Path) -> None:
    for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (path / file).unlink(missing_ok=True)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: os.truncate(path / "model.safetensors", 2000),
        lambda path: (path / "model.safetensors").unlink(),
        leave_weights_out,
        lambda path: (path / "config.json").unlink(),
        remove_tokenizer,
        lambda path: (path / "tokenizer.json").write_text("{"),
        lambda path: (path / "config.json").write_text('{"model_type": "no_such_thing"}'),
    ],
    ids=["cut", "no weights", "some weights", "no config", "no tokenizer", "half", "unknown"],
)
def test_what_cannot_be_loaded_is_a_data_error_that_names_it(damage: Any, tmp_path: Path):
    save_tiny_model(tmp_path)
    damage(tmp_path)
    with pytest.raises(DataError, match="no model can be loaded from") as caught:
        load_model(str(tmp_path), device="cpu")
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["no/such/model", "no-such-model", "nobody/no-such-model"])
def test_a_model_that_does_not_exist_is_a_data_error(name: str):
    with pytest.raises(DataError, match=name):
        load_model(name, device="cpu")


def test_asking_for_a_gpu_that_is_not_there_is_a_usage_error(tmp_path: Path):
    with pytest.raises(UsageError, match=r"device is 'cuda:99', but torch sees \d+ GPUs"):
        load_model(str(save_tiny_model(tmp_path)), device="cuda:99")


def test_prompts_and_responses_that_exceed_the_models_context_are_a_usage_error():
    check_context(tiny_model(), prompt_tokens=500, new_tokens=12)
    with pytest.raises(UsageError, match=r"prompts of 500 and responses of 13 .* context of 512"):
        check_context(tiny_model(), prompt_tokens=500, new_tokens=13)


@pytest.mark.parametrize("offline", [False, True])
def test_a_hub_that_cannot_be_reached_is_asked_once_and_never_when_it_is_off_limits(
    monkeypatch: pytest.MonkeyPatch, offline: bool
):
    import huggingface_hub

    asked: list[object] = []

    def unreachable(self: object, name: str, *, timeout: float) -> None:
        asked.append((name, timeout <= 10))
        raise ConnectionError("name not known")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", offline)
    with pytest.raises(DataError, match="reachable or cached") as raised:
        load_model("nobody/has-such-a-model", device="cpu")
    assert asked == ([] if offline else [("nobody/has-such-a-model", True)])
    assert offline or "name not known" in str(raised.value)


def test_the_hub_is_not_asked_about_a_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", None)
    with pytest.raises(DataError, match="no model can be loaded"):
        load_model(str(tmp_path), device="cpu")

"""Fine-tuning on an expert's or on recorded episodes, with the means of training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proxmo.agents.prompts import PromptBuilder, View
from proxmo.checkpoints import read_checkpoint
from proxmo.config import Config, EnvConfig, EvalConfig, ModelConfig, OptimConfig, SamplingConfig
from proxmo.config_loading import load_toml
from proxmo.errors import DataError, UsageError
from proxmo.policies.batching import Sample
from proxmo.policies.transformers import load_model
from proxmo.training.imitation import (
    ImitationConfig,
    as_response,
    as_samples,
    default_lr,
    fine_tune,
)
from proxmo.training.learner import Learner
from proxmo.training.objectives import cross_entropy
from proxmo.training.tiny import Demonstration
from proxmo.types import Step
from tests.fakes import COUNTER, counter_config, rng, save_tiny_model, tiny_model, tiny_tokenizer

torch = pytest.importorskip("torch")
EXPERT = ImitationConfig(episodes=8, epochs=20, batch_size=8, lr=1e-2, noise=0.1)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return counter_config(save_tiny_model(tmp_path_factory.mktemp("model")))


def step(sample: Sample) -> Step:
    none = ("", None, True, "ok", 0.0, 0)
    return Step(0, "", tuple(sample[0]), tuple(sample[1]), (), *none)


def test_a_model_learns_to_act_as_the_expert_does(config: Config, tmp_path: Path):
    evaluated = replace(EXPERT, evaluate=True)
    greedy = replace(config, eval=EvalConfig(episodes=5, temperature=0.0))
    result = fine_tune(greedy, evaluated, tmp_path / "out")
    assert result.episodes == 8 and result.left_out == 0
    assert result.last_loss < 0.1 * result.first_loss
    assert result.before is not None and result.after is not None
    assert (result.before.success_rate, result.after.success_rate) == (0.0, 1.0)


def test_what_comes_out_opens_as_a_model_a_checkpoint_and_a_recipe(config: Config, tmp_path: Path):
    out = tmp_path / "out"
    fine_tune(config, replace(EXPERT, epochs=0.1), out)
    load_model(str(out))
    checkpoint = read_checkpoint(out)
    assert checkpoint.iteration == 0
    assert checkpoint.settings["config"]["prompt"]["style"] == "terse"
    recipe = load_toml(out / "sft.toml")
    assert recipe == replace(config, model=replace(config.model, name=str(out)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_equal_seeds_give_equal_models(config: Config, tmp_path: Path):
    def weights(name: str, seed: int) -> Any:
        fine_tune(replace(config, seed=seed), replace(EXPERT, epochs=1), tmp_path / name)
        return (tmp_path / name / "model.safetensors").read_bytes()

    first = weights("a", 1)
    assert first == weights("b", 1)
    assert first != weights("c", 2)


@pytest.mark.parametrize("micro_batch_tokens", [1, 10_000])
def test_the_objective_is_the_mean_cross_entropy_of_the_response_tokens(micro_batch_tokens: int):
    samples: list[Sample] = [([5, 6, 7], [8, 9]), ([10], [11, 12, 3]), ([5, 13, 14], [16])]
    model, expected = tiny_model(), []
    for prompt, response in samples:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[*prompt, *response]])).logits[0].double()
        distribution = torch.log_softmax(logits, -1)
        at = range(len(prompt), len(prompt) + len(response))
        expected += [-distribution[i - 1, [*prompt, *response][i]].item() for i in at]
    optim = OptimConfig(kl_coef=0.0, lr=1e-3, micro_batch_tokens=micro_batch_tokens)
    learner = Learner(model, None, optim, temperature=1.0, pad_id=0, objective=cross_entropy)
    metrics = learner.update([step(s) for s in samples], np.ones(3), rng=rng())
    assert metrics["loss/policy"] == pytest.approx(np.mean(expected), rel=1e-5)
    again = learner.update([step(s) for s in samples], np.ones(3), rng=rng())
    assert again["loss/policy"] < metrics["loss/policy"]


def test_adapters_are_trained_as_in_a_run_and_come_out_added_to_the_weights(
    config: Config, tmp_path: Path
):
    pytest.importorskip("peft")
    lora = replace(config, model=replace(config.model, lora_rank=4, gradient_checkpointing=True))
    result = fine_tune(lora, replace(EXPERT, epochs=5), tmp_path / "out")
    assert result.last_loss < result.first_loss
    trained, _ = load_model(str(tmp_path / "out"))
    before, _ = load_model(config.model.name)
    assert dict(trained.named_parameters()).keys() == dict(before.named_parameters()).keys()
    assert torch.equal(trained.model.embed_tokens.weight, before.model.embed_tokens.weight)
    assert not torch.equal(
        trained.model.layers[0].mlp.up_proj.weight, before.model.layers[0].mlp.up_proj.weight
    )


def test_nothing_is_left_behind_by_what_fails(config: Config, tmp_path: Path):
    short = replace(config, sampling=SamplingConfig(max_new_tokens=1))
    with pytest.raises(DataError, match="none of .* steps fits.*max_new_tokens"):
        fine_tune(short, EXPERT, tmp_path / "out")
    missing = replace(config, model=ModelConfig(name=str(tmp_path / "nothing" / "there")))
    with pytest.raises(DataError, match="does not exist"):
        fine_tune(missing, EXPERT, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_use_is_refused_before_anything_is_done(config: Config, tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        fine_tune(config, EXPERT, tmp_path)


def test_a_world_without_an_expert_or_without_tasks_is_refused(config: Config, tmp_path: Path):
    import gymnasium

    empty = replace(config, env=EnvConfig(id=COUNTER, kwargs={"tasks": 0}))
    with pytest.raises(UsageError, match="'train' of .* has no tasks"):
        fine_tune(empty, EXPERT, tmp_path / "out")

    gymnasium.register(
        id="NoExpert-v0",
        entry_point=lambda split="train", data=None: gymnasium.make(COUNTER).unwrapped,
    )
    alone = replace(config, env=EnvConfig(id="NoExpert-v0"))
    with pytest.raises(UsageError, match="no expert.*--from"):
        fine_tune(alone, EXPERT, tmp_path / "out")


THOUGHT = "<think>5 > 4</think>"
VIEW = View("to 5", (), 0, "now 4", ["up", "down"])


@pytest.mark.parametrize(
    ("style", "recorded", "expected"),
    [
        ("terse", "", "up"),
        ("terse", "up", "up"),
        ("terse", f"{THOUGHT}<action>up</action>", "up"),
        ("think", "", "<action>up</action>"),
        ("think", f"{THOUGHT} <action>up</action>", f"{THOUGHT} <action>up</action>"),
        ("think", "Thought: 5 > 4\nAction: up", f"{THOUGHT}<action>up</action>"),
        ("think", "<action>down</action>", "<action>up</action>"),
    ],
)
def test_a_response_keeps_its_words_where_it_has_the_form_of_the_style(
    style: str, recorded: str, expected: str
):
    assert as_response(Demonstration(VIEW, "up", recorded), style) == expected


def test_samples_end_with_the_end_of_turn_and_what_is_too_long_is_left_out(config: Config):
    tokenizer = tiny_tokenizer()
    builder = PromptBuilder(config.prompt, tokenizer)
    moments = [Demonstration(VIEW, "down"), Demonstration(VIEW, "down" * 20)]
    (sample,) = as_samples(moments, builder, tokenizer, config)
    assert list(sample[0]) == builder.build(VIEW).ids
    assert tokenizer.decode(list(sample[1])) == "down<end>"


def test_the_learning_rate_fits_what_is_trained():
    rates = {
        default_lr(Config(model=ModelConfig(**fields)))
        for fields in ({"name": "tiny"}, {"name": "org/m"}, {"name": "org/m", "lora_rank": 8})
    }
    assert rates == {1e-3, 1e-5, 1e-4}

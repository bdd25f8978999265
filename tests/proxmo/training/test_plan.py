"""What a dry run says about model, device, memory and tokens, and that a run needs that."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from proxmo.config import Config, EnvConfig, ModelConfig, OptimConfig, PromptConfig, RolloutConfig
from proxmo.config_loading import resolve
from proxmo.errors import UsageError
from proxmo.training import plan as module
from proxmo.training.architecture import KNOWN, architecture
from proxmo.training.plan import measure_episodes, memory, plan
from tests.fakes import COUNTER, save_tiny_model

RECIPE = "alfworld-qwen2.5-1.5b"


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DRIVER", Path("/nowhere"))


def line(lines: list[str], start: str) -> str:
    return next(one for one in lines if one.startswith(start))


def test_a_recipe_is_planned_for_a_gpu_without_having_one():
    lines = plan(resolve([RECIPE]), play=False)
    assert "1,543,714,304 parameters; 2,560 of 32,768 tokens" in line(lines, "model")
    assert "no GPU here" in line(lines, "device")
    assert "weights 3.1 GB, reference 3.1 GB, float32 copies 6.2 GB" in line(lines, "memory")
    assert "beside vLLM's 32.0 GB (0.4 of 80.0 GB)" in lines[3]
    assert "do not fit" not in " ".join(lines)
    assert "at most 16 M per iteration" in line(lines, "tokens")


def test_what_does_not_fit_is_said_with_the_ways_out():
    large = resolve(["webshop-qwen2.5-7b"])
    assert any("do not fit into 80.0 GB" in one for one in plan(large, play=False))
    assert not any("do not fit" in one for one in plan(large, play=False, nproc=8))


def test_the_bound_on_tokens_takes_the_step_limit_a_world_is_registered_with():
    world = EnvConfig(id=COUNTER)  # 5 steps
    assert "episodes of 5 steps" in line(plan(Config(env=world), play=True), "tokens")
    assert "no step limit" in line(plan(Config(env=EnvConfig(id="Nowhere")), play=False), "tokens")


def test_an_unknown_model_is_not_guessed_at(tmp_path: Path):
    lines = plan(Config(model=ModelConfig(name="some-org/some-model")), play=False)
    assert "not known here" in lines[0]
    assert not any(one.startswith("memory") for one in lines)


def test_prompts_longer_than_the_context_are_refused(tmp_path: Path):
    small = Config(model=ModelConfig(name=str(save_tiny_model(tmp_path))))
    with pytest.raises(UsageError, match="exceed the context of .*512; lower prompt"):
        plan(small, play=False)


def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="'cuda:63', but torch sees"):
        plan(Config(model=ModelConfig(name="tiny", device="cuda:63")), play=False)


def test_a_server_elsewhere_takes_nothing_here():
    server = RolloutConfig(engine="vllm-server", engine_url="http://somewhere:8000")
    lines = plan(Config(rollout=server), play=False)
    assert any("while sampling, the sampler's not counted" in one for one in lines)


def test_played_tasks_say_what_an_iteration_may_cost():
    lines = plan(resolve([], {"env.id": "ALFWorld-v0"}), play=True)
    both = [one for one in lines if "for an agent that plays like" in one]
    assert len(both) == 2 and "the expert one" in both[0] and "the random one" in both[1]


LARGE = architecture(KNOWN["qwen2.5-1.5b"])
P = LARGE.parameters
# Runs two micro-batches of a fresh model twice through the learner and tells the most bytes that
# torch held. What the process holds besides (fragments, scratch of the matrix library) differs from
# one machine to the next by a third.
MEASURE = """
import json, sys
import numpy as np, torch
from transformers import Qwen2Config, Qwen2ForCausalLM
from proxmo.config import Config, ModelConfig, OptimConfig, PromptConfig, SamplingConfig
from proxmo.training.architecture import architecture
from proxmo.training.plan import memory
from proxmo.training.learner import Learner
from proxmo.types import Step

def most_bytes(profile):
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    return int(np.cumsum([event.nbytes() for event in events]).max())

def update(model, reference, vocabulary, prompt, response, rows, optim):
    rng = np.random.default_rng(0)
    steps = [
        Step(0, "", tuple(rng.integers(vocabulary, size=prompt).tolist()),
             tuple(rng.integers(vocabulary, size=response).tolist()), (-1.0,) * response,
             "", None, True, "ok", 0.0, 0)
        for _ in range(rows)
    ]
    learner = Learner(model, reference, optim, temperature=1.0, pad_id=0)
    # From the second time on there are moments when the activations are largest.
    for _ in range(2):
        learner.update(steps, np.ones(rows), rng=rng)

def build(dtype, **sizes):
    return Qwen2ForCausalLM(Qwen2Config(max_position_embeddings=4096, **sizes)).to(dtype)

wanted = json.loads(sys.argv[1])
dtype, prompt, response, rows = (wanted.pop(k) for k in ("dtype", "prompt", "response", "rows"))
checkpointing = wanted.pop("checkpointing")
optim = OptimConfig(micro_batch_tokens=rows * (prompt + response))
watched = [torch.profiler.ProfilerActivity.CPU]
with torch.profiler.profile(activities=watched, profile_memory=True) as profile:
    model = build(getattr(torch, dtype), **wanted)
    reference = build(getattr(torch, dtype), **wanted).requires_grad_(False)
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    update(model, reference, wanted["vocab_size"], prompt, response, 2 * rows, optim)
config = Config(
    model=ModelConfig(name="x", dtype=dtype, gradient_checkpointing=checkpointing),
    prompt=PromptConfig(max_prompt_tokens=prompt),
    sampling=SamplingConfig(max_new_tokens=response),
    optim=optim,
)
estimated = memory(config, architecture(model.config.to_dict()), on_gpu=False)
print(json.dumps([most_bytes(profile), estimated.update_peak]))
"""
BODY = {
    "vocab_size": 4000,
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "tie_word_embeddings": True,
    "prompt": 192,
    "response": 64,
    "rows": 4,
    "dtype": "float32",
    "checkpointing": False,
}
HEAD = {**BODY, "vocab_size": 32000, "hidden_size": 256, "num_hidden_layers": 3, "prompt": 64}


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes",
    [
        BODY,
        {**BODY, "checkpointing": True},
        {**BODY, "dtype": "bfloat16"},
        {**HEAD, "response": 192},
    ],
    ids=["activations", "recomputed", "bfloat16", "logits"],
)
def test_the_peak_of_an_update_is_estimated_within_a_tenth(sizes: dict):
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, json.dumps(sizes)],
        capture_output=True,
        text=True,
        check=True,
    )
    measured, estimated = json.loads(done.stdout.splitlines()[-1])
    assert 0.9 < measured / estimated < 1.1


def test_half_precision_keeps_copies_moments_and_a_reference():
    needed = memory(Config(), LARGE, on_gpu=True)
    assert needed.kept == {
        "weights": 2 * P,
        "reference": 2 * P,
        "float32 copies": 4 * P,
        "AdamW moments": 8 * P,
    }
    assert needed.updating["gradients"] == 6 * P


def test_full_precision_needs_no_copies_and_no_penalty_no_reference():
    config = Config(optim=OptimConfig(kl_coef=0.0))
    needed = memory(config, LARGE, on_gpu=False)
    assert needed.kept == {"weights": 4 * P, "AdamW moments": 8 * P}


def test_adapters_cost_a_fraction_and_four_bits_an_eighth_of_float32():
    lora = Config(model=ModelConfig(lora_rank=16))
    needed = memory(lora, LARGE, on_gpu=True)
    assert set(needed.kept) == {"weights", "adapters", "AdamW moments"}
    assert needed.kept["AdamW moments"] < 0.1 * P
    four = memory(Config(model=ModelConfig(lora_rank=16, load_in_4bit=True)), LARGE, on_gpu=True)
    assert 0.3 < four.kept["weights"] / needed.kept["weights"] < 0.5


def test_fsdp_cuts_the_optimiser_and_the_gradients_and_leaves_what_samples():
    cut = Config(model=ModelConfig(parallel="fsdp"))
    needed = memory(cut, LARGE, on_gpu=True, nproc=4)
    assert needed.kept == {
        "weights": 2 * P,
        "reference": P / 2,
        "float32 copies": P,
        "AdamW moments": 2 * P,
    }
    assert needed.updating["gradients"] == P
    assert memory(cut, LARGE, on_gpu=True) == memory(Config(), LARGE, on_gpu=True, nproc=4)


def test_a_micro_batch_holds_at_least_one_sample():
    config = Config(prompt=PromptConfig(max_prompt_tokens=1488), optim=OptimConfig())
    eight, one = (
        memory(changed, LARGE, on_gpu=False).updating["activations and logits"]
        for changed in (config, replace(config, optim=OptimConfig(micro_batch_tokens=100)))
    )
    assert eight == 8 * one


def test_recomputed_activations_are_a_fraction():
    recipe = resolve(["alfworld-qwen2.5-1.5b"], {}, ["optim.micro_batch_tokens=65536"])
    plain = replace(recipe, model=replace(recipe.model, gradient_checkpointing=False))
    less, more = (
        memory(one, LARGE, on_gpu=True).updating["activations and logits"]
        for one in (recipe, plain)
    )
    assert less < 0.5 * more


def test_played_tasks_tell_what_prompts_cost():
    world = EnvConfig(id=COUNTER, kwargs={"free": False})
    found = measure_episodes(Config(env=world), "expert")
    assert found is not None
    steps, prompt, _ = found
    assert steps == 1.0
    assert 60 < prompt < 200


def test_a_world_without_admissible_actions_is_not_played_by_chance():
    assert measure_episodes(Config(env=EnvConfig(id=COUNTER)), "random") is None

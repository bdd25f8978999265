"""The memory and the tokens a run is said to need are what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from proxmo.config import Config, EnvConfig, ModelConfig, OptimConfig, PromptConfig, RolloutConfig
from proxmo.config_loading import resolve
from proxmo.training.architecture import KNOWN
from proxmo.training.estimate import measure_episodes, memory, micro_batch, most_tokens
from tests.fakes import COUNTER

LARGE = KNOWN["qwen2.5-1.5b"]
P = LARGE.parameters
# Runs two micro-batches of a fresh model twice through the learner and tells the most bytes that
# torch held. What the process holds besides (fragments, scratch of the matrix library) differs from
# one machine to the next by a third.
MEASURE = """
import json, sys
import numpy as np, torch
from transformers import Qwen2Config, Qwen2ForCausalLM
from proxmo.config import Config, ModelConfig, OptimConfig, PromptConfig, SamplingConfig
from proxmo.training.architecture import read_architecture
from proxmo.training.estimate import memory
from proxmo.training.learner import Learner
from proxmo.types import Step
from pathlib import Path

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
checkpointing, folder = wanted.pop("checkpointing"), wanted.pop("folder")
optim = OptimConfig(micro_batch_tokens=rows * (prompt + response))
watched = [torch.profiler.ProfilerActivity.CPU]
with torch.profiler.profile(activities=watched, profile_memory=True) as profile:
    model = build(getattr(torch, dtype), **wanted)
    reference = build(getattr(torch, dtype), **wanted).requires_grad_(False)
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    update(model, reference, wanted["vocab_size"], prompt, response, 2 * rows, optim)
model.config.save_pretrained(folder)
config = Config(
    model=ModelConfig(name="x", dtype=dtype, gradient_checkpointing=checkpointing),
    prompt=PromptConfig(max_prompt_tokens=prompt),
    sampling=SamplingConfig(max_new_tokens=response),
    optim=optim,
)
estimated = memory(config, read_architecture(Path(folder) / "config.json"), on_gpu=False)
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
def test_the_peak_of_an_update_is_estimated_within_a_tenth(tmp_path: Path, sizes: dict):
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, json.dumps({**sizes, "folder": str(tmp_path)})],
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


def test_the_micro_batch_decides_the_activations_unless_a_single_sample_is_longer():
    config = Config(prompt=PromptConfig(max_prompt_tokens=1488), optim=OptimConfig())
    assert micro_batch(config) == (8, 16000)
    small = replace(config, optim=OptimConfig(micro_batch_tokens=100))
    assert micro_batch(small) == (1, 2000)
    sizes = [
        memory(one, LARGE, on_gpu=True).updating["activations and logits"]
        for one in (config, small)
    ]
    assert sizes[0] > sizes[1]


def test_recomputed_activations_are_a_fraction():
    recipe = resolve(["alfworld-qwen2.5-1.5b"], {}, ["optim.micro_batch_tokens=65536"])
    plain = replace(recipe, model=replace(recipe.model, gradient_checkpointing=False))
    less, more = (
        memory(one, LARGE, on_gpu=True).updating["activations and logits"]
        for one in (recipe, plain)
    )
    assert less < 0.5 * more


def test_the_most_tokens_are_those_of_full_prompts_and_responses():
    most = most_tokens(Config(), 50)
    assert (most.prompt, most.response) == (16 * 8 * 50 * 2048, 16 * 8 * 50 * 512)


def test_played_tasks_tell_what_prompts_cost():
    world = EnvConfig(id=COUNTER, kwargs={"free": False})
    config = Config(env=world, rollout=RolloutConfig(tasks=2, group_size=3))
    found = measure_episodes(config, "expert")
    assert found is not None
    assert found.steps == 1.0
    assert 60 < found.prompt < 200
    tokens = found.tokens(config)
    assert (tokens.prompt, tokens.response) == (6 * found.prompt, 6 * found.response)


def test_a_world_without_admissible_actions_is_not_played_by_chance():
    assert measure_episodes(Config(env=EnvConfig(id=COUNTER)), "random") is None

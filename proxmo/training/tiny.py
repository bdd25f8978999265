"""`tiny`: the embedded model, built from nothing on the machine at hand and warm-started by imitation.

A Qwen2-architecture model of under a million parameters with its own tokenizer, saved as an
ordinary Hugging Face directory and from then on treated like any other model. It is made once and
cached under a hash of everything it depends on.

Three phases: (1) the tokenizer is trained on what expert episodes print; (2) the network learns to
copy ("A B A" sequences): without that, imitation alone never gets to naming the object it sees; (3)
it imitates the expert.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from proxmo.agents.prompts import PromptBuilder, Turn, View
from proxmo.config import EnvConfig, PromptConfig
from proxmo.rollout.environments import make_env
from proxmo.training.batching import Sample
from proxmo.training.checkpoint import write_directory
from proxmo.training.sft import SftConfig, fit

Progress = Callable[..., None]

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# What the cached model is a function of, besides the settings: a change in any of these makes a new
# one.
SOURCES = (
    "proxmo.training.tiny",
    "proxmo.training.sft",
    "proxmo.training.batching",
    "proxmo.agents.prompts",
    "proxmo_envs.alfworld.generator",
    "proxmo_envs.alfworld.vocabulary",
    "proxmo_envs.alfworld.expert",
    "proxmo_envs.alfworld.text",
    "proxmo_envs.alfworld.world",
)


@dataclass(frozen=True, slots=True)
class TinyConfig:
    """Size of the model and length of its warm start."""

    layers: int = 3
    hidden: int = 128
    heads: int = 4
    kv_heads: int = 2
    intermediate: int = 384
    vocabulary: int = 1536
    context: int = 4096
    games: int = 1500
    noise: float = 0.15
    copy: SftConfig = SftConfig(steps=800, lr=2e-3, prompt_weight=0.0)
    imitation: SftConfig = SftConfig(steps=500, lr=2e-3)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One moment of an expert episode: what the agent saw, and what the expert would do."""

    view: View
    action: str


def tiny_model_path(
    env: EnvConfig, prompt: PromptConfig, config: TinyConfig, progress: Progress
) -> Path:
    """Returns the directory of the warm-started model, building it first when the cache has none.

    Args:
        env: world whose expert is imitated.
        prompt: prompt form the model is warm-started on.
        config: size and length.
        progress: called as progress(phase, done=..., total=..., text=...).
    """
    target = cache_directory() / f"tiny-{_fingerprint(env, prompt, config)}"
    if not (target / "config.json").exists():
        build_tiny(target, env, prompt, config, progress)
    return target


def cache_directory() -> Path:
    """`$PROXMO_CACHE`, else `$XDG_CACHE_HOME/proxmo`, else `~/.cache/proxmo`."""
    if os.environ.get("PROXMO_CACHE"):
        return Path(os.environ["PROXMO_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "proxmo"


def _fingerprint(env: EnvConfig, prompt: PromptConfig, config: TinyConfig) -> str:
    digest = hashlib.sha256(repr((env, prompt, asdict(config))).encode())
    for name in SOURCES:
        digest.update(inspect.getsource(importlib.import_module(name)).encode())
    return digest.hexdigest()[:16]


def build_tiny(
    target: Path, env: EnvConfig, prompt: PromptConfig, config: TinyConfig, progress: Progress
) -> None:
    """Makes tokenizer and model and writes them to `target` as a Hugging Face directory."""
    import torch

    rng = np.random.default_rng([config.seed, 1])
    demonstrations = record_demonstrations(env, config, prompt.history, rng, progress)
    tokenizer = build_tokenizer(demonstrations, prompt, config)
    builder = PromptBuilder(prompt, tokenizer)
    end = [tokenizer.eos_token_id]
    samples: list[Sample] = [
        (
            builder.build(d.view).ids,
            tokenizer(d.action, add_special_tokens=False)["input_ids"] + end,
        )
        for d in demonstrations
    ]
    with torch.random.fork_rng(
        devices=[]
    ):  # weight initialisation has no generator argument in transformers
        torch.manual_seed(config.seed)
        model = new_model(tokenizer, config)

    def report(phase: str, total: int) -> Callable[[int, float], None]:
        return lambda step, loss: progress(phase, done=step, total=total, text=f"loss {loss:.3f}")

    copy_rng = np.random.default_rng([config.seed, 2])
    fit(model, _copy_task(len(tokenizer)), config.copy, pad_id=tokenizer.pad_token_id, rng=copy_rng,
        progress=report("learning to copy", config.copy.steps))  # fmt: skip

    def draw(generator: np.random.Generator, n: int) -> list[Sample]:
        return [samples[int(i)] for i in generator.integers(len(samples), size=n)]

    imitation_rng = np.random.default_rng([config.seed, 3])
    fit(model, draw, config.imitation, pad_id=tokenizer.pad_token_id, rng=imitation_rng,
        progress=report("imitating the expert", config.imitation.steps))  # fmt: skip

    def fill(path: Path) -> None:
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)

    write_directory(target, fill)


def record_demonstrations(
    env_config: EnvConfig,
    config: TinyConfig,
    history: int,
    rng: np.random.Generator,
    progress: Progress,
) -> list[Demonstration]:
    """Plays games with the expert, executing a random action with probability `noise` so that recoveries are seen too."""
    import proxmo_envs

    tasks = proxmo_envs.task_set(
        env_config.id, env_config.split, env_config.data, **env_config.kwargs
    )
    chosen = tasks.sample(rng, config.games)
    env = make_env(env_config, expert_action=True)
    found: list[Demonstration] = []
    for number, task in enumerate(chosen):
        observation, info = env.reset(options={"task_id": task.task_id})
        turns: list[Turn] = []
        ended = False
        while not ended:
            admissible = info["admissible_actions"]
            window = tuple(turns[-history:]) if history else ()
            view = View(info["task"], window, len(turns), observation, tuple(admissible))
            action = info["expert_action"]
            found.append(Demonstration(view, action))
            if rng.random() < config.noise:
                action = admissible[int(rng.integers(len(admissible)))]
            turns.append(Turn(observation, action))
            observation, _, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
        if number % 50 == 49 or number + 1 == len(chosen):
            progress(
                "watching the expert",
                done=number + 1,
                total=len(chosen),
                text=f"{len(found)} steps",
            )
    env.close()
    return found


def build_tokenizer(
    demonstrations: Sequence[Demonstration], prompt: PromptConfig, config: TinyConfig
) -> Any:
    """Trains a byte-level BPE tokenizer (any text encodes) on the observations and actions of the demonstrations."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocabulary,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )

    def wrap(backend: Any) -> Any:
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>",
            additional_special_tokens=["<|im_start|>"], model_max_length=config.context,
        )  # fmt: skip
        tokenizer.chat_template = CHAT_TEMPLATE
        return tokenizer

    # The builder needs a tokenizer to count with; a blank byte-level one serves to render the texts
    # to train on.
    blank = Tokenizer(models.BPE())
    blank.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    blank.train_from_iterator([], trainer)
    builder = PromptBuilder(replace(prompt, max_prompt_tokens=1_000_000), wrap(blank))
    texts = (builder.build(d.view).text + d.action for d in demonstrations[:8000])
    raw.train_from_iterator(texts, trainer)
    return wrap(raw)


def new_model(tokenizer: Any, config: TinyConfig) -> Any:
    """A freshly initialised Qwen2 model with tied embeddings."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden,
            intermediate_size=config.intermediate,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            max_position_embeddings=config.context,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def _copy_task(vocabulary: int) -> Callable[[np.random.Generator, int], list[Sample]]:
    """Random "A B A" sequences: the reply repeats the start of the prompt, so that only copying predicts it."""

    def draw(rng: np.random.Generator, n: int) -> list[Sample]:
        samples = []
        for _ in range(n):
            length, gap = int(rng.integers(12, 26)), int(rng.integers(0, 26))
            tokens = rng.integers(len(SPECIAL_TOKENS), vocabulary, size=length + gap).tolist()
            samples.append((tokens + tokens[:1], tokens[1:length]))
        return samples

    return draw

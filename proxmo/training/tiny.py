"""`tiny`: the embedded model, built on this machine and warm-started by imitation.

A Qwen2 model of under a million parameters with its own tokenizer, saved as an ordinary Hugging
Face directory and from then on treated like any other model. It is made once and cached under a
hash of everything it depends on.

We train the tokenizer on the text of expert episodes, then the network on the expert's actions. The
network is narrow: on a CPU it learns more in a minute from many small steps than from a few wide
ones.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from proxmo.agents.parser import BLANK
from proxmo.agents.prompts import PromptBuilder, Turn, View
from proxmo.config import EnvConfig, PromptConfig
from proxmo.errors import UsageError
from proxmo.policies.batching import Sample
from proxmo.rollout.environments import make_env
from proxmo.training.checkpoint import write_directory
from proxmo.training.request import tasks_of
from proxmo.training.sft import SftConfig, fit
from proxmo_envs import description_of

Progress = Callable[..., None]

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Enough for the admissible lists of an episode or two.
REMEMBERED_ACTIONS = 200
# A token that is a word: an optional mark, then letters or digits.
_WORD = re.compile(r"([^A-Za-z0-9]?)([A-Za-z0-9]+)")
# The code that the cached model depends on besides the settings: modules and whole packages.
SOURCES = (
    "proxmo.agents",
    "proxmo.policies.batching",
    "proxmo.training.sft",
    "proxmo.training.tiny",
)
# Added to the vocabulary, so that each number in a name such as "mug 1" is one token.
NUMBER_TOKENS = tuple(f" {digit}" for digit in range(1, 10))


@dataclass(frozen=True, slots=True)
class TinyConfig:
    """Size of the model and length of its warm start."""

    layers: int = 3
    hidden: int = 64
    heads: int = 4
    kv_heads: int = 2
    intermediate: int = 192
    vocabulary: int = 1536
    context: int = 4096
    games: int = 4000
    # Share of the demonstrated steps at which a random action replaces the expert's.
    noise: float = 0.2
    # Whether to imitate random actions, too, if they are possible: a demonstrator who errs.
    imitate_slips: bool = False
    imitation: SftConfig = SftConfig(steps=700, lr=6e-3, muon_lr=0.03)
    # Whether tokens that are the same word after different marks start from similar vectors.
    kindred_words: bool = False
    seed: int = 0


def tiny_config(env_id: str) -> TinyConfig:
    """Size and warm start of the embedded model for an environment, as its description says."""
    return TinyConfig(**description_of(env_id).embedded.settings)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A step of an episode: the agent's view, the action to imitate, and the whole response."""

    view: View
    action: str
    response: str = ""


def tiny_model_path(
    env: EnvConfig, prompt: PromptConfig, config: TinyConfig, progress: Progress
) -> Path:
    """Returns the directory of the warm-started model; builds it if the cache has none.

    Args:
        env: environment whose expert to imitate.
        prompt: form of the prompts.
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
    for name in (*SOURCES, *_env_sources(env.id)):
        path = Path(str(importlib.import_module(name).__file__))
        files = [path]
        if path.name == "__init__.py":
            files = sorted(f for end in ("py", "toml") for f in path.parent.rglob(f"*.{end}"))
        for source in files:
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _env_sources(env_id: str) -> tuple[str, ...]:
    """The packages an environment consists of: its class's, and those its description names."""
    import gymnasium

    entry = gymnasium.spec(env_id.rpartition(":")[2]).entry_point
    module = entry.partition(":")[0] if isinstance(entry, str) else str(entry.__module__)
    return module.rpartition(".")[0] or module, *description_of(env_id).embedded.sources


def build_tiny(
    target: Path, env: EnvConfig, prompt: PromptConfig, config: TinyConfig, progress: Progress
) -> None:
    """Makes tokenizer and model and writes them to `target` as a Hugging Face directory."""
    import torch

    rng = np.random.default_rng([config.seed, 1])
    demonstrations = record_demonstrations(env, config, prompt.history, rng, progress)
    tokenizer = build_tokenizer(demonstrations, prompt, config)
    builder = PromptBuilder(prompt, tokenizer)
    samples = [as_sample(d, builder, tokenizer) for d in demonstrations]
    # Weight initialisation has no generator argument in transformers.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = new_model(tokenizer, config)

    def report(step: int, loss: float) -> None:
        total = config.imitation.steps
        progress("imitating the expert", done=step, total=total, text=f"loss {loss:.3f}")

    fit(model, samples, config.imitation, pad_id=tokenizer.pad_token_id, rng=rng, progress=report)

    def fill(path: Path) -> None:
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)

    write_directory(target, fill)


def as_sample(demonstration: Demonstration, builder: PromptBuilder, tokenizer: Any) -> Sample:
    """The prompt of a demonstration and the expert's action with the end-of-turn token."""
    action = tokenizer(demonstration.action, add_special_tokens=False)["input_ids"]
    return builder.build(demonstration.view).ids, [*action, tokenizer.eos_token_id]


def record_demonstrations(
    env_config: EnvConfig,
    config: TinyConfig,
    history: int,
    rng: np.random.Generator,
    progress: Progress,
) -> list[Demonstration]:
    """Plays games with the expert and some random actions, to show recoveries too.

    With probability `noise` a random action replaces the expert's: a possible one, or one that was
    possible earlier or elsewhere. The latter shows the response to a mistake; a model that has
    never seen "Nothing happens." repeats the mistake until the step limit.

    Raises:
        UsageError: the environment has no expert, or the split no tasks.
    """
    env = make_env(env_config, expert_action=True)
    chosen = tasks_of(env_config, env_config.split).sample(rng, config.games)
    found: list[Demonstration] = []
    elsewhere: list[str] = []
    for number, task in enumerate(chosen):
        observation, info = env.reset(seed=number, options={"task_id": task.task_id})
        turns: list[Turn] = []
        ended = False
        while not ended:
            admissible = info["admissible_actions"]
            view = View(
                info["task"], tuple(turns[-history:] if history else ()), len(turns), observation,
                tuple(admissible),
            )  # fmt: skip
            if info.get("expert_action") is None:
                raise UsageError(f"{env_config.id} has no expert: its info has no 'expert_action'")
            action = shown = info["expert_action"]
            draw = rng.random()
            pool = elsewhere if elsewhere and draw < config.noise / 2 else admissible
            if draw < config.noise and pool:
                action = _filled(pool[int(rng.integers(len(pool)))], info["task"], rng)
                if config.imitate_slips and pool is admissible:
                    shown = action
            found.append(Demonstration(view, shown))
            elsewhere = (elsewhere + admissible)[-REMEMBERED_ACTIONS:]
            turns.append(Turn(observation, action))
            observation, _, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
        if number % 50 == 49 or number + 1 == len(chosen):
            progress(
                "watching the expert", done=number + 1, total=len(chosen),
                text=f"{len(found)} steps",
            )  # fmt: skip
    env.close()
    return found


def _filled(action: str, task: str, rng: np.random.Generator) -> str:
    """Puts a word of the task into the blank of an action, if it has one."""
    if not BLANK.search(action):
        return action
    words = task.split()
    return BLANK.sub(lambda _: words[int(rng.integers(len(words)))], action)


def build_tokenizer(
    demonstrations: Sequence[Demonstration], prompt: PromptConfig, config: TinyConfig
) -> Any:
    """Trains a byte-level BPE on the text of the demonstrations; it can encode any text.

    It is a `Qwen2Tokenizer` with its own vocabulary: `AutoTokenizer` loads that class for every
    Qwen2 model, whatever its files say, so another class would split text differently once saved.
    """
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
    from transformers import Qwen2Tokenizer

    # Its annotations allow neither merges as pairs nor a vocabulary without an unknown token.
    tokenizer_class: Any = Qwen2Tokenizer

    def wrap(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> Any:
        return tokenizer_class(
            vocab=vocabulary,
            merges=merges,
            unk_token=None,
            eos_token="<|im_end|>",
            additional_special_tokens=["<|im_start|>"],
            model_max_length=config.context,
            chat_template=CHAT_TEMPLATE,
        )

    blank = wrap({token: i for i, token in enumerate(SPECIAL_TOKENS)}, [])
    # The builder counts with a tokenizer; any will do to render the texts to train on.
    builder = PromptBuilder(replace(prompt, max_prompt_tokens=1_000_000), blank)
    raw = Tokenizer(models.BPE())
    raw.normalizer = blank.backend_tokenizer.normalizer
    raw.pre_tokenizer = blank.backend_tokenizer.pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocabulary,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = (builder.build(d.view).text + d.action for d in demonstrations[:8000])
    raw.train_from_iterator(texts, trainer)
    trained = json.loads(raw.to_str())["model"]
    tokenizer = wrap(trained["vocab"], [tuple(pair) for pair in trained["merges"]])
    # Qwen2 splits "mug 1" into three tokens. With the number in one piece, a small model has to
    # look back one token to continue a name, which it learns much sooner than two.
    tokenizer.add_tokens([AddedToken(one, normalized=False) for one in NUMBER_TOKENS])
    return tokenizer


def new_model(tokenizer: Any, config: TinyConfig) -> Any:
    """A freshly initialised Qwen2 model with tied embeddings."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    model = Qwen2ForCausalLM(
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
    if config.kindred_words:
        _make_words_kindred(model, tokenizer)
    return model


def _make_words_kindred(model: Any, tokenizer: Any) -> None:
    """Makes the vector of a word the sum of one for its letters (any case) and one for its mark."""
    import torch

    embeddings = model.get_input_embeddings().weight
    # Larger than usual, so that the first optimiser steps do not wash the similarity out.
    larger = 10
    embeddings.data.mul_(larger)
    scale = larger * model.config.initializer_range / 2**0.5
    vectors: dict[str, Any] = {}
    with torch.no_grad():
        for token, row in enumerate(embeddings):
            word = _WORD.fullmatch(tokenizer.decode([token]))
            if word:
                parts = (f"before: {word[1]}", f"word: {word[2].lower()}")
                for part in parts:
                    if part not in vectors:
                        vectors[part] = scale * torch.randn_like(row)
                row.copy_(vectors[parts[0]] + vectors[parts[1]])

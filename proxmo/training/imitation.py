"""Imitation: supervised fine-tuning on an expert's or on recorded episodes.

Uses the learner of reinforcement learning with another objective, so that precision, adapters,
micro-batches and gradient checkpointing are the same in both.
"""

from __future__ import annotations

import json
import logging
import math
import os
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from proxmo.agents.language import LanguageAgent
from proxmo.agents.parser import parse_action, spoken_thought
from proxmo.agents.prompts import Cut, PromptBuilder
from proxmo.checkpoints import SETTINGS_FILE
from proxmo.config import Config, OptimConfig
from proxmo.config_loading import dump_toml
from proxmo.errors import DataError, UsageError
from proxmo.evaluation import Evaluation, evaluate_agent
from proxmo.listener import Listener
from proxmo.policies.batching import Sample
from proxmo.policies.transformers import TransformersPolicy
from proxmo.training.adapters import export_model
from proxmo.training.checkpoint import write_directory
from proxmo.training.learner import Learner
from proxmo.training.models import EMBEDDED, load_trained
from proxmo.training.objectives import cross_entropy
from proxmo.training.recorded import read_recordings, replay
from proxmo.training.tiny import (
    Demonstration,
    TinyConfig,
    record_demonstrations,
    tiny_model_path,
)
from proxmo.types import Outcome, Step

logger = logging.getLogger(__name__)

# Separates the draws of imitation from those of a run with the same seed.
IMITATION = 4
# Preset that continues with reinforcement learning: `proxmo train --preset OUT/sft.toml`.
RECIPE_FILE = "sft.toml"
# Default learning rates: of all weights, of adapters, of the embedded model.
LR, ADAPTER_LR, EMBEDDED_LR = 1e-5, 1e-4, 1e-3
WARMUP_SHARE = 0.03
EXPERT_EPISODES = 1000


@dataclass(frozen=True, slots=True)
class ImitationConfig:
    """Which episodes to imitate, and for how long."""

    # Recorded episodes (a run, an evaluation, a file); None: the environment's expert plays.
    source: Path | None = None
    # Number of episodes; None: all recorded ones, or `EXPERT_EPISODES` of an expert.
    episodes: int | None = None
    # Whether to imitate lost episodes, too.
    lost: bool = False
    # Share of an expert's steps replaced by random actions, to show recoveries.
    noise: float = 0.1
    # Passes over the steps.
    epochs: float = 1.0
    # Steps in an optimiser step.
    batch_size: int = 32
    # Learning rate; None: `default_lr`.
    lr: float | None = None
    # Whether to measure success before and after, as `eval` of the configuration says.
    evaluate: bool = False


@dataclass(frozen=True, slots=True)
class Imitated:
    """The result; losses are nats per response token, means over the first and last tenth."""

    path: Path
    episodes: int
    samples: int
    left_out: int
    tokens: int
    optimizer_steps: int
    first_loss: float
    last_loss: float
    before: Evaluation | None = None
    after: Evaluation | None = None


def fine_tune(
    config: Config, settings: ImitationConfig, out: Path, listener: Listener | None = None
) -> Imitated:
    """Fine-tunes a model on episodes and writes it as a checkpoint; `out` appears whole or not.

    Args:
        config: environment, model, prompt, and the settings of an update in `optim`.
        settings: which episodes, and for how long.
        out: directory of the checkpoint, new or empty.
        listener: hears about the progress.

    Raises:
        UsageError: `out` is not empty; the environment has no expert.
        DataError: no episodes, or none that fits; the model cannot be loaded.
        TrainingError: see `Learner.update`.
    """
    listener = listener or Listener()
    check_target(out)
    rng = np.random.default_rng((config.seed, IMITATION))
    episodes, moments = _moments(config, settings, rng, listener)
    model, tokenizer = _load(config, listener)
    builder = PromptBuilder(config.prompt, tokenizer)
    samples = as_samples(moments, builder, tokenizer, config)
    steps = max(1, math.ceil(settings.epochs * len(samples) / settings.batch_size))
    learner = Learner(
        model,
        None,
        _optim(config, settings, steps),
        temperature=1.0,
        pad_id=tokenizer.pad_token_id,
        objective=cross_entropy,
    )
    before = _evaluate(config, settings, model, builder, tokenizer, listener)
    losses = _train(learner, samples, settings.batch_size, steps, rng, listener)
    after = _evaluate(config, settings, model, builder, tokenizer, listener)
    tenth = max(1, len(losses) // 10)
    result = Imitated(
        path=out,
        episodes=episodes,
        samples=len(samples),
        left_out=len(moments) - len(samples),
        tokens=sum(len(prompt) + len(response) for prompt, response in samples),
        optimizer_steps=steps,
        first_loss=float(np.mean(losses[:tenth])),
        last_loss=float(np.mean(losses[-tenth:])),
        before=before,
        after=after,
    )
    listener.phase("saving", text=str(out))
    _write(result, config, settings, model, tokenizer)
    return result


def check_target(out: Path) -> None:
    """Raises if a directory cannot become the checkpoint."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(
            f"{str(out)!r} is not empty, expected a new directory; choose another --out"
        )
    parent = next(p for p in (out, *out.absolute().parents) if p.exists())
    if not os.access(parent, os.W_OK):
        raise DataError(f"cannot write {str(out)!r}: {parent} is read-only")


def default_lr(config: Config) -> float:
    """The learning rate for a kind of model."""
    if config.model.name == EMBEDDED:
        return EMBEDDED_LR
    return ADAPTER_LR if config.model.lora_rank else LR


def _moments(
    config: Config, settings: ImitationConfig, rng: np.random.Generator, listener: Listener
) -> tuple[int, list[Demonstration]]:
    """The number of episodes and the moments of all of them."""
    if settings.source is None:
        number = settings.episodes or EXPERT_EPISODES
        wanted = TinyConfig(games=number, noise=settings.noise)
        history = config.prompt.history
        return number, record_demonstrations(config.env, wanted, history, rng, listener.phase)
    every = read_recordings(settings.source)
    recordings = [one for one in every if settings.lost or one.outcome is Outcome.WON]
    if not recordings:
        raise DataError(
            f"none of the {len(every)} recorded episodes in {str(settings.source)!r} was won; "
            "--lost imitates the others, too"
        )
    if settings.episodes is not None and settings.episodes < len(recordings):
        chosen = np.sort(rng.permutation(len(recordings))[: settings.episodes])
        recordings = [recordings[int(i)] for i in chosen]
    replayed = replay(recordings, config.env, listener)
    return len(replayed), [moment for moments in replayed for moment in moments]


def _load(config: Config, listener: Listener) -> tuple[Any, Any]:
    source = config.model.name
    if source == EMBEDDED:
        source = str(tiny_model_path(config.env, config.prompt, TinyConfig(), listener.phase))
    listener.phase("loading model", text=source)
    # Loads no reference: imitation has no KL penalty.
    alone = replace(config, optim=replace(config.optim, kl_coef=0.0))
    model, tokenizer, _ = load_trained(alone, source, None)
    return model, tokenizer


def as_samples(
    moments: Sequence[Demonstration], builder: PromptBuilder, tokenizer: Any, config: Config
) -> list[Sample]:
    """Prompts and responses as token ids, without those that exceed either budget.

    Raises:
        DataError: nothing is left.
    """
    found: list[Sample] = []
    for moment in moments:
        prompt = builder.build(moment.view)
        text = as_response(moment, config.prompt.style).encode("utf-8", "replace").decode()
        response = [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        if Cut.OVER_BUDGET in prompt.cuts or len(response) > config.sampling.max_new_tokens:
            continue
        # A tenth of the memory of lists of integers.
        found.append((array("l", prompt.ids), array("l", response)))
    if not found:
        raise DataError(
            f"none of {len(moments)} steps fits: prompts have at most "
            f"{config.prompt.max_prompt_tokens} tokens (prompt.max_prompt_tokens) and responses "
            f"{config.sampling.max_new_tokens} (sampling.max_new_tokens)"
        )
    if len(found) < len(moments):
        logger.warning(
            "%d of %d steps exceed prompt.max_prompt_tokens or sampling.max_new_tokens; "
            "they are left out",
            len(moments) - len(found),
            len(moments),
        )
    return found


def as_response(moment: Demonstration, style: str) -> str:
    """The response to imitate: as recorded if it has the form of the style, else rewritten.

    An expert has no thoughts, so in the style "think" its response is the action alone.
    """
    admissible = moment.view.admissible
    if parse_action(moment.response, admissible, style=style).action == moment.action:
        return moment.response
    if style != "think":
        return moment.action
    spoken = parse_action(moment.response, admissible, style="react").action == moment.action
    thought = spoken_thought(moment.response) if spoken else ""
    return (f"<think>{thought}</think>" if thought else "") + f"<action>{moment.action}</action>"


def _optim(config: Config, settings: ImitationConfig, steps: int) -> OptimConfig:
    return replace(
        config.optim,
        iterations=steps,
        minibatches=1,
        epochs=1,
        lr=settings.lr if settings.lr is not None else default_lr(config),
        lr_schedule="cosine",
        warmup_steps=math.ceil(WARMUP_SHARE * steps),
        kl_coef=0.0,
        entropy_coef=0.0,
        aggregation="token",
    )


def _train(
    learner: Learner,
    samples: list[Sample],
    batch_size: int,
    steps: int,
    rng: np.random.Generator,
    listener: Listener,
) -> list[float]:
    """Passes over the samples, each in a new order; returns the loss of every step."""
    losses: list[float] = []
    order: list[int] = []
    for number in range(1, steps + 1):
        while len(order) < batch_size:
            order += rng.permutation(len(samples)).tolist()
        rows, order = order[:batch_size], order[batch_size:]
        batch = [_as_step(*samples[i]) for i in rows]
        losses.append(learner.update(batch, np.ones(len(batch)), rng=rng)["loss/policy"])
        recent = float(np.mean(losses[-20:]))
        listener.phase("imitating", done=number, total=steps, text=f"loss {recent:.3f}")
    return losses


def _as_step(prompt: Sequence[int], response: Sequence[int]) -> Step:
    """A step with the fields that the learner reads."""
    return Step(0, "", tuple(prompt), tuple(response), (), "", None, True, "ok", 0.0, 0)


def _evaluate(
    config: Config,
    settings: ImitationConfig,
    model: Any,
    builder: PromptBuilder,
    tokenizer: Any,
    listener: Listener,
) -> Evaluation | None:
    if not settings.evaluate:
        return None
    agent = LanguageAgent(
        TransformersPolicy(model, tokenizer),
        builder,
        style=config.prompt.style,
        temperature=config.eval.temperature,
        max_new_tokens=config.sampling.max_new_tokens,
    )
    evaluation = evaluate_agent(
        agent,
        config.env,
        split=config.eval.split,
        episodes=config.eval.episodes,
        seed=config.seed,
        timeout_s=config.rollout.episode_timeout_s,
        listener=listener,
    )
    listener.evaluation(evaluation.to_json())
    return evaluation


def _write(
    result: Imitated, config: Config, settings: ImitationConfig, model: Any, tokenizer: Any
) -> None:
    facts: dict[str, Any] = {
        "source": "expert" if settings.source is None else str(settings.source)
    }
    facts |= {
        key: value for key, value in asdict(result).items() if isinstance(value, (int, float))
    }
    about = {"iteration": 0, "config": asdict(config), "imitation": facts}
    recipe = replace(config, model=replace(config.model, name=str(result.path.absolute())))

    def fill(path: Path) -> None:
        export_model(model, path)
        tokenizer.save_pretrained(path)
        (path / SETTINGS_FILE).write_text(json.dumps(about, indent=2), encoding="utf-8")
        (path / RECIPE_FILE).write_text(dump_toml(recipe), encoding="utf-8")

    write_directory(result.path, fill)

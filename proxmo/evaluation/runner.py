"""Evaluation: every task of a panel once, success with its interval, errors apart from losses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import proxmo_envs
from proxmo.agents.base import Agent
from proxmo.config import EnvConfig
from proxmo.errors import UsageError
from proxmo.evaluation.statistics import wilson_interval
from proxmo.reporting.listener import Listener
from proxmo.rollout.collector import Collector
from proxmo.rollout.environments import EnvPool
from proxmo.types import Episode, Outcome

# Parts the draws of an evaluation from those of the training with the same seed.
EVALUATION = 3


@dataclass(frozen=True, slots=True)
class TypeResult:
    """Success among some episodes; `low` and `high` bound it with 95 % confidence (Wilson)."""

    episodes: int
    wins: int
    success_rate: float
    low: float
    high: float

    @classmethod
    def of(cls, wins: int, episodes: int) -> TypeResult:
        """Computes rate and interval."""
        low, high = wilson_interval(wins, episodes)
        return cls(episodes, wins, wins / max(episodes, 1), low, high)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result on one panel: `episodes` were scored, `errors` could not be."""

    env_id: str
    split: str
    manifest_hash: str
    episodes: int
    wins: int
    errors: int
    success_rate: float
    low: float
    high: float
    mean_score: float
    mean_length: float
    invalid_action_share: float
    by_task_type: dict[str, TypeResult]

    def to_json(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evaluation:
        """The inverse of `to_json`."""
        kinds = {kind: TypeResult(**result) for kind, result in data["by_task_type"].items()}
        return cls(**{**data, "by_task_type": kinds})


def evaluate_agent(
    agent: Agent,
    env: EnvConfig,
    *,
    split: str,
    episodes: int | None = None,
    seed: int = 0,
    batch_size: int = 128,
    listener: Listener | None = None,
    **env_options: Any,
) -> Evaluation:
    """Plays the tasks of a split with an agent.

    Args:
        agent: who plays.
        env: the world; its split is replaced by `split`.
        split: which tasks.
        episodes: play that many tasks (a fixed random choice, the same for every agent, seed and
            run); None plays all.
        seed: of the agent's own draws.
        batch_size: episodes in flight at once.
        listener: told about the progress.
        env_options: further keyword arguments of the environment.
    """
    env = dataclasses.replace(env, split=split)
    tasks = proxmo_envs.task_set(env.id, split, env.data, **env.kwargs)
    chosen = _panel(tasks.ids, episodes)
    listener = listener or Listener()
    with closing(EnvPool(env, **env_options)) as pool:
        # Options that fit no environment are an error of the request, not of every episode.
        pool.give_back(pool.take())
        played = Collector(pool, agent).play(
            chosen,
            seed=(seed, EVALUATION),
            max_live=batch_size,
            progress=lambda done, total: listener.phase("evaluating", done=done, total=total),
        )
    return summarise(played, env_id=env.id, split=split, manifest_hash=tasks.manifest_hash)


def _panel(ids: Sequence[str], episodes: int | None) -> list[str]:
    """The first `episodes` of a fixed shuffle, by id: a smaller panel lies in every larger one."""
    if episodes is None or episodes >= len(ids):
        return list(ids)
    if episodes < 1:
        raise UsageError(f"episodes is {episodes}; expected at least 1")
    return [ids[i] for i in sorted(np.random.default_rng(0).permutation(len(ids))[:episodes])]


def summarise(
    played: Sequence[Episode], *, env_id: str, split: str, manifest_hash: str
) -> Evaluation:
    """Counts wins by task type; ERROR episodes are left out of every rate."""
    scored = [e for e in played if e.outcome is not Outcome.ERROR]
    steps = [s for e in scored for s in e.steps]
    kinds: dict[str, list[bool]] = {}
    for episode in scored:
        kinds.setdefault(episode.task_type, []).append(episode.won)
    overall = TypeResult.of(sum(e.won for e in scored), len(scored))
    return Evaluation(
        env_id=env_id,
        split=split,
        manifest_hash=manifest_hash,
        episodes=overall.episodes,
        wins=overall.wins,
        errors=len(played) - len(scored),
        success_rate=overall.success_rate,
        low=overall.low,
        high=overall.high,
        mean_score=float(np.mean([e.score for e in scored])) if scored else 0.0,
        mean_length=float(np.mean([len(e.steps) for e in scored])) if scored else 0.0,
        invalid_action_share=sum(not s.valid for s in steps) / max(len(steps), 1),
        by_task_type={
            kind: TypeResult.of(sum(won), len(won)) for kind, won in sorted(kinds.items())
        },
    )


def evaluate_checkpoint(
    checkpoint: Path,
    *,
    env: str | None = None,
    split: str | None = None,
    data: str | None = None,
    episodes: int | None = None,
    temperature: float | None = None,
    seed: int = 0,
    batch_size: int = 128,
    device: str = "auto",
    listener: Listener | None = None,
) -> Evaluation:
    """Evaluates a checkpoint, or the latest of a run, as it was trained.

    Every argument that is None is taken from the checkpoint.

    Raises:
        CheckpointError: when the directory is not a checkpoint.
    """
    from proxmo.agents.language import LanguageAgent
    from proxmo.agents.prompts import PromptBuilder
    from proxmo.config_loading import from_table
    from proxmo.policies.transformers import TransformersPolicy, load_model
    from proxmo.training.checkpoint import read_checkpoint

    found = read_checkpoint(Path(checkpoint))
    config = from_table(found.settings["config"])
    world = config.env
    if env is not None and env.rpartition(":")[2] != world.id.rpartition(":")[2]:
        world = EnvConfig(id=env)
    elif env is not None and ":" in env:
        # The same one, with the module to import it from.
        world = dataclasses.replace(world, id=env)
    if data is not None:
        # The step limit and the options were those of the games trained on.
        world = EnvConfig(id=world.id, data=data)
    listener = listener or Listener()
    listener.phase("loading", text=str(found.path))
    model, tokenizer = load_model(str(found.path), device=device, dtype=config.model.dtype)
    agent = LanguageAgent(
        TransformersPolicy(model, tokenizer),
        PromptBuilder(config.prompt, tokenizer),
        style=config.prompt.style,
        temperature=config.eval.temperature if temperature is None else temperature,
        max_new_tokens=config.sampling.max_new_tokens,
    )
    return evaluate_agent(
        agent,
        world,
        split=split or config.eval.split,
        episodes=episodes if episodes is not None else config.eval.episodes,
        seed=seed,
        batch_size=batch_size,
        listener=listener,
    )


def evaluate_policy(
    policy: str,
    *,
    env: str = "ALFWorld-v0",
    split: str = "valid_unseen",
    data: str | None = None,
    episodes: int | None = None,
    seed: int = 0,
    batch_size: int = 128,
    listener: Listener | None = None,
    **kwargs: Any,
) -> Evaluation:
    """Evaluates the environment's "expert" or a "random" player; `kwargs` go to the environment."""
    from proxmo.agents.scripted import ExpertAgent, RandomAgent
    from proxmo.errors import UnknownNameError

    agents: dict[str, Agent] = {"expert": ExpertAgent(), "random": RandomAgent()}
    if policy not in agents:
        raise UnknownNameError("policy", policy, agents)
    options = {"expert_action": True} if policy == "expert" else {}
    return evaluate_agent(
        agents[policy],
        EnvConfig(id=env, data=data, kwargs=kwargs),
        split=split,
        episodes=episodes,
        seed=seed,
        batch_size=batch_size,
        listener=listener,
        **options,
    )

"""How fast training is beside TRL's, what its rollout saves, and whether its memory grows.

Both trainers get the same model, prompts, batch and limits: an environment of one step whose
observations are moments of an expert's games. Useful tokens are those of prompts and of responses
up to their end. Rates are per second of CPU time, which other work on the machine hardly changes.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import numpy as np

import proxmo_envs
from proxmo.agents.base import Decision, Situation
from proxmo.agents.language import LanguageAgent
from proxmo.agents.prompts import PromptBuilder, View
from proxmo.config import CheckpointConfig, Config, CreditConfig, EnvConfig, EvalConfig
from proxmo.listener import Listener
from proxmo.policies.transformers import TransformersPolicy, load_model
from proxmo.rollout.collector import Collector
from proxmo.rollout.environments import EnvPool
from proxmo.training.models import EMBEDDED
from proxmo.training.recorded import read_recordings
from proxmo.training.tiny import (
    Demonstration,
    TinyConfig,
    record_demonstrations,
    tiny_model_path,
)
from proxmo_envs import TaskSet, TextSpace

from . import trl_trainer
from .measurements import Column
from .processes import resident_bytes, run_script

# Iterations before the memory is first measured: by then caches are full.
WARM_ITERATIONS = 10


@dataclass(frozen=True, slots=True)
class Throughput:
    """Useful tokens of a trainer in the iterations after the first, and the seconds it took."""

    trainer: Annotated[str, Column("training")]
    tokens: Annotated[int, Column("useful tokens", "{:,}")]
    cpu_seconds: Annotated[float, Column("CPU s", "{:.1f}")]
    seconds: Annotated[float, Column("wall s", "{:.1f}")]
    rate: Annotated[float, Column("tokens per CPU s", "{:,.0f}")]


@dataclass(frozen=True, slots=True)
class Beside:
    """Two trainers in turn: the run of median rate of each, and ours over theirs for each pair.

    `theirs` is None and `ratios` is empty where only ours was measured.
    """

    ours: Throughput
    theirs: Throughput | None
    ratios: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Efficiency:
    """How a loop played the episodes: tokens it generated, of which `useful` are in them."""

    loop: Annotated[str, Column("rollout")]
    episodes: Annotated[int, Column("episodes", "{:,}")]
    generated: Annotated[int, Column("generated", "{:,}")]
    useful: Annotated[int, Column("useful", "{:,}")]
    efficiency: Annotated[float, Column("efficiency", "{:.2f}")]
    cpu_seconds: Annotated[float, Column("CPU s", "{:.1f}")]


@dataclass(frozen=True, slots=True)
class Growth:
    """Resident memory of a run: bytes after the warm-up and at the end, slope per iteration."""

    iterations: int
    before: int
    after: int
    slope: float


class MomentsEnv(gymnasium.Env[str, str]):
    """An environment of one step: a moment of a game, won by the expert's action."""

    moments: Mapping[str, Demonstration] = {}

    def __init__(self, split: str = "train", data: str | None = None) -> None:
        self.observation_space = TextSpace()
        self.action_space = TextSpace()

    @classmethod
    def task_set(cls, split: str = "train", data: str | None = None, **_: Any) -> TaskSet:
        """Return the moments."""
        return TaskSet("Moments-v0", split, list(cls.moments), content_hash=str)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Show the moment that the option `task_id` names."""
        super().reset(seed=seed)
        self._moment = self.moments[(options or {})["task_id"]]
        return self._moment.view.observation, self._info(won=False)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """End the episode; pay 1 for the expert's action."""
        won = action == self._moment.action
        return "", float(won), True, False, self._info(won=won)

    def _info(self, *, won: bool) -> dict[str, Any]:
        view = self._moment.view
        return {
            "task": view.task,
            "task_type": "moment",
            "admissible_actions": list(view.admissible),
            "won": won,
            "score": float(won),
        }


gymnasium.register(id="Moments-v0", entry_point=f"{__name__}:MomentsEnv")


class _Clock(Listener):
    """Notes the wall and CPU time, the memory and the tokens at the end of each iteration."""

    def __init__(self) -> None:
        self.ends: list[tuple[float, float]] = []
        self.memory: list[int] = []
        self.tokens: list[int] = []

    def iteration(self, metrics: Mapping[str, float], iteration: int, total: int) -> None:
        self.ends.append((time.perf_counter(), time.process_time()))
        self.memory.append(resident_bytes())
        self.tokens.append(round(metrics["speed/tokens_per_s"] * metrics["time/iteration_s"]))


def with_model_directory(config: Config, listener: Listener) -> Config:
    """Return the configuration with the embedded model's directory in place of its name."""
    if config.model.name != EMBEDDED:
        return config
    path = tiny_model_path(config.env, config.prompt, TinyConfig(), listener.phase)
    return replace(config, model=replace(config.model, name=str(path)))


def beside_trl(
    config: Config, python: str | None, *, repeats: int = 3, listener: Listener | None = None
) -> Beside:
    """Train on single moments with our loop and, in another process, with TRL's GRPOTrainer.

    Args:
        config: model (a directory), prompt, sampling, tasks, group size and iterations; the
            environment is that of the moments.
        python: interpreter that has TRL; None measures ours alone.
        repeats: runs of each, in turn.
        listener: receives the progress.

    Raises:
        UsageError: that interpreter cannot train.
    """
    listener = listener or Listener()
    config = _single_moments(config, listener)
    ours: list[Throughput] = []
    theirs: list[Throughput] = []
    for number in range(repeats):
        listener.phase("training with proxmo", done=number, total=repeats)
        found, order = _train(config)
        ours.append(found)
        if python is not None:
            listener.phase("training with TRL", done=number, total=repeats)
            theirs.append(_train_with_trl(config, python, order))
    ratios = tuple(one.rate / other.rate for one, other in zip(ours, theirs, strict=False))
    return Beside(_median(ours), _median(theirs) if theirs else None, ratios)


def _median(runs: list[Throughput]) -> Throughput:
    return sorted(runs, key=lambda one: one.rate)[len(runs) // 2]


def _single_moments(config: Config, listener: Listener) -> Config:
    """Record moments; return the configuration of a run on them."""
    rng = np.random.default_rng(config.seed)
    games = replace(TinyConfig(), games=64, noise=0.0)
    found = record_demonstrations(config.env, games, 0, rng, listener.phase)
    MomentsEnv.moments = {f"{i:05d}": one for i, one in enumerate(found)}
    return replace(
        config,
        env=EnvConfig(id=f"{__name__}:Moments-v0"),
        prompt=replace(config.prompt, history=0),
        credit=CreditConfig(method="grpo"),
        optim=replace(config.optim, kl_coef=0.0, minibatches=1),
        eval=EvalConfig(split="train", episodes=1),
        checkpoint=CheckpointConfig(every=10**6),
    )


def _run(config: Config, folder: str) -> tuple[Path, _Clock]:
    """Train in a folder; return the run directory and what was noted of the iterations."""
    from proxmo.training.loop import Trainer

    clock, run = _Clock(), Path(folder) / "run"
    Trainer(config, out=run, listener=clock).run()
    return run, clock


def _train(config: Config) -> tuple[Throughput, list[str]]:
    """Train with our loop; return its throughput and the task of each group, in order."""
    with tempfile.TemporaryDirectory() as folder:
        run, clock = _run(config, folder)
        order = [one.task_id for one in read_recordings(run)[:: config.rollout.group_size]]
    wall, cpu = (last - first for first, last in zip(clock.ends[0], clock.ends[-1], strict=True))
    tokens = sum(clock.tokens[1:])
    return Throughput("proxmo", tokens, cpu, wall, tokens / cpu), order


def _train_with_trl(config: Config, python: str, order: Sequence[str]) -> Throughput:
    from transformers import AutoTokenizer

    builder = PromptBuilder(config.prompt, AutoTokenizer.from_pretrained(config.model.name))
    prompts = []
    for name in order:
        moment = MomentsEnv.moments[name]
        view = View(moment.view.task, (), 0, moment.view.observation, moment.view.admissible)
        prompts.append({"prompt": builder.build(view).text, "answer": moment.action})
    job = {
        "model": config.model.name,
        "prompts": prompts,
        "tasks": config.rollout.tasks,
        "group_size": config.rollout.group_size,
        "iterations": config.optim.iterations,
        "max_new_tokens": config.sampling.max_new_tokens,
        "temperature": config.sampling.temperature,
        "lr": config.optim.lr,
    }
    lines = run_script(
        python,
        trl_trainer.__file__,
        json.dumps(job),
        task="train with TRL",
        needs="`pip install trl==1.16.0`",
    )
    found = json.loads(lines[-1])
    tokens, cpu = found["tokens"], found["cpu"]
    return Throughput(f"TRL {found['version']}", tokens, cpu, found["seconds"], tokens / cpu)


class _UntilTheSlowest:
    """Generates for every episode at every step until the last has ended, as is common.

    Responses for ended episodes are thrown away; the others are the same as without them.
    """

    def __init__(self, agent: LanguageAgent) -> None:
        self.agent = agent
        self._last: dict[tuple[int, ...], Situation] = {}

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        """Return the decisions for the live episodes."""
        # The seed of a situation is task, member, trial and step.
        live = {(situation.seed or ())[:-1]: situation for situation in situations}
        ended = [one for key, one in self._last.items() if key not in live]
        self._last |= live
        return self.agent.act([*situations, *ended], seed=seed)[: len(situations)]


def rollout_efficiency(config: Config, listener: Listener | None = None) -> list[Efficiency]:
    """Play one iteration's episodes twice: by our loop, and generating until the slowest ends."""
    listener = listener or Listener()
    model, tokenizer = load_model(config.model.name, device=config.model.device)
    agent = LanguageAgent(
        TransformersPolicy(model, tokenizer),
        PromptBuilder(config.prompt, tokenizer),
        style=config.prompt.style,
        temperature=config.sampling.temperature,
        max_new_tokens=config.sampling.max_new_tokens,
    )
    world, size, seed = config.env, config.rollout.group_size, config.seed
    tasks = proxmo_envs.task_set(world.id, world.split, world.data, **world.kwargs)
    drawn = tasks.sample(np.random.default_rng(seed), config.rollout.tasks)
    chosen = [task.task_id for task in drawn]
    found: list[Efficiency] = []
    actions: list[list[list[str | None]]] = []
    for loop, who in (("proxmo", agent), ("until the slowest ends", _UntilTheSlowest(agent))):
        listener.phase("playing", text=loop)
        before, started = agent.sampled_tokens, time.process_time()
        with closing(EnvPool(world)) as pool:
            episodes = Collector(pool, who).play(
                chosen, group_size=size, seed=(seed,), own_seeds=True
            )
        spent = time.process_time() - started
        useful = sum(len(step.response_ids) for one in episodes for step in one.steps)
        made = agent.sampled_tokens - before
        found.append(Efficiency(loop, len(episodes), made, useful, useful / made, spent))
        actions.append([[step.action for step in one.steps] for one in episodes])
    assert actions[0] == actions[1], "both loops play the same episodes"
    return found


def memory_growth(config: Config, iterations: int) -> Growth:
    """Train and watch the resident memory; the slope is that of a line through its values."""
    config = replace(
        config,
        optim=replace(config.optim, iterations=WARM_ITERATIONS + iterations),
        eval=replace(config.eval, episodes=1, every=0),
        checkpoint=CheckpointConfig(every=10, keep=1),
    )
    with tempfile.TemporaryDirectory() as folder:
        _, clock = _run(config, folder)
    watched = clock.memory[WARM_ITERATIONS - 1 :]
    slope = float(np.polyfit(np.arange(len(watched)), watched, 1)[0])
    return Growth(iterations, watched[0], watched[-1], slope)

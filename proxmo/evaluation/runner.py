"""Evaluation: plays every task of a panel with every seed; errors are no losses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from proxmo.agents.base import Agent
from proxmo.config import Config, EnvConfig
from proxmo.distributed import SINGLE, ProcessGroup
from proxmo.errors import UsageError
from proxmo.evaluation.panels import Panel, make_panel
from proxmo.evaluation.players import Player, checkpoint_player, policy_player
from proxmo.evaluation.results import EvaluationDirectory, Result
from proxmo.evaluation.summary import Evaluation, summarise
from proxmo.formats import percent
from proxmo.listener import Listener
from proxmo.rollout.collector import Collector
from proxmo.rollout.environments import EnvPool
from proxmo.types import Episode

# Parts the draws of an evaluation from those of the training with the same seed.
EVALUATION = 3
# Episodes in flight: enough for a language model to be asked for many responses at once.
WORKERS = 128


def evaluate(
    player: Player,
    panel: Panel,
    *,
    seeds: Sequence[int] = (0,),
    trials: int = 1,
    workers: int = WORKERS,
    timeout_s: float | None = None,
    out: Path | None = None,
    listener: Listener | None = None,
    processes: ProcessGroup = SINGLE,
) -> Evaluation:
    """Plays a panel; the draws of an episode depend on seed, task and trial alone.

    Args:
        player: who plays.
        panel: which tasks.
        seeds: of the player's draws; each plays the whole panel.
        trials: episodes per task and seed, for pass@k.
        workers: episodes in flight at once; the results do not depend on it.
        timeout_s: seconds an episode's environment may take in all; None: no limit.
        out: directory that keeps results and transcripts. Where it holds some of this evaluation,
            we play only episodes that are missing or ended in an error.
        listener: told about the progress.
        processes: the process group that shares the tasks, each with its own player; without `out`.

    Raises:
        UsageError: seeds that are not different, options that fit no environment, or an `out` that
            holds something else.
        DataError: `out` cannot be written or read.
    """
    if not seeds or len(set(seeds)) != len(seeds) or min(seeds) < 0:
        raise UsageError(f"seeds are {list(seeds)}; expected different numbers from 0 on")
    if trials < 1 or workers < 1:
        raise UsageError(f"trials is {trials} and workers is {workers}; expected at least 1")
    kept = None
    with ExitStack() as stack:
        pool = stack.enter_context(closing(EnvPool(panel.env, **player.env_options)))
        # Options that fit no environment are an error of the request, not of every episode.
        pool.give_back(pool.take())
        if out is not None:
            settings = _settings(player, panel, seeds, trials)
            kept = stack.enter_context(EvaluationDirectory(out, panel, settings))
        collector = Collector(pool, player.agent, timeout_s=timeout_s)
        game = _Game(player, panel, collector, kept, listener or Listener(), processes)
        for seed in seeds:
            game.play(seed, trials, workers, total=len(panel.tasks) * len(seeds) * trials)
        results = [result for part in processes.all_gather(game.results) for result in part]
        evaluation = summarise(results, panel, seeds=seeds, trials=trials)
        if kept is not None:
            kept.finish(evaluation.to_json())
    return evaluation


def _settings(player: Player, panel: Panel, seeds: Sequence[int], trials: int) -> dict[str, Any]:
    """Returns all that results depend on; the tasks by the hash of their panel."""
    env = panel.env
    return {
        "panel": {
            "name": panel.name,
            "split": panel.split,
            "tasks": len(panel.tasks),
            "hash": panel.hash,
        },
        "env": {"id": env.id, "max_steps": env.max_steps, "kwargs": env.kwargs},
        "player": player.to_json(),
        "seeds": list(seeds),
        "trials": trials,
    }


@dataclass
class _Game:
    """The play of one evaluation; `results` holds the kept ones and the new ones."""

    player: Player
    panel: Panel
    collector: Collector
    kept: EvaluationDirectory | None
    listener: Listener
    processes: ProcessGroup

    def __post_init__(self) -> None:
        self.results: list[Result] = [] if self.kept is None else list(self.kept.results)
        self.scored = sum(r.scored for r in self.results)
        self.wins = sum(r.won for r in self.results)

    def play(self, seed: int, trials: int, workers: int, *, total: int) -> None:
        """Plays the missing episodes of one seed."""
        place = {task_id: number for number, task_id in enumerate(self.panel.tasks)}
        done = {(place[r.task_id], r.trial) for r in self.results if r.seed == seed}
        others = [number for number in place.values() if not self.processes.owns(number)]
        done |= {(number, trial) for number in others for trial in range(trials)}
        self.collector.play(
            list(self.panel.tasks),
            group_size=trials,
            seed=(seed, EVALUATION),
            max_live=workers,
            own_seeds=True,
            done=done,
            on_end=partial(self._end, seed),
            progress=lambda *_: self._tell(total),
        )

    def _end(self, seed: int, episode: Episode) -> None:
        result = Result.of(episode, seed, self.player.prices)
        self.results.append(result)
        self.scored += result.scored
        self.wins += result.won
        if self.kept is not None:
            self.kept.add(result, episode)

    def _tell(self, total: int) -> None:
        text = f"success {percent(self.wins / self.scored)}" if self.scored else ""
        self.listener.phase("evaluating", done=len(self.results), total=total, text=text)


def evaluate_agent(
    agent: Agent,
    env: EnvConfig,
    *,
    split: str,
    episodes: int | None = None,
    seed: int = 0,
    **options: Any,
) -> Evaluation:
    """Plays tasks of a split once, as training does for its validation.

    Args:
        agent: who plays.
        env: the environment; its split is replaced by `split`.
        split: which tasks.
        episodes: play that many (see `make_panel`); None plays all.
        seed: of the agent's own draws.
        options: those of `evaluate`.
    """
    panel = make_panel(env, [split], episodes=episodes)
    return evaluate(Player(agent, "-", "-"), panel, seeds=[seed], **options)


def evaluate_checkpoint(
    checkpoint: Path,
    *,
    panel: Panel | None = None,
    env: str | None = None,
    split: str | None = None,
    data: str | None = None,
    episodes: int | None = None,
    temperature: float | None = None,
    device: str = "auto",
    listener: Listener | None = None,
    **options: Any,
) -> Evaluation:
    """Evaluates a checkpoint, or the latest of a run, as it was trained.

    Every argument that is None is taken from the checkpoint; a `panel` replaces `env`, `split`,
    `data` and `episodes`. `options` are those of `evaluate`.

    Raises:
        CheckpointError: when the directory is not a checkpoint.
    """
    if listener is not None:
        listener.phase("loading", text=str(checkpoint))
    player, config = checkpoint_player(checkpoint, temperature=temperature, device=device)
    if panel is None:
        panel = checkpoint_panel(config, env=env, split=split, data=data, episodes=episodes)
    return evaluate(player, panel, listener=listener, **options)


def checkpoint_panel(
    config: Config,
    *,
    env: str | None = None,
    split: str | None = None,
    data: str | None = None,
    episodes: int | None = None,
) -> Panel:
    """The validation tasks of a training run; every argument that is None is the run's own."""
    chosen = config.env
    if env is not None and env.rpartition(":")[2] != chosen.id.rpartition(":")[2]:
        chosen = EnvConfig(id=env)
    elif env is not None and ":" in env:
        # The same one, with the module to import it from.
        chosen = dataclasses.replace(chosen, id=env)
    if data is not None:
        # The step limit and the options were those of the games trained on.
        chosen = EnvConfig(id=chosen.id, data=data)
    episodes = episodes if episodes is not None else config.eval.episodes
    return make_panel(chosen, [split or config.eval.split], episodes=episodes)


def evaluate_policy(
    policy: str,
    *,
    panel: Panel | None = None,
    env: str = "ALFWorld-v0",
    split: str = "valid_unseen",
    data: str | None = None,
    episodes: int | None = None,
    kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Evaluation:
    """Evaluates the environment's "expert" or a "random" player.

    A `panel` replaces `env`, `split`, `data`, `episodes` and `kwargs`, the environment's keyword
    arguments. `options` are those of `evaluate`.
    """
    if panel is None:
        config = EnvConfig(id=env, data=data, kwargs=dict(kwargs or {}))
        panel = make_panel(config, [split], episodes=episodes)
    return evaluate(policy_player(policy), panel, **options)

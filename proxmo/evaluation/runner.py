"""Evaluation: every task of a panel, by every seed, as often as asked; errors apart from losses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
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
            only what is missing or ended in an error is played.
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
    """What results depend on; the tasks by the hash of their panel."""
    world = {"id": panel.env.id, "max_steps": panel.env.max_steps, "kwargs": panel.env.kwargs}
    about = {
        "name": panel.name,
        "split": panel.split,
        "tasks": len(panel.tasks),
        "hash": panel.hash,
    }
    return {
        "panel": about,
        "env": world,
        "player": player.to_json(),
        "seeds": list(seeds),
        "trials": trials,
    }


class _Game:
    """The play of one evaluation; `results` holds those that are kept already, and the new ones."""

    def __init__(
        self,
        player: Player,
        panel: Panel,
        collector: Collector,
        kept: EvaluationDirectory | None,
        listener: Listener,
        processes: ProcessGroup,
    ) -> None:
        self.player = player
        self.processes = processes
        self.panel = panel
        self.collector = collector
        self.kept = kept
        self.listener = listener
        self.results: list[Result] = [] if kept is None else list(kept.results)
        self.scored = sum(r.scored for r in self.results)
        self.wins = sum(r.won for r in self.results)

    def play(self, seed: int, trials: int, workers: int, *, total: int) -> None:
        """Plays with one seed what is not there yet."""
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
    workers: int = WORKERS,
    timeout_s: float | None = None,
    listener: Listener | None = None,
    processes: ProcessGroup = SINGLE,
    **env_options: Any,
) -> Evaluation:
    """Plays tasks of a split once, as training does for its validation.

    Args:
        agent: who plays.
        env: the world; its split is replaced by `split`.
        split: which tasks.
        episodes: play that many (see `make_panel`); None plays all.
        seed: of the agent's own draws.
        workers: episodes in flight at once.
        timeout_s: seconds an episode's environment may take in all; None: no limit.
        listener: told about the progress.
        processes: the process group that shares the tasks.
        env_options: further keyword arguments of the environment.
    """
    panel = make_panel(env, [split], episodes=episodes)
    player = Player(agent, "-", "-", env_options=env_options)
    return evaluate(
        player,
        panel,
        seeds=[seed],
        workers=workers,
        timeout_s=timeout_s,
        listener=listener,
        processes=processes,
    )


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
    world = config.env
    if env is not None and env.rpartition(":")[2] != world.id.rpartition(":")[2]:
        world = EnvConfig(id=env)
    elif env is not None and ":" in env:
        # The same one, with the module to import it from.
        world = dataclasses.replace(world, id=env)
    if data is not None:
        # The step limit and the options were those of the games trained on.
        world = EnvConfig(id=world.id, data=data)
    episodes = episodes if episodes is not None else config.eval.episodes
    return make_panel(world, [split or config.eval.split], episodes=episodes)


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
        world = EnvConfig(id=env, data=data, kwargs=dict(kwargs or {}))
        panel = make_panel(world, [split], episodes=episodes)
    return evaluate(policy_player(policy), panel, **options)

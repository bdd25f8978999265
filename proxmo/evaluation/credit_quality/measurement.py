"""Measures the truth of many tasks: several processes, one file per task, resumable."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import proxmo_envs
from proxmo.agents.base import Agent
from proxmo.agents.scripted import NoisyExpertAgent
from proxmo.config import EnvConfig
from proxmo.errors import DataError, UsageError
from proxmo.evaluation.credit_quality.truth import Laboratory, Truth
from proxmo.files import replace_bytes, replace_text
from proxmo.rollout.environments import make_env
from proxmo_envs.creators import creator_of

# Standard deviation of the noise between tasks: policies are better at some tasks than at others.
NOISE_SPREAD = 0.12
LEAST_NOISE, MOST_NOISE = 0.05, 0.97
SETTINGS_FILE = "settings.json"
_COLUMNS = ("episode", "reward", "success", "truncated", "state", "action", "value")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a measurement depends on.

    Attributes:
        env: environment, data, split, step limit.
        tasks: how many tasks, drawn from the split with the seed.
        group_size: G, episodes of each task.
        noise: mean probability of a random action in the place of the expert's.
        checkpoint: a model as the policy in the place of the noisy expert.
        continuations: n, of every visited state; even.
        gamma: discount factor.
        seed: of every draw.
    """

    env: EnvConfig
    tasks: int = 48
    group_size: int = 8
    noise: float = 0.65
    checkpoint: str | None = None
    continuations: int = 32
    gamma: float = 0.95
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON."""
        return dataclasses.asdict(self)


def measure(
    settings: Settings,
    out: Path,
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Truth]:
    """Measures what is missing in a directory and returns the truth of all tasks.

    Args:
        settings: what is measured; a directory holds one measurement.
        out: one file per task is written here as soon as it is measured.
        workers: processes; a model as policy uses one.
        progress: called with (tasks measured, tasks in all).

    Raises:
        UsageError: the directory holds a measurement with other settings, the environment has no
            expert or no snapshots, or settings out of range.
        DataError: a file of an earlier measurement is damaged.
    """
    _check(settings)
    tasks = _tasks(settings)
    # Finds what is wrong with environment and policy before anything is written.
    with closing(_Worker(settings)) as worker:
        _claim(settings, out)
        return _complete(worker, settings, tasks, out, workers, progress)


def _complete(
    worker: _Worker,
    settings: Settings,
    tasks: list[str],
    out: Path,
    workers: int,
    progress: Callable[[int, int], None] | None,
) -> list[Truth]:
    missing = [number for number in range(len(tasks)) if not _file(out, number).exists()]
    done = len(tasks) - len(missing)
    if progress is not None:
        progress(done, len(tasks))
    workers = 1 if settings.checkpoint is not None else max(1, min(workers, len(missing)))
    for number, truth in _measured(worker, settings, tasks, missing, workers):
        _write(_file(out, number), truth)
        done += 1
        if progress is not None:
            progress(done, len(tasks))
    return [_read(_file(out, number), task_id) for number, task_id in enumerate(tasks)]


def _check(settings: Settings) -> None:
    if settings.continuations < 2 or settings.continuations % 2:
        raise UsageError(
            f"continuations is {settings.continuations}; expected an even number from 2 on, as "
            "their halves tell how reliable the result is"
        )
    for name in ("tasks", "group_size"):
        if getattr(settings, name) < 2:
            raise UsageError(f"{name} is {getattr(settings, name)}; expected at least 2")


def _claim(settings: Settings, out: Path) -> None:
    """Makes the directory, or checks that it belongs to this measurement."""
    out.mkdir(parents=True, exist_ok=True)
    wanted = json.dumps(settings.to_json(), indent=2, sort_keys=True)
    path = out / SETTINGS_FILE
    if not path.exists():
        replace_text(path, wanted)
    elif path.read_bytes() != wanted.encode():
        raise UsageError(f"{out} holds a measurement with other settings ({path}); choose another")


def _tasks(settings: Settings) -> list[str]:
    env = settings.env
    known = proxmo_envs.task_set(env.id, env.split, env.data, **env.kwargs)
    rng = np.random.default_rng(settings.seed)
    return [task.task_id for task in known.sample(rng, settings.tasks)]


def _measured(
    worker: _Worker, settings: Settings, tasks: list[str], missing: list[int], workers: int
) -> Iterator[tuple[int, Truth]]:
    """Yields (number, truth) of each missing task as soon as it is measured."""
    if workers == 1:
        for number in missing:
            yield number, worker.measure(number, tasks[number])
        return
    # Threads of torch or FAISS do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _start, (settings,)) as pool:
        running: dict[Future[Truth], int] = {}
        running = {pool.submit(_measure_one, number, tasks[number]): number for number in missing}
        try:
            while running:
                ready, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ready:
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(cancel_futures=True)


class _Worker:
    """Measures tasks one by one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._agent, self._config = _policy(settings)
        self._laboratory = Laboratory(
            self._make_env,
            self._agent,
            step_limit=_step_limit(settings.env),
            gamma=settings.gamma,
            seed=settings.seed,
        )

    def _make_env(self) -> Any:
        # The laboratory counts steps itself: a wrapper's count is in no snapshot.
        return make_env(self._config, expert_action=True).unwrapped

    def measure(self, number: int, task_id: str) -> Truth:
        settings = self._settings
        if isinstance(self._agent, NoisyExpertAgent):
            self._agent.noise = task_noise(settings.noise, settings.seed, task_id)
        return self._laboratory.measure(
            task_id,
            number,
            episodes=settings.group_size,
            continuations=settings.continuations,
        )

    def close(self) -> None:
        self._laboratory.close()


_worker: _Worker | None = None


def _start(settings: Settings) -> None:
    global _worker
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = _Worker(settings)


def _end_with_parent() -> None:
    """Ends this process when the one that started it is gone, killed perhaps."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _measure_one(number: int, task_id: str) -> Truth:
    assert _worker is not None
    return _worker.measure(number, task_id)


def task_noise(mean: float, seed: int, task_id: str) -> float:
    """The noise of the policy in a task: normal around the mean, within limits."""
    rng = np.random.default_rng([seed, zlib.crc32(task_id.encode())])
    drawn = mean + NOISE_SPREAD * rng.standard_normal()
    return float(np.clip(drawn, LEAST_NOISE, MOST_NOISE))


def _policy(settings: Settings) -> tuple[Agent, EnvConfig]:
    if settings.checkpoint is None:
        return NoisyExpertAgent(settings.noise), settings.env
    from proxmo.evaluation.players import checkpoint_player

    player, _ = checkpoint_player(Path(settings.checkpoint), temperature=1.0)
    return player.agent, settings.env


def _step_limit(env: EnvConfig) -> int:
    limit = env.max_steps or creator_of(env.id)[0].max_episode_steps
    if limit is None:
        raise UsageError(f"{env.id} has no step limit; set env.max_steps")
    return limit


def _file(out: Path, number: int) -> Path:
    return out / f"task-{number:04d}.json"


def _write(path: Path, truth: Truth) -> None:
    table = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in ((f.name, getattr(truth, f.name)) for f in dataclasses.fields(truth))
    }
    replace_bytes(path, json.dumps(table).encode())


def _read(path: Path, task_id: str) -> Truth:
    try:
        table = json.loads(path.read_bytes())
        truth = Truth(
            task_id=table["task_id"],
            episode=np.array(table["episode"], dtype=np.int64),
            step=np.array(table["step"], dtype=np.int64),
            reward=np.array(table["reward"], dtype=np.float64),
            success=np.array(table["success"], dtype=bool),
            truncated=np.array(table["truncated"], dtype=bool),
            state=tuple(table["state"]),
            action=tuple(table["action"]),
            expert=None if table["expert"] is None else np.array(table["expert"], dtype=bool),
            value=np.array(table["value"], dtype=np.float64),
        )
    except (ValueError, KeyError, TypeError) as cause:
        raise DataError(f"{path} is damaged ({cause!r}); delete it and run again") from cause
    rows = len(truth.step)
    columns = [getattr(truth, name) for name in _COLUMNS] + [truth.expert]
    whole = all(column is None or len(column) == rows for column in columns)
    starts = np.append(True, np.diff(truth.episode) != 0)[:rows]
    counted = np.arange(rows) - np.maximum.accumulate(np.where(starts, np.arange(rows), 0))
    if not (rows and whole and truth.value.shape == (rows, 2) and (counted == truth.step).all()):
        raise DataError(f"{path} is damaged (columns that do not fit); delete it and run again")
    if not (np.isfinite(truth.value).all() and np.isfinite(truth.reward).all()):
        raise DataError(f"{path} is damaged (numbers that are not finite); delete it and run again")
    if truth.task_id != task_id:
        raise DataError(f"{path} is of task {truth.task_id}, expected {task_id}; delete it")
    return truth

"""Tasks and sets of tasks, in an order that depends on nothing but their ids."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from proxmo_envs.errors import InvalidOptionError, UnknownTaskError, unknown

# Splits of an environment that lists no tasks, and how many seeds each has.
SEED_SPLITS = ("train", "valid_seen", "valid_unseen", "validation", "test")
_SEEDS_PER_SPLIT = 1_000
_SEED = "seed-"


@dataclass(frozen=True, slots=True)
class Task:
    """One task of an environment; an equal content hash means the same task, from whatever file."""

    env: str
    split: str
    task_id: str
    content_hash: str


class TaskSet:
    """The tasks of one split, sorted by id; content hashes are computed only when asked for."""

    def __init__(
        self,
        env: str,
        split: str,
        ids: Iterable[str],
        content_hash: Callable[[str], str],
        facts: Callable[[], Mapping[str, str]] = dict,
        data: str | None = None,
    ) -> None:
        """Hold the `ids` of a split.

        Args:
            env: id of the environment.
            split: name of the split.
            ids: of the tasks, in any order.
            content_hash: maps an id to the hash of what the task is.
            facts: what else a manifest says of the tasks; asked for only then.
            data: the `data=` that gives these tasks on every machine; None where no word does.
        """
        self.env = env
        self.split = split
        self.data = data
        self.ids: tuple[str, ...] = tuple(sorted(ids))
        self._content_hash = content_hash
        self._facts = facts

    def __len__(self) -> int:
        """Return the number of tasks."""
        return len(self.ids)

    def __getitem__(self, index: int) -> Task:
        """Return the task at `index` of the sorted ids."""
        task_id = self.ids[index]
        return Task(self.env, self.split, task_id, self._content_hash(task_id))

    def __iter__(self) -> Iterator[Task]:
        """Go through all tasks in the order of their ids."""
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        """Say what the set is of, and how large."""
        return f"TaskSet({self.env!r}, {self.split!r}, {len(self)} tasks)"

    @cached_property
    def manifest_hash(self) -> str:
        """Hash of all ids and contents: sets with the same manifest hash hold the same tasks."""
        lines = (f"{task.task_id} {task.content_hash}\n" for task in self)
        header = f"{self.env} {self.split}\n"
        return hashlib.sha256((header + "".join(lines)).encode()).hexdigest()

    def manifest(self) -> dict[str, str | int]:
        """Return what stands beside results: environment, split, number, hash and further facts."""
        return {
            "env": self.env,
            "split": self.split,
            "tasks": len(self),
            "manifest_hash": self.manifest_hash,
            **self._facts(),
        }

    def sample(self, rng: np.random.Generator, n: int) -> list[Task]:
        """Draw `n` tasks: all different while they last, then further passes over the set."""
        if n < 0 or (n and not self.ids):
            raise ValueError(f"cannot draw {n} tasks from {self!r}")
        order: list[int] = []
        while len(order) < n:
            order += rng.permutation(len(self.ids))[: n - len(order)].tolist()
        return [self[index] for index in order]


def seed_tasks(env: str, split: str) -> TaskSet:
    """Return the tasks of an environment that lists none: seeds of its `reset`.

    No seed is in two splits. Raises InvalidOptionError for a split that is not in `SEED_SPLITS`.
    """
    if split not in SEED_SPLITS:
        raise InvalidOptionError(unknown(f"split of {env}", split, SEED_SPLITS))
    first = SEED_SPLITS.index(split) * _SEEDS_PER_SPLIT
    ids = (seed_task(seed) for seed in range(first, first + _SEEDS_PER_SPLIT))
    return TaskSet(env, split, ids, lambda one: hashlib.sha256(f"{env} {one}".encode()).hexdigest())


def seed_task(seed: int) -> str:
    """Return the task id of a seed, such as `seed-0017`."""
    return f"{_SEED}{seed:04d}"


def seed_of(task_id: str) -> int:
    """Return the seed in a task id; raises UnknownTaskError for any other id."""
    number = task_id.removeprefix(_SEED)
    if not (task_id.startswith(_SEED) and number.isascii() and number.isdigit()):
        raise UnknownTaskError(f"unknown task {task_id[:200]!r}; expected one such as seed-0017")
    return int(number)

"""Task sets: order, manifest, drawing."""

from __future__ import annotations

import numpy as np
import pytest

from proxmo_envs import Task, TaskSet


def task_set(*ids: str, split: str = "train", salt: str = "") -> TaskSet:
    """Return a set whose content hashes follow from the ids."""
    return TaskSet("World-v0", split, ids, lambda task_id: f"hash of {task_id}{salt}")


def test_tasks_come_in_the_order_of_their_ids() -> None:
    assert task_set("b", "c", "a").ids == ("a", "b", "c")
    assert list(task_set("b", "a")) == [
        Task("World-v0", "train", "a", "hash of a"),
        Task("World-v0", "train", "b", "hash of b"),
    ]
    assert task_set("b", "a")[-1].task_id == "b"


def test_the_manifest_hash_depends_on_ids_split_and_contents_not_on_order() -> None:
    manifest = task_set("a", "b").manifest_hash
    assert task_set("b", "a").manifest_hash == manifest
    others = (task_set("a"), task_set("a", "b", split="test"), task_set("a", "b", salt="!"))
    assert manifest not in {other.manifest_hash for other in others}


def test_the_manifest_says_what_the_tasks_are_and_what_else_the_environment_tells() -> None:
    tasks = TaskSet("World-v0", "train", ["a"], str, lambda: {"grammar": "old"})
    assert tasks.manifest() == {
        "env": "World-v0",
        "split": "train",
        "tasks": 1,
        "manifest_hash": tasks.manifest_hash,
        "grammar": "old",
    }


def test_drawn_tasks_differ_while_they_last() -> None:
    tasks = task_set(*"abcde")
    drawn = [task.task_id for task in tasks.sample(np.random.default_rng(0), 13)]
    assert sorted(drawn[:5]) == sorted(drawn[5:10]) == list("abcde")
    assert len(set(drawn[10:])) == 3
    assert tasks.sample(np.random.default_rng(0), 0) == []


def test_drawing_follows_the_generator_alone() -> None:
    tasks = task_set(*"abcdefgh")
    first, second = (tasks.sample(np.random.default_rng(3), 4) for _ in range(2))
    assert first == second != tasks.sample(np.random.default_rng(4), 4)


def test_nothing_can_be_drawn_from_an_empty_set() -> None:
    with pytest.raises(ValueError, match="cannot draw 1 tasks"):
        task_set().sample(np.random.default_rng(0), 1)
    with pytest.raises(ValueError, match="cannot draw -1 tasks"):
        task_set("a").sample(np.random.default_rng(0), -1)

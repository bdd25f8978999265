"""Importing `proxmo_envs` registers its environments, quickly and without heavy company."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

import proxmo_envs
from proxmo_envs import InvalidOptionError, TaskSet
from proxmo_envs.task import SEED_SPLITS


def python(code: str, repository: Path) -> str:
    """Run code in a new interpreter and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=repository, env=environment
    )
    return done.stdout


def test_the_environment_is_made_with_and_without_an_import(repository: Path) -> None:
    kwargs = "data='generated', difficulty='tiny'"
    code = f"import gymnasium; gymnasium.make('proxmo_envs:ALFWorld-v0', {kwargs}).reset()"
    python(code, repository)
    python(f"import proxmo_envs, gymnasium; gymnasium.make('ALFWorld-v0', {kwargs})", repository)


@pytest.mark.parametrize(
    ("env_id", "action"), [("ALFWorld-v0", "look"), ("WebShop-v0", "search[shirt]")]
)
def test_importing_and_playing_loads_nothing_heavy(
    env_id: str, action: str, repository: Path
) -> None:
    code = (
        "import sys, proxmo_envs, gymnasium\n"
        f"env = gymnasium.make('{env_id}', difficulty='small', expert_action=True)\n"
        "env.reset(seed=0)\n"
        f"env.step('{action}')\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = set(python(code, repository).split())
    assert "proxmo_envs" in loaded
    heavy = {"torch", "transformers", "faiss", "flask", "bs4", "scipy", "numba", "proxmo", "click"}
    assert not loaded & heavy


def test_importing_adds_next_to_nothing_to_gymnasium(repository: Path) -> None:
    code = (
        "import time, gymnasium\n"
        "start = time.process_time()\n"
        "import proxmo_envs\n"
        "print(time.process_time() - start)"
    )
    assert float(python(code, repository)) < 0.05


def test_an_id_with_a_slip_gets_the_near_name() -> None:
    with pytest.raises(gymnasium.error.NameNotFound, match="ALFWorld"):
        gymnasium.make("ALFWold-v0")
    with pytest.raises(InvalidOptionError, match="did you mean ALFWorld-v0"):
        proxmo_envs.task_set("ALFWold-v0")


def test_an_unknown_id_gets_names_of_text_worlds_not_of_robots() -> None:
    with pytest.raises(InvalidOptionError, match="'Zzz-v9'; known: .*ALFWorld-v0") as caught:
        proxmo_envs.task_set("Zzz-v9")
    assert "Pusher" not in str(caught.value) and "CartPole" not in str(caught.value)


@pytest.mark.parametrize("env_id", ["ALFWorld-v0", "proxmo_envs:ALFWorld-v0"])
def test_the_tasks_of_an_environment_are_listed_without_making_it(env_id: str) -> None:
    tasks = proxmo_envs.task_set(env_id, "valid_seen", data="generated", difficulty="tiny")
    assert len(tasks) == len(tasks.ids) > 100
    assert tasks[0].task_id == "generated/valid_seen/tiny/000000"
    assert tasks[0].env == "ALFWorld-v0" and tasks[0].split == "valid_seen"


def test_the_splits_of_generated_games_are_disjoint() -> None:
    ids = [set(tasks("train").ids), set(tasks("valid_seen").ids), set(tasks("valid_unseen").ids)]
    assert len(set.union(*ids)) == sum(map(len, ids))


def tasks(split: str, difficulty: str = "tiny") -> TaskSet:
    """Return generated tasks."""
    return proxmo_envs.task_set("ALFWorld-v0", split, "generated", difficulty=difficulty)


def test_the_manifest_tells_splits_and_difficulties_apart() -> None:
    manifests = {
        tasks("train").manifest_hash,
        tasks("valid_seen").manifest_hash,
        tasks("train", "default").manifest_hash,
    }
    assert len(manifests) == 3
    assert tasks("train").manifest_hash in manifests


def test_another_grammar_makes_other_tasks() -> None:
    def manifest(grammar: str) -> str:
        return proxmo_envs.task_set(
            "ALFWorld-v0", "valid_seen", "generated", difficulty="tiny", grammar=grammar
        ).manifest_hash

    assert manifest("put") != manifest("auto") == tasks("valid_seen").manifest_hash
    with pytest.raises(InvalidOptionError, match="did you mean move"):
        manifest("mov")


@pytest.mark.parametrize(
    "given",
    [["a", "b"], TaskSet("Odd-v0", "train", [1, 2], str), None],  # type: ignore[list-item]
)
def test_tasks_that_are_no_task_set_of_texts_are_one_clear_error(given: object) -> None:
    class Odd(gymnasium.Env):  # type: ignore[type-arg]
        @classmethod
        def task_set(cls, split: str, data: str | None) -> object:
            return given

    gymnasium.register("Odd-v0", entry_point=Odd)
    try:
        with pytest.raises(InvalidOptionError, match="expected a TaskSet whose ids are texts"):
            proxmo_envs.task_set("Odd-v0")
    finally:
        del gymnasium.registry["Odd-v0"]


def test_tasks_listed_twice_or_by_a_method_of_instances_are_clear_errors() -> None:
    class Twice(gymnasium.Env):  # type: ignore[type-arg]
        @classmethod
        def task_set(cls, split: str, data: str | None) -> TaskSet:
            return TaskSet("Odd-v0", split, ["b", "a", "b"], str)

    class Instance(gymnasium.Env):  # type: ignore[type-arg]
        def task_set(self, split: str, data: str | None) -> TaskSet:
            return TaskSet("Odd-v0", split, ["a"], str)

    for made, text in ((Twice, "the id 'b' twice"), (Instance, "put @classmethod above it")):
        gymnasium.register("Odd-v0", entry_point=made)
        try:
            with pytest.raises(InvalidOptionError, match=text):
                proxmo_envs.task_set("Odd-v0")
        finally:
            del gymnasium.registry["Odd-v0"]


def test_an_environment_lists_its_tasks_by_a_class_method_or_its_tasks_are_seeds() -> None:
    class Room(gymnasium.Env):  # type: ignore[type-arg]
        @classmethod
        def task_set(cls, split: str, data: str | None, size: int) -> TaskSet:
            return TaskSet("Room-v0", split, [f"room-{k}" for k in range(size)], lambda task: task)

    gymnasium.register("Room-v0", entry_point=Room, kwargs={"size": 2})
    gymnasium.register("Bare-v0", entry_point=gymnasium.Env)
    try:
        assert proxmo_envs.task_set("Room-v0").ids == ("room-0", "room-1")
        assert len(proxmo_envs.task_set("Room-v0", size=3)) == 3
        with pytest.raises(InvalidOptionError, match="did you mean valid_seen"):
            proxmo_envs.task_set("Bare-v0", "valid_see")
        splits = [set(proxmo_envs.task_set("Bare-v0", split).ids) for split in SEED_SPLITS]
        assert "seed-0017" in splits[0] and len(set.union(*splits)) == 5_000
    finally:
        del gymnasium.registry["Room-v0"], gymnasium.registry["Bare-v0"]


@pytest.mark.parametrize("env_id", [".x:y", "json:", ":ALFWorld-v0", "a..b:c"])
def test_an_id_of_another_form_is_refused_with_the_form(env_id: str) -> None:
    with pytest.raises(InvalidOptionError, match="wrong form, expected ID or MODULE:ID"):
        proxmo_envs.task_set(env_id)


def test_a_module_that_cannot_be_imported_is_named_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_world.py").write_text("raise RuntimeError('broken')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidOptionError, match="cannot import broken_world: RuntimeError: brok"):
        proxmo_envs.task_set("broken_world:Mine-v0")

"""Panels: which tasks, in which order, under which hash; and what does not fit them."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import proxmo_envs
from proxmo.config import EnvConfig
from proxmo.errors import DataError, UnknownNameError, UsageError
from proxmo.evaluation.panels import Panel, make_panel, named_panels, open_panel, write_panel
from proxmo_envs import InvalidOptionError
from proxmo_envs.alfworld import sources
from tests.fakes import COUNTER
from tests.proxmo_envs.alfworld.reference import pack_rows, read_rows

TINY = EnvConfig(data="generated", kwargs={"difficulty": "tiny"})


def counter(tasks: int = 20) -> EnvConfig:
    return EnvConfig(id=COUNTER, kwargs={"tasks": tasks})


def test_a_panel_holds_each_task_once_in_the_order_of_the_ids():
    panel = make_panel(counter(), ["valid_seen"])
    assert list(panel.tasks) == sorted(f"valid_seen-{i}" for i in range(20))
    assert panel.name == "Counter-v0/valid_seen/20"


def test_a_choice_is_the_same_for_everyone_and_not_just_the_first_tasks():
    chosen = list(make_panel(counter(), ["train"], episodes=8).tasks)
    assert chosen == list(make_panel(counter(), ["train"], episodes=8).tasks) == sorted(chosen)
    assert len(set(chosen)) == 8
    assert chosen != list(make_panel(counter(), ["train"]).tasks)[:8]
    assert chosen != list(make_panel(counter(), ["train"], episodes=8, seed=1).tasks)


def test_several_splits_make_one_panel_in_their_order():
    panel = make_panel(counter(3), ["valid_unseen", "train"])
    assert [t.partition("-")[0] for t in panel.tasks] == ["valid_unseen"] * 3 + ["train"] * 3
    assert panel.split == "valid_unseen+train"


def test_a_split_that_is_named_twice_counts_once():
    assert make_panel(counter(3), ["train", "train"]) == make_panel(counter(3), ["train"])


def test_the_hash_covers_environment_step_limit_options_ids_contents_and_order():
    panel = make_panel(counter(), ["train"], episodes=3)
    lines = "".join(f"{t} {content}\n" for t, content in panel.tasks.items())
    first = 'Counter-v0 {"tasks": 20}\n'
    assert panel.hash == hashlib.sha256(f"{first}{lines}".encode()).hexdigest()
    backwards = dict(reversed(list(panel.tasks.items())))
    changed = {**panel.tasks, "train-3": "other"}
    others = [
        replace(panel, tasks=backwards),
        replace(panel, tasks=changed),
        replace(panel, env=replace(panel.env, max_steps=7)),
        replace(panel, env=replace(panel.env, id="Other-v0")),
        replace(panel, env=replace(panel.env, kwargs={"tasks": 20, "hints": True})),
    ]
    assert len({panel.hash, *(one.hash for one in others)}) == 6


def test_a_step_limit_counts_as_it_holds_however_it_is_given():
    def digest(limit: int | None, **kwargs: int) -> str:
        env = EnvConfig("WebShop-v0", max_steps=limit, kwargs=kwargs)
        return Panel("p", env, ("test",), {"a": "b"}).hash

    assert digest(None) == digest(15) == digest(None, max_episode_steps=15)
    assert digest(7) == digest(None, max_episode_steps=7) == digest(7, max_episode_steps=15)
    assert digest(7) != digest(15)


def test_the_hash_does_not_cover_name_and_place_of_the_data():
    here = make_panel(TINY, ["valid_seen"], episodes=4)
    there = make_panel(EnvConfig(kwargs=TINY.kwargs), ["valid_seen"], episodes=4, name="other")
    assert here.hash == there.hash
    served = EnvConfig("WebShop-v0", kwargs={"base_url": "http://localhost:3000"})
    digests = [Panel("p", env, ("test",), {}).hash for env in (served, EnvConfig("WebShop-v0"))]
    assert digests[0] == digests[1]


def test_the_order_of_a_directory_changes_nothing(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
):
    for source in sorted((shared / "alfworld" / "games" / "valid_seen").iterdir())[:4]:
        (tmp_path / "valid_seen").mkdir(exist_ok=True)
        (tmp_path / "valid_seen" / source.name).symlink_to(source)
    env = EnvConfig(data=str(tmp_path))
    once = make_panel(env, ["valid_seen"])
    assert len(once.tasks) >= 4
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda self: iter(sorted(listed(self), reverse=True)))
    sources._open_path.cache_clear()
    assert make_panel(env, ["valid_seen"]) == once


@pytest.mark.parametrize(
    ("name", "size"),
    [("alfworld-valid-seen", 140), ("alfworld-valid-unseen", 134), ("alfworld-both", 274)],
)
def test_the_official_panels_are_those_of_the_published_data(
    name: str, size: int, official_games: Path, caplog: pytest.LogCaptureFixture
):
    panel = open_panel(name, str(official_games))
    assert (len(panel.tasks), panel.hash) == (size, named_panels()[name][1].hash)
    assert not caplog.records


def official(path: Path, change: Callable[[list[dict[str, str]]], None], shared: Path) -> str:
    """The 134 games of valid_unseen, with a change."""
    rows = read_rows(shared, ["valid_unseen"])
    change(rows)
    return str(pack_rows(rows, path))


def test_a_game_that_is_missing_is_an_error_and_not_a_smaller_panel(tmp_path: Path, shared: Path):
    data = official(tmp_path / "games.packed", lambda rows: rows.pop(7), shared)
    with pytest.raises(DataError, match="has 134 tasks, but the data holds 133 of them"):
        open_panel("alfworld-valid-unseen", data)


def test_games_that_are_not_as_published_are_said(
    tmp_path: Path, shared: Path, caplog: pytest.LogCaptureFixture
):
    def change(rows: list[dict[str, str]]) -> None:
        rows[7]["task"] += " please"

    with caplog.at_level(logging.WARNING):
        panel = open_panel("alfworld-valid-unseen", official(tmp_path / "g.packed", change, shared))
    assert panel.hash != named_panels()["alfworld-valid-unseen"][1].hash
    assert "are not those of the published data" in caplog.text


def test_a_panel_of_official_games_asks_for_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    with pytest.raises(UsageError, match=r"--data PATH or \$ALFWORLD_DATA"):
        open_panel("alfworld-both")


def test_panels_of_generated_games_have_size_difficulty_and_seed_in_their_name():
    panel = open_panel("alfworld-generated-tiny-12")
    assert len(panel.tasks) == 12
    assert all(task.startswith("generated/valid_unseen/tiny/") for task in panel.tasks)
    assert open_panel("alfworld-generated-tiny-12-seed0").hash == panel.hash
    assert open_panel("alfworld-generated-tiny-12-seed1").hash != panel.hash
    assert set(panel.tasks) < set(open_panel("alfworld-generated-tiny-20").tasks)
    with pytest.raises(DataError, match="has 1001 tasks, but the data holds 1000"):
        open_panel("alfworld-generated-1001")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("webshop-test-500", "bundled", "needs the original WebShop data, which --data bundled is"),
        ("alfworld-both", "generated", "needs the official ALFWorld data, which --data generated"),
        ("alfworld-generated-400", "official", "is of generated tasks.* leave --data official out"),
        ("webshop-bundled-20", "shop", "is of bundled tasks.* leave --data shop out"),
    ],
)
def test_a_panel_refuses_data_that_is_not_its_own(name: str, data: str, said: str):
    with pytest.raises(UsageError, match=said):
        open_panel(name, data)


def test_an_unknown_panel_is_named_with_a_near_one():
    with pytest.raises(UnknownNameError, match="did you mean alfworld-valid-seen"):
        open_panel("alfworld-valid-sen")


def test_a_file_holds_the_panel_as_it_was_made(tmp_path: Path):
    panel = make_panel(TINY, ["valid_seen", "train"], episodes=6, name="mine")
    write_panel(panel, tmp_path / "p.toml")
    assert open_panel(str(tmp_path / "p.toml")) == panel


def test_a_path_of_data_stays_out_of_the_file(tmp_path: Path, official_games: Path):
    data = str(official_games)
    panel = make_panel(EnvConfig(data=data), ["valid_unseen"], episodes=3)
    write_panel(panel, tmp_path / "p.toml")
    assert data not in (tmp_path / "p.toml").read_text()
    assert open_panel(str(tmp_path / "p.toml"), data).hash == panel.hash


def test_a_panel_of_generated_games_is_played_where_official_data_is_the_default(
    tmp_path: Path, official_games: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    panel = make_panel(EnvConfig(), ["valid_unseen"], episodes=3, name="p")
    write_panel(panel, tmp_path / "p.toml")
    monkeypatch.setenv("ALFWORLD_DATA", str(official_games))
    assert open_panel(str(tmp_path / "p.toml")) == panel


def other_content(text: str) -> str:
    return text.replace(list(make_panel(TINY, ["valid_seen"], episodes=3).tasks.values())[1], "0")


def other_order(text: str) -> str:
    head, tasks = text.split("[tasks]\n")
    return head + "[tasks]\n" + "\n".join(reversed(tasks.splitlines()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_content, "1 of its 3 tasks have another content .generated/valid_"),
        (
            lambda text: text.replace("/tiny/000", "/tiny/999", 1),
            "1 of .* not in the data .gen",
        ),
        (other_order, "it was edited; leave the line `hash` out"),
    ],
    ids=["content", "id", "order"],
)
def test_a_file_that_does_not_fit_its_data_or_its_hash_is_refused(
    tmp_path: Path, change: Callable[[str], str], said: str
):
    path = tmp_path / "mine.toml"
    write_panel(make_panel(TINY, ["valid_seen"], episodes=3, name="mine"), path)
    path.write_text(change(path.read_text()))
    with pytest.raises(DataError, match=said):
        open_panel(str(path))


def test_a_list_of_ids_is_a_panel_too(tmp_path: Path):
    ids = list(make_panel(TINY, ["valid_seen"], episodes=5).tasks)[::-1]
    path = tmp_path / "some.toml"
    kwargs = '[env]\nkwargs = {difficulty = "tiny"}\n'
    path.write_text(f'splits = ["valid_seen"]\ntasks = {json.dumps(ids)}\n{kwargs}')
    panel = open_panel(str(path))
    assert (panel.name, list(panel.tasks)) == ("some", ids)
    tasks = proxmo_envs.task_set("ALFWorld-v0", "valid_seen", "generated", difficulty="tiny")
    assert panel.tasks[ids[0]] == tasks[tasks.ids.index(ids[0])].content_hash


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tasks = [", "cannot read the panel"),
        ("", "is no panel"),
        ('tasks = ["a"]', "is no panel"),
        ('splits = ["train"]', "is no panel"),
        ('splits = ["train"]\ntasks = ["a", "b", "a"]', "lists tasks twice: a; a panel"),
        ('splits = ["train"]\ntasks = [1]', "is no panel"),
        ('splits = ["train"]\ntasks = [["a"]]', "is no panel"),
        ('splits = ["train"]\ntasks = {a = {b = 1}}', "is no panel"),
        ('splits = [3]\ntasks = ["a"]', "is no panel"),
        ('splits = ["train"]\ntasks = ["a"]\nenv = "ALFWorld-v0"', "is no panel"),
        ('splits = ["train"]\ntasks = ["a"]\ntask = 1', "known: name, hash, splits, env, tasks"),
        ('splits = ["train"]\ntasks = ["a"]', "are not in the data .a."),
    ],
)
def test_what_is_no_panel_is_a_data_error(text: str, said: str, tmp_path: Path):
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        open_panel(str(path))


def test_a_split_that_does_not_exist_is_the_environments_error():
    with pytest.raises(InvalidOptionError, match="unknown split"):
        make_panel(EnvConfig(data="generated"), ["valid"])


def test_a_panel_that_is_not_there_is_a_data_error(tmp_path: Path):
    with pytest.raises(DataError, match="cannot read the panel"):
        open_panel(str(tmp_path / "none.toml"))
    with pytest.raises(DataError, match="cannot write the panel"):
        write_panel(make_panel(counter(), ["train"]), tmp_path / "no" / "p.toml")

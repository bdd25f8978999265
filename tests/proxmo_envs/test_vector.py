"""N games in one call: what gymnasium's own vector environment says, faster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import proxmo_envs  # noqa: F401
from proxmo_envs.errors import InvalidActionError, InvalidOptionError, UnknownTaskError
from proxmo_envs.vector import TextVectorEnv
from tests.proxmo_envs.alfworld.small import kitchen, write_game

TINY = {"data": "generated", "difficulty": "tiny"}


def make(num_envs: int = 3, **kwargs: Any) -> Any:
    return gymnasium.make_vec(
        "ALFWorld-v0", num_envs, vectorization_mode="vector_entry_point", **{**TINY, **kwargs}
    )


def assert_same(ours: Any, theirs: Any) -> None:
    """Compare observations, arrays and nested infos."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key in theirs:
            assert_same(ours[key], theirs[key])
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype and ours.tolist() == theirs.tolist()
    else:
        assert ours == theirs


def test_it_is_what_make_vec_makes_by_itself() -> None:
    vector = gymnasium.make_vec("ALFWorld-v0", num_envs=2, **TINY)
    assert isinstance(vector, TextVectorEnv)
    assert vector.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observations, infos = vector.reset(seed=0)
    assert observations in vector.observation_space and len(observations) == 2
    assert infos["task"].shape == (2,) and infos["_task"].all()
    vector.action_space.seed(0)
    *_, infos = vector.step(vector.action_space.sample())
    assert infos["action_valid"].all()
    vector.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_it_says_what_gymnasiums_own_vector_environment_says(mode: AutoresetMode) -> None:
    ours = make(4, autoreset_mode=mode, expert_action=True, max_episode_steps=12)
    theirs = gymnasium.make_vec(
        "ALFWorld-v0",
        4,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        expert_action=True,
        max_episode_steps=12,
        **TINY,
    )
    said = ours.reset(seed=5), theirs.reset(seed=5)
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(60):
        for mine, other in zip(*said, strict=True):
            assert_same(mine, other)
        infos = said[0][-1]
        actions = tuple(
            expert if rng.random() < 0.9 else "fly" for expert in infos["expert_action"]
        )
        said = ours.step(actions), theirs.step(actions)
        ended += int((said[0][2] | said[0][3]).sum())
    assert ended > 10


def test_the_next_step_after_an_end_ignores_its_action_and_starts_a_new_game() -> None:
    vector = make(2, max_episode_steps=2)
    vector.reset(seed=0)
    vector.step(("look", "look"))
    _, _, _, truncated, infos = vector.step(("look", "look"))
    assert truncated.all() and "final_obs" not in infos
    observations, rewards, terminated, truncated, _ = vector.step(("look", "look"))
    assert all("Your task is to: " in text for text in observations)
    assert not (rewards.any() or terminated.any() or truncated.any())


def test_the_same_step_mode_keeps_what_was_said_last() -> None:
    vector = make(2, max_episode_steps=1, autoreset_mode="SameStep")
    _, before = vector.reset(seed=0)
    observations, _, _, truncated, infos = vector.step(("inventory", "inventory"))
    assert truncated.all() and all("Your task is to: " in text for text in observations)
    assert infos["final_obs"].tolist() == ["You are not carrying anything."] * 2
    assert infos["final_info"]["task_id"].tolist() == before["task_id"].tolist()
    assert infos["task_id"].tolist() != before["task_id"].tolist()


def test_without_autoreset_the_caller_resets_what_has_ended() -> None:
    vector = make(2, max_episode_steps=1, autoreset_mode="Disabled")
    _, before = vector.reset(seed=0)
    vector.step(("look", "look"))
    mask = np.array([False, True])
    observations, infos = vector.reset(options={"reset_mask": mask})
    assert "Your task is to: " not in observations[0] and "Your task is to: " in observations[1]
    assert infos["_task_id"].tolist() == [False, True]
    assert infos["task_id"][1] != before["task_id"][1]


def test_every_game_takes_options_of_its_own(tmp_path: Path) -> None:
    vector = make(3)
    ids = ["generated/train/tiny/000005", "generated/valid_seen/tiny/000001"]
    file = write_game(tmp_path, kitchen())
    options = [{"task_id": ids[0]}, {"game_file": file}, None]
    _, infos = vector.reset(options=options)
    assert infos["task_id"].tolist()[:2] == [ids[0], kitchen().task_id]
    _, infos = vector.reset(options={"task_id": ids[1]})
    assert infos["task_id"].tolist() == [ids[1]] * 3


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda v: v.step(("look",)), ValueError),
        (lambda v: v.step(("look", 3)), InvalidActionError),
        (lambda v: v.step("no"), InvalidActionError),
        (lambda v: v.step(None), InvalidActionError),
        (lambda v: v.reset(seed=1.5), InvalidOptionError),
        (lambda v: v.reset(seed={1: 2, 3: 4}), InvalidOptionError),
        (lambda v: v.reset(options=5), InvalidOptionError),
        (lambda v: v.reset(options="no"), InvalidOptionError),
        (lambda v: v.reset(seed=[1]), ValueError),
        (lambda v: v.reset(options=[{}]), ValueError),
        (lambda v: v.reset(options={"reset_mask": [1, 0]}), ValueError),
        (lambda v: v.reset(options={"reset_mask": True}), ValueError),
        (lambda v: v.reset(options={"task_id": "no/such/task"}), UnknownTaskError),
    ],
)
def test_what_does_not_fit_the_games_is_one_clear_error(call: Any, error: type[Exception]) -> None:
    vector = make(2)
    vector.reset(seed=0)
    with pytest.raises(error):
        call(vector)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seed": 1.5},
        {"seed": "ab"},
        {"seed": -1},
        {"seed": [0, -1]},
        {"seed": [0, "x"]},
        {"options": 3},
        {"options": "ab"},
    ],
)
def test_seeds_and_options_that_are_none_are_refused_before_any_game_is_reset(wrong: Any) -> None:
    vector = make(2, render_mode="ansi")
    vector.reset(seed=0)
    vector.step(("look", "inventory"))
    before = vector.render()
    with pytest.raises(InvalidOptionError, match="seed|options"):
        vector.reset(**wrong)
    assert vector.render() == before


def test_a_seed_may_be_a_number_or_an_array_of_numpy() -> None:
    plain, numpy, array = make(2), make(2), make(2)
    expected, _ = plain.reset(seed=3)
    assert numpy.reset(seed=np.int64(3))[0] == expected
    assert array.reset(seed=np.array([3, 4]))[0] == expected


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize(
    "actions", [("look", "look", 3), ("look", "look", None), "abc", None, {"a": 1, "b": 2, "c": 3}]
)
def test_an_action_that_is_no_string_is_refused_before_any_game_has_stepped(
    mode: str, actions: Any
) -> None:
    vector = make(3, autoreset_mode=mode, render_mode="ansi")
    vector.reset(seed=0)
    before = vector.render()
    with pytest.raises(InvalidActionError, match="string"):
        vector.step(actions)
    assert vector.render() == before


def test_the_action_that_is_ignored_after_an_end_may_be_anything() -> None:
    vector = make(2, max_episode_steps=1)
    vector.reset(seed=0)
    vector.step(("look", "look"))
    observations, *_ = vector.step((None, None))
    assert all("Your task is to: " in text for text in observations)


def test_a_game_that_has_ended_can_be_restored_where_the_caller_resets() -> None:
    vector = make(2, max_episode_steps=2, autoreset_mode="Disabled")
    vector.reset(seed=0)
    snapshots = [env.snapshot() for env in vector.envs]
    first, *_ = vector.step(("look", "inventory"))
    vector.step(("inventory", "look"))
    for env, snapshot in zip(vector.envs, snapshots, strict=True):
        env.restore(snapshot)
    again, *_ = vector.step(("look", "inventory"))
    assert again == first


def test_no_games_is_no_vector() -> None:
    for number in (0, "2", 2.5, True):
        with pytest.raises(InvalidOptionError, match="num_envs"):
            make(number)


@pytest.mark.parametrize("limit", [0, -2, "5", 2.5])
def test_a_step_limit_is_a_number_of_steps(limit: Any) -> None:
    with pytest.raises(InvalidOptionError, match="max_episode_steps"):
        make(1, max_episode_steps=limit)


def test_every_game_is_rendered() -> None:
    vector = make(2, render_mode="ansi")
    observations, _ = vector.reset(seed=0)
    assert vector.render() == tuple(f"{text}\n" for text in observations)

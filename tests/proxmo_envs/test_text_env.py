"""What every world promises as a Gymnasium environment, and what it checks of its arguments."""

from __future__ import annotations

import copy
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from proxmo_envs.alfworld.env import ALFWorldEnv
from proxmo_envs.errors import (
    InvalidActionError,
    InvalidOptionError,
    NoEpisodeError,
    UnknownTaskError,
)
from proxmo_envs.webshop.env import WebShopEnv


@dataclass(frozen=True)
class World:
    """An environment over small data of its own, and one action that changes what it shows."""

    id: str
    env: type[Any]
    kwargs: dict[str, Any]
    limit: int
    action: str
    answer: str

    def make(self, **kwargs: Any) -> gymnasium.Env[str, str]:
        return gymnasium.make(self.id, **{**self.kwargs, **kwargs})

    def bare(self, **kwargs: Any) -> Any:
        return self.env(**{**self.kwargs, **kwargs})


TINY = {"data": "generated", "difficulty": "tiny"}
WORLDS = {
    "alfworld": World(
        "ALFWorld-v0", ALFWorldEnv, TINY, 50, "inventory", "You are not carrying anything."
    ),
    "webshop": World(
        "WebShop-v0", WebShopEnv, {"difficulty": "small"}, 15, "search[lamp]", "Back to Search"
    ),
}


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> World:
    """Each of our worlds."""
    return WORLDS[request.param]


def play(env: gymnasium.Env[str, str], rng: np.random.Generator, steps: int) -> list[Any]:
    """Play a random episode of at most `steps`; return everything that was said."""
    said: list[Any] = [env.reset(seed=int(rng.integers(1000)))]
    while len(said) <= steps and not (len(said) > 1 and (said[-1][2] or said[-1][3])):
        said.append(env.step(str(rng.choice(said[-1][-1]["admissible_actions"]))))
    return said


def trace(name: str, seed: int) -> list[Any]:
    """Play random episodes of a world."""
    env, rng = WORLDS[name].make(), np.random.default_rng(seed)
    return [play(env, rng, 20) for _ in range(3)]


def test_the_environment_checker_has_no_complaint(world: World) -> None:
    check_env(world.make(render_mode="ansi", expert_action=True).unwrapped)
    check_env(world.make().unwrapped)


@pytest.mark.parametrize("limit", [None, 4])
def test_the_step_limit_truncates(world: World, limit: int | None) -> None:
    assert gymnasium.spec(world.id).max_episode_steps == world.limit
    env = world.make() if limit is None else world.make(max_episode_steps=limit)
    env.reset(seed=2)
    steps = limit or world.limit
    ends = [env.step("look")[2:4] for _ in range(steps)]
    assert ends == [(False, False)] * (steps - 1) + [(False, True)]


def test_the_seed_decides_which_tasks_are_drawn(world: World) -> None:
    def draw() -> list[str]:
        env = world.make()
        return [env.reset(seed=seed)[1]["task_id"] for seed in (5, None, None, 6)]

    first = draw()
    assert draw() == first and len(set(first)) == 4
    assert set(first) <= set(world.env.task_set("train", **world.kwargs).ids)


@pytest.mark.parametrize(
    ("options", "error", "complaint"),
    [
        (5, InvalidOptionError, "mapping such as .*, got 5"),
        (0, InvalidOptionError, "mapping such as .*, got 0"),
        ("task_id", InvalidOptionError, "mapping such as .*, got 'task_id'"),
        ([], InvalidOptionError, "mapping such as .*, got "),
        ({"task": "x"}, InvalidOptionError, "unknown reset option 'task'; did you mean task_id"),
        ({1: "x", "task": "y"}, InvalidOptionError, "unknown reset option '1'"),
        ({None: "x"}, InvalidOptionError, "unknown reset option 'None'"),
        ({"task_id": None}, InvalidOptionError, "task_id is a string, got None"),
        ({"task_id": True}, InvalidOptionError, "task_id is a string, got True"),
        ({"task_id": "x"}, UnknownTaskError, "x"),
    ],
)
def test_wrong_reset_options_leave_the_episode_as_it_was(
    world: World, options: Any, error: type[Exception], complaint: str
) -> None:
    env = world.bare()
    task = env.reset(seed=0)[1]["task_id"]
    with pytest.raises(error, match=complaint):
        env.reset(options=options)
    assert env.step("nothing")[4]["task_id"] == task


@pytest.mark.parametrize("action", [None, 3, b"look", ["look"], np.array("look")])
def test_an_action_that_is_no_string_is_one_clear_error(world: World, action: Any) -> None:
    env = world.bare()
    env.reset(seed=1)
    with pytest.raises(InvalidActionError, match=type(action).__name__):
        env.step(action)


def test_nothing_works_before_the_first_reset(world: World) -> None:
    env = world.bare(render_mode="ansi")
    for call in (lambda: env.step("look"), env.render, env.snapshot):
        with pytest.raises(NoEpisodeError, match="reset"):
            call()


def test_ansi_shows_the_last_action_and_the_observation(world: World) -> None:
    env = world.make(render_mode="ansi")
    observation, _ = env.reset(seed=4)
    assert env.render() == f"{observation}\n"
    observation = env.step(world.action)[0]
    assert world.answer in observation
    assert env.render() == f"> {world.action}\n{observation}\n"


def test_lists_and_infos_are_never_used_twice(world: World) -> None:
    env = world.make()
    _, first = env.reset(seed=6)
    first["admissible_actions"].clear()
    first["task"] = "mine"
    info = env.step("nothing")[4]
    assert info["task"] != "mine" and info["admissible_actions"]
    assert env.action_space.sample() != ""


def test_sampled_actions_are_valid(world: World) -> None:
    env = world.make(max_episode_steps=100)
    env.reset(seed=5)
    env.action_space.seed(0)
    shown = set()
    for _ in range(60):
        action = env.action_space.sample()
        observation, _, terminated, _, info = env.step(action)
        assert info["action_valid"], action
        shown.add(observation)
        if terminated:
            env.reset()
    assert len(shown) > 15


def test_a_deep_copy_is_an_environment_of_its_own(world: World) -> None:
    env = world.make(max_episode_steps=5)
    env.reset(seed=8)
    env.step("nothing")
    twin = copy.deepcopy(env)
    assert world.answer in twin.step(world.action)[0]
    assert world.answer in env.step(world.action)[0]
    # The step limit is copied, too: both have taken two of five steps.
    assert [env.step("nothing")[3] for _ in range(3)] == [False, False, True]
    assert [twin.step("nothing")[3] for _ in range(3)] == [False, False, True]
    assert env.reset()[1]["task_id"] == twin.reset()[1]["task_id"]


def test_what_is_no_snapshot_is_refused_and_changes_nothing(world: World) -> None:
    env, (other,) = world.bare(), [one for one in WORLDS.values() if one is not world]
    task = env.reset(seed=0)[1]["task_id"]
    foreign = other.bare()
    foreign.reset(seed=0)
    for wrong in (5, None, {}, env.snapshot, foreign.snapshot()):
        kind = f"{type(wrong).__module__}.{type(wrong).__name__}"
        with pytest.raises(InvalidOptionError, match=f"restore takes .*; got a {kind}"):
            env.restore(wrong)
    assert env.step("nothing")[4]["task_id"] == task


def test_an_expert_is_not_started_in_the_middle_of_an_episode(world: World) -> None:
    plain, expert = (world.bare(expert_action=on) for on in (False, True))
    plain.reset(seed=0)
    task = expert.reset(seed=1)[1]["task_id"]
    with pytest.raises(InvalidOptionError, match="without expert_action=True"):
        expert.restore(plain.snapshot())
    assert expert.step("nothing")[4]["task_id"] == task
    assert "expert_action" not in plain.restore(expert.snapshot())[1]
    assert "expert_action" not in plain.reset()[1]
    assert expert.restore(expert.snapshot())[1]["expert_action"]


def test_a_text_is_no_truth_value(world: World) -> None:
    with pytest.raises(InvalidOptionError, match="expert_action is a truth value .*, got 'no'"):
        world.bare(expert_action="no")


def test_a_set_of_tasks_is_not_of_an_argument_with_a_slip(world: World) -> None:
    with pytest.raises(InvalidOptionError, match="argument 'dificulty'; did you mean difficulty"):
        world.env.task_set("train", None, dificulty="small")
    given = {"max_episode_steps": 5, "expert_action": True, "render_mode": "ansi"}
    assert world.env.task_set("train", **world.kwargs, **given).ids


@pytest.mark.parametrize("name", WORLDS)
def test_threads_and_processes_play_as_one_alone_does(name: str) -> None:
    serial = [trace(name, seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(trace, [name] * 6, range(6))) == serial
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(trace, [name] * 6, range(6))) == serial


def test_a_vector_environment_plays_as_its_parts_do(world: World) -> None:
    vector = gymnasium.make_vec(world.id, num_envs=4, **world.kwargs)
    singles = [world.make() for _ in range(4)]
    observations, infos = vector.reset(seed=[1, 2, 3, 4])
    alone = [env.reset(seed=seed) for seed, env in zip((1, 2, 3, 4), singles, strict=True)]
    assert list(observations) == [observation for observation, _ in alone]
    for number in (0, 3, -1):
        actions = tuple(a[number % len(a)] for a in infos["admissible_actions"])
        observations, rewards, ended, cut, infos = vector.step(actions)
        steps = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        assert list(observations) == [step[0] for step in steps]
        assert list(zip(rewards, ended, cut, strict=True)) == [step[1:4] for step in steps]
        assert list(infos["admissible_actions"]) == [s[4]["admissible_actions"] for s in steps]


def test_a_vector_environment_over_processes_works(world: World) -> None:
    vector = gymnasium.make_vec(
        world.id,
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"shared_memory": False, "context": "spawn"},
        **world.kwargs,
    )
    try:
        observations, _ = vector.reset(seed=[1, 2])
        assert observations == (world.make().reset(seed=1)[0], world.make().reset(seed=2)[0])
        vector.step((world.action, world.action))
    finally:
        vector.close()

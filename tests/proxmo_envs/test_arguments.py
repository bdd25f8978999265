"""What every world checks of its arguments, in the same words."""

from __future__ import annotations

from typing import Any

import pytest

from proxmo_envs.alfworld.env import ALFWorldEnv
from proxmo_envs.errors import InvalidOptionError
from proxmo_envs.webshop.env import WebShopEnv

WORLDS: dict[type[Any], dict[str, Any]] = {
    ALFWorldEnv: {"data": "generated", "difficulty": "tiny"},
    WebShopEnv: {"difficulty": "small"},
}
every_world = pytest.mark.parametrize("world", WORLDS)


@every_world
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (5, "mapping such as .*, got 5"),
        (0, "mapping such as .*, got 0"),
        ("task_id", "mapping such as .*, got 'task_id'"),
        (["task_id"], "mapping such as .*, got .'task_id'."),
        ([], "mapping such as .*, got "),
        ({"task": "x"}, "unknown reset option 'task'; did you mean task_id"),
        ({1: "x", "task": "y"}, "unknown reset option '1'"),
        ({None: "x"}, "unknown reset option 'None'"),
        ({"task_id": None}, "task_id is a string, got None"),
        ({"task_id": True}, "task_id is a string, got True"),
    ],
)
def test_reset_options_of_a_wrong_kind_are_one_clear_error(
    world: type[Any], options: Any, complaint: str
) -> None:
    env = world(**WORLDS[world])
    task = env.reset(seed=0)[1]["task_id"]
    with pytest.raises(InvalidOptionError, match=complaint):
        env.reset(options=options)
    assert env.step("nothing")[4]["task_id"] == task


@every_world
def test_what_is_no_snapshot_is_refused_and_changes_nothing(world: type[Any]) -> None:
    env, (other,) = world(**WORLDS[world]), WORLDS.keys() - {world}
    task = env.reset(seed=0)[1]["task_id"]
    foreign = other(**WORLDS[other])
    foreign.reset(seed=0)
    for wrong in (5, None, {}, env.snapshot, foreign.snapshot()):
        kind = f"{type(wrong).__module__}.{type(wrong).__name__}"
        with pytest.raises(InvalidOptionError, match=f"restore takes .*; got a {kind}"):
            env.restore(wrong)
    assert env.step("nothing")[4]["task_id"] == task


@every_world
def test_an_expert_is_not_started_in_the_middle_of_an_episode(world: type[Any]) -> None:
    plain, expert = (world(**WORLDS[world], expert_action=on) for on in (False, True))
    plain.reset(seed=0)
    with pytest.raises(InvalidOptionError, match="without expert_action=True"):
        expert.restore(plain.snapshot())
    expert.reset(seed=0)
    assert "expert_action" not in plain.restore(expert.snapshot())[1]
    assert expert.restore(expert.snapshot())[1]["expert_action"]


@every_world
def test_a_text_is_no_truth_value(world: type[Any]) -> None:
    with pytest.raises(InvalidOptionError, match="expert_action is a truth value .*, got 'no'"):
        world(**WORLDS[world], expert_action="no")


@every_world
def test_a_set_of_tasks_is_not_of_an_argument_with_a_slip(world: type[Any]) -> None:
    with pytest.raises(InvalidOptionError, match="argument 'dificulty'; did you mean difficulty"):
        world.task_set("train", None, dificulty="small")
    assert world.task_set("train", **WORLDS[world], max_episode_steps=5, expert_action=True).ids

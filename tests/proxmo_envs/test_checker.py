"""The check of an environment, and the adapter that fills in what a plain one leaves out."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import proxmo_envs
from proxmo_envs import ContractError, TaskSet, check_text_env
from proxmo_envs.adapter import TextEnvAdapter
from proxmo_envs.checker import inspect_success
from proxmo_envs.errors import UnknownTaskError


class Plain(gymnasium.Env[Any, Any]):
    """Ends at the third step; `pays` are its rewards, `told` what its last info adds."""

    def __init__(self, pays: Any = (0.0, 0.0, 1.0), told: Any = None, shown: Any = "room") -> None:
        self.pays, self.told, self.shown = pays, told or {}, shown

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps, self.seed = 0, seed
        return self.shown, {}

    def step(self, action: str) -> Any:
        self.steps += 1
        ended = self.steps == 3
        return self.shown, self.pays[self.steps - 1], ended, False, self.told if ended else {}


def last(env: TextEnvAdapter) -> dict[str, Any]:
    """The info that ends an episode."""
    env.reset(seed=0)
    return [env.step("go")[4] for _ in range(3)][-1]


@pytest.mark.parametrize("env_id", ["ALFWorld-v0", "WebShop-v0"])
def test_our_worlds_keep_the_contract_without_defaults(env_id: str) -> None:
    data = proxmo_envs.description_of(env_id).default_data
    report = check_text_env(gymnasium.make(env_id, data=data, difficulty="tiny"))
    assert (report.env, report.success_key, report.defaults) == (env_id, "won", ())
    present = {one.name for one in report.abilities if one.present}
    assert {"tasks", "expert", "snapshots"} <= present


def test_every_breach_is_in_one_error() -> None:
    class Odd(Plain):
        def step(self, action: str) -> Any:
            return 3, float("nan"), 1, False, {"is_success": "False", "admissible_actions": "go"}

    with pytest.raises(ContractError) as caught:
        check_text_env(Odd())
    assert set(caught.value.findings) == {
        "the observation is 3, expected a text",
        "info['admissible_actions'] is 'go', expected a list of texts",
        "info['is_success'] is 'False', expected True or False",
        "the reward is nan, expected a finite number",
        "terminated is 1, expected True or False",
    }
    assert all(finding in str(caught.value) for finding in caught.value.findings)


def test_resets_that_differ_and_episodes_without_end_are_breaches() -> None:
    class Endless(Plain):
        def reset(self, **options: Any) -> Any:
            super().reset(**options)
            return str(np.random.default_rng().random()), {}

        def step(self, action: str) -> Any:
            return "", 0.0, False, False, {}

    with pytest.raises(ContractError, match=r"max_episode_steps.*two resets with the same seed"):
        check_text_env(Endless())


def test_what_an_environment_raises_is_a_breach() -> None:
    class Broken(Plain):
        def step(self, action: str) -> Any:
            raise KeyError("door")

    with pytest.raises(ContractError, match="KeyError in an episode .*door"):
        check_text_env(Broken())


@pytest.mark.parametrize(
    ("told", "success"),
    [
        ({"won": np.bool_(True)}, "success is info['won']"),
        ({"is_success": False}, "success is info['is_success']"),
        ({"success": True}, "success is info['success']"),
        ({}, "no info tells success, so it is a positive return when the environment terminates"),
    ],
)
def test_the_report_says_how_success_is_determined(told: Any, success: str) -> None:
    assert check_text_env(Plain(told=told)).success == success


def test_a_plain_environment_gets_complete_infos() -> None:
    env = TextEnvAdapter(Plain())
    _, info = env.reset(options={"task_id": "seed-0017"})
    assert env.unwrapped.seed == 17  # type: ignore[attr-defined]
    expected = {"task": "room", "task_id": "seed-0017", "task_type": "unknown"}
    assert info == {**expected, "admissible_actions": [], "won": False, "score": 0.0}
    with pytest.raises(UnknownTaskError, match="seed-0017"):
        env.reset(options={"task_id": "kitchen"})


@pytest.mark.parametrize(
    ("pays", "told", "key", "won"),
    [
        ((0, 0, 1), {}, "", True),
        ((0, 0, 0), {}, "", False),
        ((2, 0, -1), {}, "", True),
        ((1, 0, 1), {"is_success": False}, "", False),
        ((0, 0, 0), {"success": np.bool_(True)}, "", True),
        # It is known to tell success by a key, so silence means none.
        ((1, 1, 1), {}, "is_success", False),
    ],
)
def test_success_is_what_the_info_says_else_a_positive_return(
    pays: Any, told: Any, key: str, won: bool
) -> None:
    info = last(TextEnvAdapter(Plain(pays, told), success_key=key))
    assert (info["won"], info["score"]) == (won, float(won))


@pytest.mark.parametrize(("pays", "won"), [((1, 1, 1), True), ((1, 1, 0), False)])
def test_success_by_return_reaches_the_registered_threshold(pays: Any, won: bool) -> None:
    gymnasium.register("Threshold-v0", entry_point=Plain, reward_threshold=3.0)
    try:
        env = gymnasium.make("Threshold-v0", pays=pays, disable_env_checker=True)
        assert last(TextEnvAdapter(env))["won"] is won
    finally:
        del gymnasium.registry["Threshold-v0"]


@pytest.mark.parametrize("value", ["False", 1, None])
def test_a_success_that_is_no_truth_value_is_an_error(value: Any) -> None:
    with pytest.raises(ContractError, match=r"info\['won'\] is .*, expected True or False"):
        last(TextEnvAdapter(Plain(told={"won": value})))


def test_a_complete_info_is_passed_on_as_it_is() -> None:
    env = gymnasium.make("ALFWorld-v0", data="generated", difficulty="tiny")
    plain = env.reset(seed=0)
    adapted = TextEnvAdapter(env, success_key="won").reset(seed=0)
    assert adapted == plain


def test_tasks_that_do_not_start_are_breaches() -> None:
    class Stubborn(Plain):
        @classmethod
        def task_set(cls, split: str, data: str | None) -> TaskSet:
            return TaskSet("S", split, ["a"], str)

        def reset(self, **options: Any) -> Any:
            return super().reset(**options)[0], {"task_id": "b"}

    with pytest.raises(ContractError, match=r"'task_id': 'a'.* started info\['task_id'\] 'b'"):
        check_text_env(Stubborn())


@pytest.mark.parametrize(
    ("told", "breach"),
    [
        ({"score": 1.5}, r"info\['score'\] is 1.5, expected a number from 0 to 1"),
        ({"score": -0.1}, "expected a number from 0 to 1"),
        ({"score": 7.0, "won": True, "admissible_actions": []}, "expected a number from 0 to 1"),
        ({"admissible_actions": {"go": 1}}, "expected a list of texts"),
        ({"admissible_actions": {"go"}}, "expected a list of texts"),
        ({"admissible_actions": np.array(["go", "stay"])}, "expected a list of texts"),
    ],
)
def test_a_score_out_of_range_and_actions_in_no_list_are_breaches(told: Any, breach: str) -> None:
    with pytest.raises(ContractError, match=breach):
        check_text_env(Plain(told=told))


def test_a_list_in_place_of_the_tuple_of_a_step_is_a_breach_behind_a_step_limit_too() -> None:
    class Listing(Plain):
        def step(self, action: str) -> Any:
            return list(super().step(action))

    for env in (Listing(), gymnasium.wrappers.TimeLimit(Listing(), 5)):
        with pytest.raises(ContractError, match=r"what step returns is \['room'"):
            check_text_env(env)


def test_an_expert_that_never_speaks_is_a_breach() -> None:
    class Mute(Plain):
        def __init__(self, expert_action: bool = False) -> None:
            super().__init__()

    gymnasium.register("Mute-v0", entry_point=Mute, max_episode_steps=5)
    try:
        with pytest.raises(ContractError, match="holds no 'expert_action'"):
            check_text_env(gymnasium.make("Mute-v0", disable_env_checker=True))
    finally:
        del gymnasium.registry["Mute-v0"]


def test_an_exit_in_a_step_is_a_breach_and_an_interrupt_stops_the_check() -> None:
    class Leaves(Plain):
        def step(self, action: str) -> Any:
            raise self.pays

    with pytest.raises(ContractError, match="SystemExit in an episode of random actions: 3"):
        check_text_env(Leaves(SystemExit(3)))
    with pytest.raises(KeyboardInterrupt):
        check_text_env(Leaves(KeyboardInterrupt()))


@pytest.mark.parametrize(("limit", "refused"), [(None, True), (400, False)])
def test_before_a_run_an_environment_without_an_end_is_a_breach(limit: Any, refused: bool) -> None:
    class Endless(Plain):
        def step(self, action: str) -> Any:
            return "room", 0.0, False, False, {"won": False}

    gymnasium.register("Endless-v0", entry_point=Endless, max_episode_steps=limit)
    try:
        _, breaches = inspect_success(gymnasium.make("Endless-v0", disable_env_checker=True))
    finally:
        del gymnasium.registry["Endless-v0"]
    assert ["max_episode_steps" in one and "env.max_steps" in one for one in breaches] == (
        [True] if refused else []
    )

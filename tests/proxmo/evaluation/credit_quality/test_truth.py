"""The true advantages: against values computed exactly, in a corridor whose chances are known."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest

from proxmo.agents.scripted import NoisyExpertAgent
from proxmo.errors import UsageError
from proxmo.evaluation.credit_quality.truth import Laboratory
from proxmo_envs import TextSpace

GAMMA, NOISE, LIMIT, GOAL = 0.9, 0.6, 5, 2


class Corridor(gymnasium.Env[str, str]):
    """Places 0 to 2 in a row; the exit is at 2."""

    def __init__(self) -> None:
        self.observation_space = self.action_space = TextSpace()
        self.place = 0

    def _info(self) -> dict[str, Any]:
        return {
            "task": "leave",
            "admissible_actions": ["left", "right"],
            "expert_action": "right",
            "won": self.place == GOAL,
        }

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        self.place = 0
        return "place 0", self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.place = max(0, self.place + (1 if action == "right" else -1))
        won = self.place == GOAL
        return f"place {self.place}", float(won), won, False, self._info()

    def snapshot(self) -> Any:
        return copy.copy(self.place)

    def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        self.place = snapshot
        return f"place {self.place}", self._info()


def exact_values() -> np.ndarray:
    """(LIMIT + 1, GOAL + 1) value of each place when so many steps are left."""
    right = 1 - NOISE / 2
    value = np.zeros((LIMIT + 1, GOAL + 1))
    for left in range(1, LIMIT + 1):
        for place in range(GOAL):
            on, back = place + 1, max(0, place - 1)
            after = GAMMA * value[left - 1]
            value[left, place] = right * (float(on == GOAL) + after[on] * (on != GOAL))
            value[left, place] += (1 - right) * after[back]
    return value


def laboratory(make_env: Any = Corridor) -> Laboratory:
    return Laboratory(make_env, NoisyExpertAgent(NOISE), step_limit=LIMIT, gamma=GAMMA, seed=3)


def test_the_value_of_every_visited_state_is_the_exact_one_within_its_standard_error():
    truth = laboratory().measure("any", 0, episodes=6, continuations=600)
    places = [int(state.rpartition(" ")[2]) for state in truth.state]
    exact = exact_values()[LIMIT - truth.step, places]
    # A return lies in [0, 1], so that its standard deviation is at most 0.5.
    assert np.abs(truth.value.mean(1) - exact).max() < 5 * 0.5 / np.sqrt(600)
    assert len(set(truth.step)) > 2


def test_the_advantage_is_the_reward_and_the_next_value_less_the_own():
    truth = laboratory().measure("any", 0, episodes=4, continuations=4)
    advantage = truth.advantage(GAMMA)
    for row in range(len(truth.step)):
        last = row + 1 == len(truth.step) or truth.episode[row + 1] != truth.episode[row]
        following = 0.0 if last else truth.value[row + 1]
        expected = truth.reward[row] + GAMMA * following - truth.value[row]
        np.testing.assert_allclose(advantage[row], expected)


def test_rows_say_what_was_done_and_how_the_episode_ended():
    truth = laboratory().measure("any", 0, episodes=12, continuations=2)
    assert truth.expert is not None
    assert [action == "right" for action in truth.action] == truth.expert.tolist()
    for episode in range(12):
        mine = truth.episode == episode
        assert truth.success[mine].all() == (truth.reward[mine].sum() == 1.0)
        assert truth.truncated[mine].all() == (not truth.success[mine].any())
    assert 0 < truth.success.mean() < 1


def test_the_same_seed_gives_the_same_truth_and_another_task_another():
    one, same = (laboratory().measure("a", 0, episodes=3, continuations=4) for _ in range(2))
    other = laboratory().measure("a", 1, episodes=3, continuations=4)
    np.testing.assert_array_equal(one.value, same.value)
    assert one.action == same.action
    assert one.action != other.action or not np.array_equal(one.value, other.value)


def test_an_environment_without_snapshots_is_refused_by_name():
    with pytest.raises(UsageError, match=r"CartPoleEnv has no snapshot\(\) and restore\(\)"):
        laboratory(lambda: gymnasium.make("CartPole-v1").unwrapped)

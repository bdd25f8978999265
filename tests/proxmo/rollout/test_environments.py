"""Making environments by id, and keeping them."""

from __future__ import annotations

import pytest

from proxmo.config import EnvConfig
from proxmo.errors import UsageError
from proxmo.rollout.environments import EnvPool, make_env
from tests.fakes import COUNTER


@pytest.mark.parametrize("name", ["ALFWorl-v0", "ALFWorld-v7", "no_such_module:World-v0"])
def test_an_unknown_id_is_a_usage_error_that_names_it(name: str):
    with pytest.raises(UsageError, match=f"unknown environment '{name}'"):
        make_env(EnvConfig(id=name))


def test_options_the_environment_does_not_have_are_a_usage_error():
    with pytest.raises(UsageError, match=r"cannot be made with .*'colour': 'red'.*env\.kwargs"):
        make_env(EnvConfig(id=COUNTER, kwargs={"colour": "red"}))


def test_the_step_limit_of_the_configuration_replaces_the_environments_own():
    env = make_env(EnvConfig(id=COUNTER, max_steps=2))
    env.reset(seed=0, options={"task_id": "train-0"})
    assert [env.step("")[3] for _ in range(2)] == [False, True]
    own = make_env(EnvConfig(id=COUNTER))
    own.reset(seed=0, options={"task_id": "train-0"})
    assert [own.step("")[3] for _ in range(5)] == [False] * 4 + [True]


def test_a_pool_makes_an_environment_only_when_none_is_free():
    pool = EnvPool(EnvConfig(id=COUNTER), expert_action=True)
    first, second = pool.take(), pool.take()
    assert first is not second
    assert first.unwrapped.expert_action is True
    pool.give_back(first)
    assert pool.take() is first


def test_closing_a_pool_closes_what_is_free_and_leaves_what_is_in_use():
    closed = []

    class Env:
        def __init__(self, name: str) -> None:
            self.name = name

        def close(self) -> None:
            closed.append(self.name)

    pool = EnvPool(EnvConfig(id=COUNTER))
    pool.take()
    for name in ("a", "b"):
        pool.give_back(Env(name))
    pool.close()
    assert sorted(closed) == ["a", "b"]

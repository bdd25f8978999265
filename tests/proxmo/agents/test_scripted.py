"""The two players that need no model."""

from __future__ import annotations

from collections import Counter

import pytest

from proxmo.agents.base import Situation, View
from proxmo.agents.scripted import ExpertAgent, RandomAgent
from proxmo.errors import UsageError


def situation(admissible: tuple[str, ...] = ("a", "b", "c"), **info: str) -> Situation:
    return Situation(View("task", (), 0, "seen", admissible), info)


def test_the_expert_plays_what_the_environment_proposes():
    asked = [situation(expert_action="b"), situation(expert_action="a")]
    assert [d.action for d in ExpertAgent().act(asked, seed=(0,))] == ["b", "a"]


def test_an_environment_without_an_expert_is_a_usage_error():
    with pytest.raises(UsageError, match="no 'expert_action'"):
        ExpertAgent().act([situation(expert_action="b"), situation()], seed=(0,))


def test_chance_draws_every_admissible_action_equally_often():
    drawn = RandomAgent().act([situation()] * 3000, seed=(1,))
    counts = Counter(d.action for d in drawn)
    assert counts.keys() == {"a", "b", "c"}
    # Three standard deviations of a binomial are 77.
    assert all(abs(count - 1000) < 100 for count in counts.values())
    assert all(d.valid for d in drawn)


def test_chance_fills_a_blank_with_a_word_of_the_task():
    view = View(r"buy red \g<0> shoes", (), 0, "seen", ("search[<your query>]",))
    drawn = RandomAgent().act([Situation(view, {})] * 100, seed=(1,))
    words = {r"search[\g<0>]", "search[buy]", "search[red]", "search[shoes]"}
    assert {d.action for d in drawn} == words


def test_chance_is_decided_by_the_seed():
    asked = [situation()] * 50
    first = RandomAgent().act(asked, seed=(1, 2))
    assert RandomAgent().act(asked, seed=(1, 2)) == first
    assert RandomAgent().act(asked, seed=(1, 3)) != first


def test_with_a_seed_of_its_own_a_draw_does_not_depend_on_its_company():
    asked = [Situation(View("task", (), 0, "seen", "abcdefgh"), {}, (5, i)) for i in range(20)]
    together = RandomAgent().act(asked, seed=(1,))
    assert [RandomAgent().act([one], seed=(2,))[0] for one in reversed(asked)] == together[::-1]
    assert len({d.action for d in together}) > 3


def test_a_world_that_names_no_actions_is_a_usage_error_for_chance():
    with pytest.raises(UsageError, match="no admissible actions"):
        RandomAgent().act([situation(), situation(admissible=())], seed=(0,))

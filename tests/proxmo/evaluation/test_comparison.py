"""Two evaluations of one panel, task by task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from proxmo.errors import UsageError
from proxmo.evaluation.comparison import compare
from proxmo.evaluation.results import Recorded, Result
from proxmo.types import Outcome


def recorded(name: str, wins: str, panel: str = "p", trial: int = 0) -> Recorded:
    """One letter per task: w won, l lost, e error."""
    outcomes = {"w": Outcome.WON, "l": Outcome.LOST, "e": Outcome.ERROR}
    results = [
        Result(0, f"t{i}", trial, "odd" if i % 2 else "even", outcomes[o], 0.5 + 0.5 * (o == "w"),
               1, 0, 1, 0, 0, 0.0, None)
        for i, o in enumerate(wins)
    ]  # fmt: skip
    settings = {"panel": {"name": panel, "hash": panel * 64, "tasks": len(wins)}}
    return Recorded(Path(name), settings, results)


def test_a_comparison_counts_pairs():
    found = compare(recorded("a", "wwwlllll"), recorded("b", "wllwwwll"))
    assert (found.success.first, found.success.second) == (3 / 8, 4 / 8)
    assert found.success.difference == 1 / 8
    assert (found.only_first, found.only_second) == (2, 3)
    # Of 5 discordant pairs at most 2 on a side: 2 (1 + 5 + 10) / 32 = 1.
    assert found.p_value == 1.0
    assert found.success.low < 0 < found.success.high
    assert (found.first, found.second, found.panel, found.left_out) == ("a", "b", "p", 0)


def test_a_clear_difference_is_called_one():
    found = compare(recorded("a", "l" * 10 + "w" * 5), recorded("b", "w" * 15))
    # All 10 discordant pairs on one side: 2 / 2^10.
    assert found.p_value == pytest.approx(2 / 1024)
    assert 0 < found.success.low < found.success.difference == pytest.approx(2 / 3)
    assert found.score.difference == pytest.approx(1 / 3)


def test_task_types_are_compared_apart():
    found = compare(recorded("a", "wlwl"), recorded("b", "wwww"))
    assert {kind: one.difference for kind, one in found.by_task_type.items()} == {
        "even": 0.0,
        "odd": 1.0,
    }
    assert {one.tasks for one in found.by_task_type.values()} == {2}


def test_a_task_that_one_side_could_not_score_is_left_out_of_both():
    found = compare(recorded("a", "wewl"), recorded("b", "wwel"))
    assert (found.success.tasks, found.left_out) == (2, 2)
    assert (found.success.first, found.success.second) == (0.5, 0.5)


def test_tasks_played_several_times_count_with_their_mean_and_without_mcnemar():
    first = recorded("a", "wl")
    twice = replace(first, results=first.results + recorded("a", "ll", trial=1).results)
    found = compare(twice, recorded("b", "wl"))
    assert (found.success.first, found.success.second) == (0.25, 0.5)
    assert (found.only_first, found.only_second, found.p_value) == (0, 1, None)


def test_swapping_the_sides_turns_the_difference_round():
    one = compare(recorded("a", "wwlwllwl"), recorded("b", "lwlwwwlw"))
    other = compare(recorded("b", "lwlwwwlw"), recorded("a", "wwlwllwl"))
    assert one.success.difference == -other.success.difference
    assert one.p_value == other.p_value
    # Other resamples of as many values: the ends agree to about one in eight tasks.
    assert one.success.low == pytest.approx(-other.success.high, abs=0.13)


def test_equal_evaluations_differ_by_nothing_for_sure():
    found = compare(recorded("a", "wlwl"), recorded("b", "wlwl"))
    assert (found.success.low, found.success.high, found.p_value) == (0.0, 0.0, 1.0)


def test_different_panels_are_refused():
    with pytest.raises(UsageError, match=r"panel p \(sha256 pppp.*on q \(sha256 qqqq.*--panel"):
        compare(recorded("a", "wl"), recorded("b", "wl", panel="q"))


def test_nothing_in_common_is_refused():
    with pytest.raises(UsageError, match="no scored task in common"):
        compare(recorded("a", "we"), recorded("b", "ew"))

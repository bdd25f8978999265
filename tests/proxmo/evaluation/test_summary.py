"""From results to numbers."""

from __future__ import annotations

import dataclasses
import json

import pytest

from proxmo.config import EnvConfig
from proxmo.evaluation import Evaluation, SeedSpread, TypeResult
from proxmo.evaluation.panels import Panel
from proxmo.evaluation.results import Result
from proxmo.evaluation.statistics import wilson_interval
from proxmo.evaluation.summary import summarise
from proxmo.types import Outcome

PANEL = Panel("four", EnvConfig(id="Counter-v0"), ("train",), dict.fromkeys("abcd", "hash"))


def result(
    task: str, outcome: Outcome, seed: int = 0, trial: int = 0, score: float = 0.5
) -> Result:
    kind = "vowel" if task in "ae" else "consonant"
    error = "Oops: broken" if outcome is Outcome.ERROR else None
    return Result(seed, task, trial, kind, outcome, score, 4, 1, 1, 10, 2, 0.25, error)


def won(tasks: str, **options: int) -> list[Result]:
    """Results of all tasks, those named won."""
    return [result(t, Outcome.WON if t in tasks else Outcome.LOST, **options) for t in "abcd"]


def test_everything_but_an_error_is_scored_and_only_what_was_won_is_a_win():
    outcomes = [Outcome.WON, Outcome.TRUNCATED, Outcome.OVERFLOW, Outcome.ERROR]
    found = summarise([result(t, o) for t, o in zip("abcd", outcomes, strict=True)], PANEL)
    assert (found.planned, found.episodes, found.wins, found.errors) == (4, 3, 1, 1)
    assert not found.complete
    assert found.success_rate == 1 / 3
    assert (found.low, found.high) == wilson_interval(1, 3)
    assert found.error_causes == {"Oops: broken": 1}
    assert found.overflows == 1
    assert (found.mean_score, found.mean_length, found.invalid_action_share) == (0.5, 4.0, 0.25)
    # What was spent on a failure is spent all the same.
    assert (found.prompt_tokens, found.response_tokens, found.cost) == (40, 8, 1.0)


def test_task_types_add_up_to_the_whole():
    found = summarise(won("ab"), PANEL)
    assert found.by_task_type == {"consonant": TypeResult.of(1, 3), "vowel": TypeResult.of(1, 1)}
    assert found.complete


def test_no_result_means_nothing_is_known():
    found = summarise([], PANEL)
    assert (found.episodes, found.success_rate, found.low, found.high) == (0, 0.0, 0.0, 1.0)
    assert found.mean_score == 0.0 and found.by_task_type == {}


def test_several_episodes_of_a_task_count_as_one_in_the_interval():
    results = [r for trial in range(4) for r in won("a" if trial else "ab", trial=trial)]
    found = summarise(results, PANEL, trials=4)
    assert (found.episodes, found.wins, found.success_rate) == (16, 5, 5 / 16)
    # Four tasks, of which 1.25 are won on average.
    assert (found.low, found.high) == pytest.approx(wilson_interval(1.25, 4))


def test_several_seeds_have_a_mean_a_deviation_and_an_interval():
    results = [
        r for seed, tasks in ((5, "a"), (2, "ab"), (9, "abc")) for r in won(tasks, seed=seed)
    ]
    found = summarise(results, PANEL, seeds=(5, 2, 9))
    assert found.seeds is not None
    assert found.seeds.success_rates == {"5": 0.25, "2": 0.5, "9": 0.75}
    assert (found.seeds.mean, found.seeds.sd) == (0.5, 0.25)
    # t of two degrees of freedom is 4.3027: 0.5 -+ 4.3027 * 0.25 / sqrt(3), cut to [0, 1].
    assert (found.seeds.low, found.seeds.high) == (0.0, 1.0)
    narrow = SeedSpread.of({0: 0.5, 1: 0.52, 2: 0.54})
    assert narrow.high - narrow.mean == pytest.approx(4.302653 * 0.02 / 3**0.5, rel=1e-6)


def test_one_seed_has_no_spread():
    assert summarise(won("a"), PANEL).seeds is None
    # A seed of which nothing could be scored says nothing either.
    assert summarise(won("a"), PANEL, seeds=(0, 1)).seeds is None


def test_pass_at_k_is_the_mean_over_tasks_of_the_unbiased_estimate():
    # Task a is won in 2 of 3 trials, b in 1, c and d never. pass@2 of a is 1 - C(1,2)/C(3,2) = 1,
    # of b 1 - C(2,2)/C(3,2) = 2/3.
    results = [r for trial, tasks in enumerate(("ab", "a", "")) for r in won(tasks, trial=trial)]
    found = summarise(results, PANEL, trials=3)
    assert found.pass_at == pytest.approx({"1": 3 / 12, "2": (1 + 2 / 3) / 4, "3": 2 / 4})
    assert summarise(won("a"), PANEL).pass_at == {}


def test_tasks_that_were_not_scored_often_enough_are_left_out_of_pass_at_k():
    results = [*won("a", trial=0), *won("", trial=1)]
    results[7] = result("d", Outcome.ERROR, trial=1)
    found = summarise(results, PANEL, trials=2)
    assert found.pass_at == pytest.approx({"1": (0.5 + 0 + 0 + 0) / 4, "2": 1 / 3})


def test_the_numbers_do_not_depend_on_the_order_of_the_results():
    results = [r for seed in (0, 1) for t in range(3) for r in won("ab"[:t], seed=seed, trial=t)]
    options = {"seeds": (0, 1), "trials": 3}
    assert summarise(results[::-1], PANEL, **options) == summarise(results, PANEL, **options)


def test_an_evaluation_comes_back_from_json_as_it_was():
    results = [r for seed in (0, 1) for t in range(3) for r in won("ab"[:t], seed=seed, trial=t)]
    found = summarise(results, PANEL, seeds=(0, 1), trials=3)
    assert Evaluation.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_success_after_k_tries_counts_what_was_won_by_then():
    tries = {"a": 1, "b": 3, "c": 2, "d": 3}
    results = [dataclasses.replace(r, tries=tries[r.task_id]) for r in won("abc")]
    assert summarise(results, PANEL).success_after == {"1": 0.25, "2": 0.5, "3": 0.75}
    assert summarise(won("a"), PANEL).success_after == {}

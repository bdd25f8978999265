"""What an iteration's episodes say."""

from __future__ import annotations

import pytest

from proxmo.training.metrics import rollout_metrics
from proxmo.types import Episode, Outcome, Step
from tests.proxmo.reporting.test_metrics_page import is_listed, listed_names


def step(index: int, valid: bool = True, reason: str = "ok", reward: float = 0.0) -> Step:
    return Step(index, "seen", (1,), (2,), (-0.1,), "up", "up", valid, reason, reward, 0)


def episode(outcome: Outcome, *steps: Step, kind: str = "even", score: float = 0.0) -> Episode:
    return Episode(0, 0, "task", kind, "to 1", steps, outcome, score)


EPISODES = [
    episode(Outcome.WON, step(0), step(1, reward=1.0), score=1.0),
    episode(Outcome.LOST, step(0, False, "cut_by_length", -0.5), kind="odd"),
    episode(Outcome.TRUNCATED, step(0), step(1), step(2, False, "not_admissible"), kind="odd"),
    episode(Outcome.OVERFLOW, kind="odd"),
    episode(Outcome.ERROR, step(0, False), step(1, reward=9.0), kind="third"),
]


def test_rates_are_over_the_episodes_without_an_error():
    metrics = rollout_metrics(EPISODES)
    assert metrics["train/success_rate"] == 0.25
    assert metrics["train/success_rate_low"] < 0.25 < metrics["train/success_rate_high"]
    assert metrics["train/return_mean"] == pytest.approx((1.0 - 0.5) / 4)
    assert metrics["train/score_mean"] == 0.25
    assert metrics["train/episode_length_steps"] == pytest.approx((2 + 1 + 3 + 0) / 4)
    assert metrics["train/invalid_action_share"] == pytest.approx(2 / 6)
    assert metrics["train/cut_reply_share"] == pytest.approx(1 / 6)
    assert metrics["train/error_episodes"] == 1
    assert metrics["train/overflow_episodes"] == 1


def test_success_is_also_told_by_task_type():
    metrics = rollout_metrics(EPISODES)
    kinds = {k.removeprefix("train/success_rate_"): v for k, v in metrics.items() if "rate_" in k}
    assert {k: v for k, v in kinds.items() if k not in ("low", "high")} == {"even": 1.0, "odd": 0.0}


def test_an_iteration_of_errors_alone_knows_nothing():
    metrics = rollout_metrics([EPISODES[-1]])
    assert (metrics["train/success_rate_low"], metrics["train/success_rate_high"]) == (0.0, 1.0)
    assert metrics["train/error_episodes"] == 1


def test_every_metric_is_on_the_page():
    listed = listed_names()
    assert [name for name in rollout_metrics(EPISODES) if not is_listed(name, listed)] == []

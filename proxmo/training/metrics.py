"""Metrics of an iteration: what its episodes achieved, and how long its phases took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from proxmo.evaluation.statistics import wilson_interval
from proxmo.types import Episode, Outcome


def rollout_metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    """Success, returns and lengths of the episodes without an error; errors are counted apart."""
    scored = [e for e in episodes if e.outcome is not Outcome.ERROR]
    wins = sum(e.won for e in scored)
    low, high = wilson_interval(wins, len(scored))
    steps = [s for e in scored for s in e.steps]
    every_step = max(len(steps), 1)
    metrics = {
        "train/success_rate": wins / max(len(scored), 1),
        "train/success_rate_low": low,
        "train/success_rate_high": high,
        "train/return_mean": _mean([e.episode_return for e in scored]),
        "train/score_mean": _mean([e.score for e in scored]),
        "train/episode_length_steps": _mean([len(e.steps) for e in scored]),
        "train/invalid_action_share": sum(not s.valid for s in steps) / every_step,
        "train/cut_reply_share": sum(s.reason == "cut_by_length" for s in steps) / every_step,
        "train/error_episodes": float(len(episodes) - len(scored)),
        "train/overflow_episodes": float(sum(e.outcome is Outcome.OVERFLOW for e in scored)),
    }
    for task_type in sorted({e.task_type for e in scored}):
        won = [e.won for e in scored if e.task_type == task_type]
        metrics[f"train/success_rate_{task_type}"] = sum(won) / len(won)
    return metrics


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def time_metrics(seconds: Mapping[str, float], tokens: int) -> dict[str, float]:
    """Metrics of the time of an iteration.

    Args:
        seconds: length of the phases rollout, credit, update, wait and weight_sync.
        tokens: in the prompts and responses of the iteration.
    """
    whole = sum(seconds.values())
    return {
        "time/rollout_s": seconds["rollout"],
        "time/credit_s": seconds["credit"],
        "time/credit_share": seconds["credit"] / whole,
        "time/training_s": seconds["credit"] + seconds["update"],
        "time/weight_sync_s": seconds["weight_sync"],
        "time/iteration_s": whole,
        "speed/tokens_per_s": tokens / whole,
    }

"""What an iteration's episodes say, as flat metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proxmo.evaluation.statistics import wilson_interval
from proxmo.types import Episode, Outcome


def rollout_metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    """Success, returns and lengths of the episodes without an error; errors are counted apart."""
    scored = [e for e in episodes if e.outcome is not Outcome.ERROR]
    wins = sum(e.won for e in scored)
    low, high = wilson_interval(wins, len(scored))
    steps = [s for e in scored for s in e.steps]
    metrics = {
        "train/success_rate": wins / max(len(scored), 1),
        "train/success_rate_low": low,
        "train/success_rate_high": high,
        "train/return_mean": float(np.mean([e.episode_return for e in scored])) if scored else 0.0,
        "train/score_mean": float(np.mean([e.score for e in scored])) if scored else 0.0,
        "train/episode_length_steps": float(np.mean([len(e.steps) for e in scored]))
        if scored
        else 0.0,
        "train/invalid_action_share": sum(not s.valid for s in steps) / max(len(steps), 1),
        "train/cut_reply_share": sum(s.reason == "cut_by_length" for s in steps)
        / max(len(steps), 1),
        "train/error_episodes": float(len(episodes) - len(scored)),
        "train/overflow_episodes": float(sum(e.outcome is Outcome.OVERFLOW for e in scored)),
    }
    for kind in sorted({e.task_type for e in scored}):
        of_kind = [e.won for e in scored if e.task_type == kind]
        metrics[f"train/success_rate_{kind}"] = sum(of_kind) / len(of_kind)
    return metrics

"""What every method reports about a batch, whatever it computes."""

from __future__ import annotations

import numpy as np

from proxmo.credit.registry import Parts
from proxmo.credit.rows import Rows
from proxmo.credit.states import collapse
from proxmo.credit.statistics import group_mean, without_variance


def diagnose(rows: Rows, parts: Parts) -> dict[str, float]:
    """Metrics `credit/...` of a batch, the method's own among them; none of an empty batch.

    - zero_advantage_share: steps that teach nothing.
    - zero_variance_groups: share of groups whose episodes have equal returns.
    - advantage_variance, episode_variance, step_variance: of A, A_E and omega A_S over the steps.
    - step_share: the last one as a share of the last two together; 0 where both are 0.
    - singleton_share: steps whose state no other step of the group shares; exact matching finds no
      comparison for them.
    - success_rate_*: share of groups by success rate, 0 and 1 exactly, quarters between.
    """
    if not len(rows.reward):
        return dict(parts.diagnostics)
    advantage = parts.advantage
    flat = without_variance(rows.episode_return, rows.episode_group, rows.episode_scale)
    of_episode, of_step = float(parts.episode.var()), float((parts.omega * parts.step).var())
    result = {
        "credit/zero_advantage_share": float((advantage == 0).mean()),
        "credit/zero_variance_groups": float(flat.mean()),
        "credit/advantage_variance": float(advantage.var()),
        "credit/episode_variance": of_episode,
        "credit/step_variance": of_step,
        "credit/step_share": of_step / (of_episode + of_step) if of_step else 0.0,
    }
    if rows.state_code is not None:
        node = collapse(rows.state_code, rows.group).of_row
        result["credit/singleton_share"] = float((np.bincount(node)[node] == 1).mean())
    return result | _success_histogram(rows) | dict(parts.diagnostics)


def _success_histogram(rows: Rows) -> dict[str, float]:
    rate = group_mean(rows.episode_success.astype(np.float64), rows.episode_group)
    # Bins 1 to 4 are the quarters (0, 1/4] ... (3/4, 1); 0 and 5 the rates 0 and 1 themselves.
    place = np.where(rate >= 1.0, 5, np.ceil(rate * 4).astype(int))
    share = np.bincount(place, minlength=6) / len(rate)
    names = ("0", "0_to_25", "25_to_50", "50_to_75", "75_to_100", "100")
    return {
        f"credit/success_rate_{name}": float(one) for name, one in zip(names, share, strict=True)
    }

"""The value head: what it estimates, what it learns, and runs that need it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proxmo import credit
from proxmo.config import CreditConfig, OptimConfig
from proxmo.credit import needs_values
from proxmo.reporting.explanations import read_iteration
from proxmo.training.critic import Critic
from proxmo.types import Batch, Step
from tests.fakes import counter_config, tiny_model, tiny_tokenizer
from tests.proxmo.training.test_loop import assert_same_run, iterations, model, rows, run

torch = pytest.importorskip("torch")
__all__ = ["model"]

OPTIM = OptimConfig(value_lr=1e-2, value_epochs=20, value_clip=10.0)
# Two episodes: "0 now" is worth 1 and "9 9" nothing.
PROMPTS = [tiny_tokenizer()(text)["input_ids"] for text in ("0 now", "1 up", "9 9", "8 down")]
EPISODE, INDEX, REWARD = [0, 0, 1, 1], [0, 1, 0, 1], [0.0, 1.0, 0.0, 0.0]


def batch() -> Batch:
    steps = tuple(
        Step(i, "", tuple(p), (), (), "", "", True, "ok", r, 0)
        for i, p, r in zip(INDEX, PROMPTS, REWARD, strict=True)
    )
    success = np.array([True, True, False, False])
    columns = [np.array(c, dtype=np.int64) for c in ([0] * 4, EPISODE, INDEX)]
    return Batch(steps, *columns, np.array(REWARD), success, np.zeros_like(success))


def critic(config: OptimConfig = OPTIM, seed: int = 0) -> Critic:
    return Critic(tiny_model(), config, pad_id=0, seed=seed)


def test_only_methods_with_values_ask_for_them():
    needing = {name for name in credit.method_names() if needs_values(name)}
    assert needing == {"gae", "ppo"}


def test_the_first_estimates_are_zero_and_the_global_generator_is_left_alone():
    state = torch.get_rng_state()
    assert critic().values(PROMPTS).tolist() == [0.0] * 4
    assert torch.equal(state, torch.get_rng_state())


def test_the_estimates_move_towards_the_returns():
    one = critic()
    for _ in range(8):
        metrics = one.update(batch(), one.values(PROMPTS), {"gamma": 0.9, "lam": 1.0})
    # With lam = 1 the target is the discounted return.
    assert one.values(PROMPTS) == pytest.approx([0.9, 1.0, 0.0, 0.0], abs=0.1)
    assert metrics["value/explained_variance"] > 0.9
    assert metrics["value/loss"] < 0.01


def test_the_clip_range_bounds_how_far_an_estimate_moves_at_once():
    def moved(clip: float) -> float:
        one = critic(replace(OPTIM, value_lr=3e-4, value_epochs=200, value_clip=clip))
        one.update(batch(), one.values(PROMPTS), {"gamma": 1.0, "lam": 1.0})
        return float(np.abs(one.values(PROMPTS)).max())

    # Beyond the range the loss is flat; what Adam's momentum adds is all that is left.
    assert moved(10.0) > 0.9
    assert 0.05 < moved(0.05) < 0.5


def test_the_policy_gets_no_gradient_from_the_head():
    one = critic()
    one.update(batch(), one.values(PROMPTS), {})
    assert all(weight.grad is None for weight in one.model.parameters())


def test_ppo_trains_resumes_to_the_bit_and_reports_its_values(model: Path, tmp_path: Path):
    config = counter_config(
        model,
        credit=CreditConfig(method="ppo", options={"lam": 0.9}),
        optim=OptimConfig(iterations=4, lr=1e-3, kl_coef=0.0, value_lr=1e-2),
    )
    run(config, tmp_path / "whole")
    run(iterations(config, 2), tmp_path / "parts")
    run(config, tmp_path / "parts", resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "parts", iteration=4)
    found = rows(tmp_path / "whole")
    assert found[0]["value/mean"] == 0.0 and any(row["value/mean"] != 0.0 for row in found)
    explained = read_iteration(tmp_path / "whole")
    assert explained.notes == () and explained.explain(0, 0).value is not None


def test_a_method_without_values_has_no_head(model: Path, tmp_path: Path):
    config = counter_config(model, optim=OptimConfig(iterations=1))
    run(config, tmp_path / "run")
    saved: Any = torch.load(tmp_path / "run/checkpoints/step_1/trainer_state.pt", weights_only=True)
    assert "critic" not in saved
    assert not any(name.startswith("value/") for row in rows(tmp_path / "run") for name in row)

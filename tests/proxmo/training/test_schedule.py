"""The learning rate over a run."""

from __future__ import annotations

import pytest

from proxmo.config import OptimConfig
from proxmo.training.schedule import learning_rate


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        # 10 iterations of 2 minibatches are 20 steps, 4 of them warm-up.
        ("constant", [0.25, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.25, 1.0, 0.75, 0.0, 0.0]),
        ("cosine", [0.25, 1.0, 0.5 * (1 + 2**-0.5), 0.0, 0.0]),
    ],
)
def test_a_schedule_warms_up_and_falls_to_its_end(schedule: str, expected: list[float]):
    config = OptimConfig(iterations=10, minibatches=2, warmup_steps=4, lr_schedule=schedule)
    factors = [learning_rate(config, step) for step in (0, 4, 8, 20, 25)]
    assert factors == pytest.approx(expected)


def test_a_run_without_iterations_has_a_rate():
    assert learning_rate(OptimConfig(iterations=0, lr_schedule="linear"), 0) == 1.0

"""The ablations are ProxMO with one part taken away."""

from __future__ import annotations

import numpy as np
import pytest

from proxmo.credit import assign

BATCH = {
    "group": [0] * 6,
    "episode": [0, 0, 1, 1, 2, 2],
    "step": [0, 1] * 3,
    "reward": np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
    "success": [True, True, False, False, False, False],
    "state": ["the kitchen", "fridge 1", "the kitchen", "drawer 1", "the hall", "fridge 1"],
}


@pytest.mark.parametrize(
    ("name", "option"),
    [("proxmo-no-modulation", "modulation"), ("proxmo-no-aggregation", "aggregation")],
)
def test_an_ablation_is_proxmo_without_that_part(name: str, option: str):
    ablated = assign(name, **BATCH).advantage
    np.testing.assert_array_equal(ablated, assign("proxmo", **BATCH, **{option: False}).advantage)
    assert not np.allclose(ablated, assign("proxmo", **BATCH).advantage)


def test_an_ablation_takes_the_options_of_what_is_left():
    ablated = assign("proxmo-no-modulation", **BATCH, tau=1.0, omega=0.5, norm="mean")
    options = {"tau": 1.0, "omega": 0.5, "norm": "mean", "modulation": False}
    np.testing.assert_array_equal(ablated.advantage, assign("proxmo", **BATCH, **options).advantage)
    ablated = assign("proxmo-no-aggregation", **BATCH, alpha=2.0, beta=0.5)
    options = {"alpha": 2.0, "beta": 0.5, "aggregation": False}
    np.testing.assert_array_equal(ablated.advantage, assign("proxmo", **BATCH, **options).advantage)

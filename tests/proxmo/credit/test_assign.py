"""The front door of credit assignment."""

import numpy as np
import pytest

from proxmo import credit
from proxmo.errors import UnknownNameError


def test_step_returns_discount_inside_each_episode_in_any_row_order():
    # G_2 = 1, G_1 = 0.95, G_0 = 0.95^2; the second episode never wins.
    out = credit.assign(
        "grpo",
        group=["t"] * 5,
        episode=["a", "b", "a", "b", "a"],
        step=[2, 0, 0, 1, 1],
        reward=[1.0, 0.0, 0.0, 0.0, 0.0],
        success=[True, False, False, False, False],
        state=None,
    )
    np.testing.assert_allclose(out.step_return, [1.0, 0.0, 0.9025, 0.0, 0.95], rtol=1e-12)


def test_an_unknown_method_proposes_near_ones():
    with pytest.raises(UnknownNameError, match="proxmo"):
        credit.assign(
            "proxmoo", group=[0], episode=[0], step=[0], reward=[1.0], success=[True], state=["x"]
        )

"""What is reported about a batch."""

import numpy as np
import pytest

from proxmo import credit
from tests.proxmo.credit.batches import single_steps


@pytest.fixture
def diagnostics():
    # Group 0: one win of four, two steps in one place. Group 1: all lost, each in its own place.
    batch = single_steps(
        [1.0, 0, 0, 0, 0, 0],
        group=[0, 0, 0, 0, 1, 1],
        state=["a", "a", "b", "c", "a", "b"],
    )
    return credit.assign("proxmo", **batch).diagnostics


def test_shares_of_what_teaches_nothing_are_reported(diagnostics):
    assert diagnostics["credit/zero_variance_groups"] == 0.5
    assert diagnostics["credit/zero_advantage_share"] == pytest.approx(2 / 6)
    assert diagnostics["credit/singleton_share"] == pytest.approx(4 / 6)


def test_the_histogram_of_success_rates_is_over_groups(diagnostics):
    shares = {name: value for name, value in diagnostics.items() if "success_rate" in name}
    assert sum(shares.values()) == 1.0
    assert shares["credit/success_rate_0"] == 0.5
    assert shares["credit/success_rate_0_to_25"] == 0.5


def test_variances_are_those_of_the_parts():
    out = credit.assign("gigpo", **single_steps([1.0, 0.0, 0.0], state=["a", "a", "b"]), omega=2.0)
    found = out.diagnostics
    assert found["credit/advantage_variance"] == pytest.approx(np.var(out.advantage))
    assert found["credit/episode_variance"] == pytest.approx(np.var(out.episode_advantage))
    assert found["credit/step_variance"] == pytest.approx(4 * np.var(out.step_advantage))
    # Two steps are in a group of 2, one in a group of 1.
    assert found["credit/step_group_size"] == pytest.approx(5 / 3)


def test_modulation_weights_are_summarised(diagnostics):
    # p = 1/4. Win: f = tanh(0.75^4 / 2) / (2 tanh(1/2)) = 0.156897 / 0.924234, w = 1.016976.
    # Losses: f = -tanh(0.25^4 / 2) / (2 tanh(1/2)) = -0.002113, w = 0.999789. Group 1 has w = 1.
    assert diagnostics["credit/modulation_max"] == pytest.approx(1.016976, abs=2e-6)
    assert diagnostics["credit/modulation_min"] == pytest.approx(0.999789, abs=2e-6)
    mean = (1.016976 + 3 * 0.999789 + 2) / 6
    assert diagnostics["credit/modulation_mean"] == pytest.approx(mean, abs=2e-6)


def test_the_effective_number_of_neighbours_grows_with_the_temperature():
    batch = single_steps([1.0, 0.0, 0.0, 0.0], state=["a", "b", "c", "d"])
    for tau, expected in ((0.01, 1.0), (1e9, 4.0)):
        found = credit.assign("proxmo", **batch, tau=tau).diagnostics
        assert found["credit/effective_neighbours"] == pytest.approx(expected)

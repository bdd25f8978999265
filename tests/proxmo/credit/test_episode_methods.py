"""The methods that compare whole episodes, by hand."""

import numpy as np
import pytest

from proxmo import credit
from proxmo.errors import ConfigError, DataError
from tests.proxmo.credit.batches import single_steps

EPISODE_METHODS = ["grpo", "dr_grpo", "rloo", "dapo", "gigpo", "proxmo"]


def advantage(method, returns, **others):
    options = {name: others.pop(name) for name in tuple(others) if name not in BATCH}
    return credit.assign(method, **single_steps(returns, **others), **options).advantage


BATCH = ("group", "episode", "step", "reward", "success", "state")


def test_grpo_divides_by_the_unbiased_deviation():
    # Returns 1, 0, 0, 0: mean 1/4, variance (9/16 + 3/16) / 3 = 1/4, std 1/2: 1.5 and -0.5.
    found = advantage("grpo", [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(found, [1.5, -0.5, -0.5, -0.5], atol=1e-5)


def test_dapo_has_the_advantage_of_grpo():
    found = advantage("dapo", [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(found, [1.5, -0.5, -0.5, -0.5], atol=1e-5)


def test_dr_grpo_only_subtracts_the_mean():
    found = advantage("dr_grpo", [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(found, [0.75, -0.25, -0.25, -0.25])


def test_rloo_compares_with_the_others():
    # 1 - mean(0, 0, 0) = 1; 0 - mean(1, 0, 0) = -1/3.
    found = advantage("rloo", [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(found, [1.0, -1 / 3, -1 / 3, -1 / 3])


def test_groups_are_compared_inside_themselves_only():
    # Group a: 1, 0 (mean 1/2); group b: 3, 1 (mean 2).
    found = advantage("dr_grpo", [1.0, 3.0, 0.0, 1.0], group=["a", "b", "a", "b"])
    np.testing.assert_allclose(found, [0.5, 1.0, -0.5, -1.0])


def test_an_episode_counts_once_however_long_it_is():
    # Episode 0 takes three steps and wins, episode 1 takes one and loses: mean 1/2, not 3/4.
    found = advantage(
        "dr_grpo",
        [0.0] * 4,
        episode=[0, 0, 0, 1],
        step=[0, 1, 2, 0],
        reward=np.array([0.0, 0.0, 1.0, 0.0]),
    )
    np.testing.assert_allclose(found, [0.5, 0.5, 0.5, -0.5])


def test_reinforce_pp_normalises_over_the_steps_of_the_batch():
    # Returns of the steps 1, 1, 0 (a two-step win and a loss): mean 2/3, variance
    # (1/9 + 1/9 + 4/9) / 2 = 1/3.
    found = advantage(
        "reinforce++",
        [0.0] * 3,
        group=[0, 0, 1],
        episode=[0, 0, 0],
        step=[0, 1, 0],
        reward=np.array([0.0, 1.0, 0.0]),
    )
    deviation = np.sqrt(1 / 3)
    expected = np.array([1 / 3, 1 / 3, -2 / 3]) / deviation
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_reinforce_pp_with_baseline_subtracts_the_group_mean_first():
    # Groups (1, 0) and (5, 5): deviations 1/2, -1/2, 0, 0; variance (1/4 + 1/4) / 3 = 1/6.
    found = advantage("reinforce++", [1.0, 0.0, 5.0, 5.0], group=[0, 0, 1, 1], baseline=True)
    np.testing.assert_allclose(found, np.array([0.5, -0.5, 0, 0]) * np.sqrt(6), atol=1e-5)


def test_step_learns_from_successes_weighted_by_their_rarity():
    # Success rate 1/4: the success gets 1 - 1/4.
    found = advantage("step", [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(found, [0.75, 0.0, 0.0, 0.0])
    smoothed = advantage("step", [1.0, 0.0, 0.0, 0.0], success_rate=[0.4] * 4)
    np.testing.assert_allclose(smoothed, [0.6, 0.0, 0.0, 0.0])


def test_step_refuses_rates_that_are_none():
    with pytest.raises(DataError, match="success_rate"):
        advantage("step", [1.0, 0.0], success_rate=[0.4, 1.4])


def test_gae_sums_discounted_errors_of_the_value():
    # gamma 0.5, lambda 0.5. Rewards 0, 1; values 2, 4 (given in reverse row order).
    # delta_1 = 1 - 4 = -3; delta_0 = 0 + 0.5 * 4 - 2 = 0; A_1 = -3, A_0 = 0 + 0.25 * -3 = -0.75.
    batch = single_steps([0.0, 0.0], episode=[0, 0], step=[1, 0], reward=np.array([1.0, 0.0]))
    options = {"value": [4.0, 2.0], "lam": 0.5, "gamma": 0.5}
    found = credit.assign("gae", **batch, **options, whiten=False).advantage
    np.testing.assert_allclose(found, [-3.0, -0.75])
    # Whitened: mean -1.875, std 2.25 / sqrt(2).
    white = credit.assign("ppo", **batch, **options).advantage
    np.testing.assert_allclose(white, [-np.sqrt(0.5), np.sqrt(0.5)], atol=1e-5)


def test_gae_discounts_across_a_gap_by_its_width_as_the_return_does():
    # With lambda 1 the values between cancel: A_t = G_t - V_t.
    value = np.array([0.2, 0.3, 0.4])
    batch = single_steps([0.0] * 3, episode=[0] * 3, step=[0, 2, 5], reward=np.array([0.0, 0, 1]))
    out = credit.assign("gae", **batch, value=value, lam=1.0, whiten=False)
    np.testing.assert_allclose(out.advantage, out.step_return - value)


def test_gae_says_what_it_misses():
    with pytest.raises(ConfigError, match="needs the option 'value'"):
        advantage("gae", [0.0, 1.0])
    with pytest.raises(DataError, match="value has 1 entries; expected 2"):
        advantage("gae", [0.0, 1.0], value=[0.0])
    with pytest.raises(ConfigError, match="lam .* is 2.0; expected less than or equal to 1"):
        advantage("gae", [0.0, 1.0], value=[0.0, 0.0], lam=2.0)


@pytest.mark.parametrize("method", EPISODE_METHODS)
@pytest.mark.parametrize(
    "returns",
    [
        [1.0, 1.0, 1.0, 1.0],
        [0.0, 0.0, 0.0],
        [0.1 + 0.2, 0.3, 0.3],
        [float(np.float32(0.1)), 0.1],
        [10.0],
        [-0.1 * 3, -0.3],
    ],
)
def test_groups_without_variance_give_exactly_zero(method, returns):
    assert (advantage(method, returns) == 0.0).all()


@pytest.mark.parametrize("method", EPISODE_METHODS)
def test_sums_that_differ_by_rounding_are_equal_returns(method):
    # Three rewards of 0.1 sum to 0.30000000000000004, one of 0.3 to 0.3.
    out = credit.assign(
        method,
        **single_steps(
            [0.0] * 4,
            episode=[0, 0, 0, 1],
            step=[0, 1, 2, 0],
            reward=np.array([0.1, 0.1, 0.1, 0.3]),
        ),
    )
    assert (out.episode_advantage == 0.0).all()


@pytest.mark.parametrize("norm", ["zscore", "mean"])
def test_a_group_of_one_keeps_nothing_of_its_reward(norm):
    assert advantage("grpo", [10.0], norm=norm).tolist() == [0.0]
    assert advantage("proxmo", [10.0], norm=norm).tolist() == [0.0]

"""Discounted step returns."""

import numpy as np

from proxmo import credit
from tests.proxmo.credit.batches import single_steps


def returns(**columns):
    size = len(columns["reward"])
    batch = single_steps([0.0] * size, **columns)
    return credit.assign("grpo", **batch).step_return


def test_a_final_reward_is_discounted_back_step_by_step():
    # G_2 = 1, G_1 = 0.95, G_0 = 0.95^2 = 0.9025.
    found = returns(episode=[0, 0, 0], step=[0, 1, 2], reward=np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(found, [0.9025, 0.95, 1.0], rtol=1e-12)


def test_interleaved_and_shuffled_episodes_do_not_mix():
    # Episode a: rewards 0, 0, 1. Episode b: rewards -0.1, 0.5; G_0 = -0.1 + 0.95 * 0.5 = 0.375.
    found = returns(
        episode=["a", "b", "a", "b", "a"],
        step=[2, 1, 0, 0, 1],
        reward=np.array([1.0, 0.5, 0.0, -0.1, 0.0]),
    )
    np.testing.assert_allclose(found, [1.0, 0.5, 0.9025, 0.375, 0.95], rtol=1e-12)


def test_a_missing_step_is_discounted_by_its_distance():
    # Steps 0 and 3 only: G_0 = 0.95^3.
    found = returns(episode=[0, 0], step=[0, 3], reward=np.array([0.0, 1.0]))
    np.testing.assert_allclose(found, [0.857375, 1.0], rtol=1e-12)


def test_a_long_episode_agrees_with_the_recursion():
    reward = np.random.default_rng(0).normal(size=1000)
    expected = np.zeros(1000)
    following = 0.0
    for step in reversed(range(1000)):
        following = expected[step] = reward[step] + 0.95 * following
    found = returns(episode=[0] * 1000, step=range(1000), reward=reward)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_ends_of_the_range_of_gamma_sum_everything_or_nothing():
    batch = single_steps([0.0] * 3, episode=[0] * 3, step=[0, 1, 2], reward=np.array([1.0, 2, 3]))
    np.testing.assert_array_equal(credit.assign("grpo", **batch, gamma=1).step_return, [6, 5, 3])
    np.testing.assert_array_equal(credit.assign("grpo", **batch, gamma=0).step_return, [1, 2, 3])

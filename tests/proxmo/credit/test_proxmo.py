"""ProxMO: modulation and soft aggregation, by hand and against a plain dense computation."""

from math import log

import numpy as np
import pytest

from proxmo import credit
from proxmo.credit.proxmo import modulation_weight
from tests.proxmo.credit.batches import random_batch, reorder, single_steps

# Two orthogonal states and this temperature: a step's own state weighs 3 times the other one,
# exp(1 / tau) = 3.
TAU_OF_3 = 1 / log(3)
A, B = [1.0, 0.0], [0.0, 1.0]


def step_part(returns, state, **options):
    batch = single_steps(returns, state=np.array(state))
    return credit.assign("proxmo", **batch, **options).step_advantage


@pytest.mark.parametrize(
    ("rate", "success", "failure"),
    # f(success, p) = [sigmoid((1-p)^4) - 1/2] / [2 (sigmoid(1) - 1/2)], w = 1 + 0.1 f.
    # At p = 0.125: 0.875^4 = 0.586182, sigmoid = 0.642489; 0.142489 / 0.462117 = 0.308340.
    # At p = 0.5: 0.5^4 = 0.0625, sigmoid = 0.515620; 0.015620 / 0.462117 = 0.033800.
    [
        (0.0, 1.0500, 1.0000),
        (0.125, 1.0308, 1.0000),
        (0.5, 1.0034, 0.9966),
        (0.875, 1.0000, 0.9692),
        (1.0, 1.0000, 0.9500),
    ],
)
def test_modulation_weights_have_the_golden_values(rate, success, failure):
    found = modulation_weight(np.array([True, False]), np.array([rate, rate]))
    np.testing.assert_allclose(found, [success, failure], atol=5e-5)


@pytest.mark.parametrize("pay", [1.0, 10.0])
@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_modulation_reads_the_success_flag_and_not_the_size_of_the_reward(pay, penalty):
    # One win in eight: p = 0.125; every episode also makes one invalid action.
    returns = np.full(8, -penalty)
    returns[0] += pay
    batch = single_steps([0.0] * 8, reward=returns, success=[True] + [False] * 7)
    plain = credit.assign("proxmo", **batch, modulation=False, aggregation=False).advantage
    found = credit.assign("proxmo", **batch, aggregation=False).advantage
    np.testing.assert_allclose(found / plain, [1.0308] + [1.0] * 7, atol=5e-5)


def test_the_baseline_weighs_similar_states_more():
    # At A: B = (3 * 1 + 1 * 0) / 4 = 3/4; at B: (1 * 1 + 3 * 0) / 4 = 1/4.
    found = step_part([1.0, 0.0], [A, B], tau=TAU_OF_3)
    np.testing.assert_allclose(found, [1 / 4, -1 / 4], atol=1e-6)


def test_identical_states_weigh_as_often_as_they_occur():
    # Candidates of a step at A: A twice (1, 0) with weight 3, B once (0) with weight 1: 3 / 7.
    # At B: A twice with weight 1, B with weight 3: 1 / 5.
    found = step_part([1.0, 0.0, 0.0], [A, A, B], tau=TAU_OF_3)
    np.testing.assert_allclose(found, [4 / 7, -3 / 7, -1 / 5], atol=1e-6)


def test_excluding_the_step_itself_leaves_its_own_return_out():
    # First step at A: the other A (0) weighs 3, B (0) weighs 1: 0. Second at A: (3 * 1) / 4.
    # At B: both A: 1/2.
    found = step_part([1.0, 0.0, 0.0], [A, A, B], tau=TAU_OF_3, exclude="self")
    np.testing.assert_allclose(found, [1.0, -3 / 4, -1 / 2], atol=1e-6)


def test_excluding_the_episode_compares_with_the_other_episodes_only():
    # Episode 0 visits A then B and wins (returns 0.95, 1); episode 1 stays at A and loses (0).
    batch = single_steps(
        [0.0] * 3,
        episode=[0, 0, 1],
        step=[0, 1, 0],
        reward=np.array([0.0, 1.0, 0.0]),
        state=np.array([A, B, A]),
    )
    out = credit.assign("proxmo", **batch, exclude="episode", tau=TAU_OF_3)
    # The loss: A of episode 0 weighs 3, its B 1: (3 * 0.95 + 1) / 4 = 0.9625.
    np.testing.assert_allclose(out.step_advantage, [0.95, 1.0, -0.9625], atol=1e-6)


@pytest.mark.parametrize("exclude", ["self", "episode"])
def test_a_step_without_candidates_has_no_step_advantage(exclude):
    assert step_part([1.0], [A], exclude=exclude).tolist() == [0.0]


def test_each_step_of_a_lone_episode_that_stays_where_it_is_has_no_step_advantage():
    # Returns 0.95 and 1 from one state, and no other episode to compare either with.
    batch = single_steps(
        [0.0, 1.0], episode=[0, 0], step=[0, 1], success=[True] * 2, state=np.array([A, A])
    )
    out = credit.assign("proxmo", **batch, exclude="episode")
    assert out.step_advantage.tolist() == [0.0, 0.0]


def test_a_low_temperature_compares_with_the_nearest_state():
    # Each state is nearest to itself: A holds 1 and 0, B one step.
    found = step_part([1.0, 0.0, 5.0], [A, A, B], tau=1e-300)
    np.testing.assert_allclose(found, [0.5, -0.5, 0.0])
    # Without itself, the nearest of (1, 0) is (0.8, 0.6), not (0, 1).
    found = step_part([1.0, 0.0, 5.0], [A, [0.8, 0.6], B], tau=1e-4, exclude="self")
    np.testing.assert_allclose(found, [1.0, -1.0, 5.0])


@pytest.mark.parametrize("tau", [1e9, float("inf")])
def test_a_high_temperature_compares_with_the_mean_of_the_group(tau):
    found = step_part([1.0, 0.0, 5.0], [A, A, B], tau=tau)
    np.testing.assert_allclose(found, [-1.0, -2.0, 3.0], atol=1e-6)


def test_orthogonal_and_empty_observations_are_legal():
    out = credit.assign("proxmo", **single_steps([1.0, 0.0, 0.0], state=["", "", "a mug"]))
    # Empty observations are identical: 1/2 of each other, e^-10 of the third.
    np.testing.assert_allclose(out.step_advantage[:2], [0.5, -0.5], atol=1e-4)
    out = credit.assign("proxmo", **single_steps([1.0, 0.0], state=np.zeros((2, 4))))
    np.testing.assert_allclose(out.step_advantage, [0.5, -0.5])


def test_numbers_tell_states_apart():
    state = [f"You arrive at drawer {number}. The drawer {number} is closed." for number in (1, 2)]
    out = credit.assign("proxmo", **single_steps([1.0, 0.0], state=state), tau=0.01)
    assert out.step_advantage[0] < 0.1, "drawer 1 is mostly compared with itself"


def by_first_letter(texts):
    """An embedding of one's own: the states are as unlike as their first letters."""
    return np.array([[text[0] == "a", text[0] == "b"] for text in texts], float)


def test_the_embedding_may_be_hashed_n_grams_or_a_function_of_ones_own():
    batch = single_steps([1.0, 0.0, 0.5], state=["a mug", "b mug", "a cup"])
    own = credit.assign("proxmo", **batch, embedding=f"{__name__}:by_first_letter")
    # The two states with an a are alike: mean 0.75 (and e^-10 of the other).
    np.testing.assert_allclose(own.step_advantage, [0.25, -0.0, -0.25], atol=1e-3)
    hashed = credit.assign("proxmo", **batch, embedding="hash")
    assert np.abs(hashed.step_advantage - own.step_advantage).max() > 0.01


def test_the_ablations_leave_one_part_out():
    batch = random_batch(np.random.default_rng(0))
    whole = credit.assign("proxmo", **batch)
    flat = credit.assign("proxmo", **batch, modulation=False)
    hard = credit.assign("proxmo", **batch, aggregation=False)
    grpo = credit.assign("grpo", **batch)
    np.testing.assert_allclose(flat.episode_advantage, grpo.advantage)
    np.testing.assert_array_equal(flat.step_advantage, whole.step_advantage)
    np.testing.assert_array_equal(hard.advantage, whole.episode_advantage)
    assert (hard.step_advantage == 0).all()
    assert (whole.episode_advantage != flat.episode_advantage).any()


def test_the_whole_advantage_adds_omega_times_the_step_part():
    out = credit.assign("proxmo", **random_batch(np.random.default_rng(0)), omega=0.5)
    np.testing.assert_allclose(out.advantage, out.episode_advantage + 0.5 * out.step_advantage)


def test_the_batch_scope_compares_across_tasks():
    batch = single_steps([1.0, 0.0], group=[0, 1], state=["a", "a"])
    assert (credit.assign("proxmo", **batch).step_advantage == 0).all()
    found = credit.assign("proxmo", **batch, scope="batch").step_advantage
    np.testing.assert_allclose(found, [0.5, -0.5])


@pytest.mark.parametrize("exclude", ["none", "self", "episode"])
def test_the_top_k_baseline_is_within_the_reported_bound(exclude):
    rng = np.random.default_rng(1)
    batch = random_batch(rng, groups=1, episodes=8, steps=10)
    batch |= {"state": rng.normal(size=(len(batch["step"]), 3))}
    options = {"tau": 0.5, "exclude": exclude}
    whole = credit.assign("proxmo", **batch, **options)
    cut = credit.assign("proxmo", **batch, **options, top_k=12)
    spread = np.ptp(whole.step_return)
    off = np.abs(whole.step_advantage - cut.step_advantage).max()
    assert 1e-3 < off <= cut.diagnostics["credit/top_k_cut_max"] * spread
    assert whole.diagnostics["credit/top_k_cut_max"] < 1e-12


def test_a_cut_that_leaves_no_candidate_is_reported_as_all_of_the_weight():
    # The nearest two of either state of episode 0 are both its own: B would be the third.
    batch = single_steps(
        [1.0, 0.0, 0.0],
        episode=[0, 0, 1],
        step=[0, 1, 0],
        success=[True, True, False],
        state=np.array([A, [0.8, 0.6], [-1.0, 0.0]]),
    )
    out = credit.assign("proxmo", **batch, exclude="episode", top_k=1, tau=1e-4)
    assert out.diagnostics["credit/top_k_cut_max"] == 1.0


def test_a_cut_search_finds_an_empty_observation_itself():
    # Its vector is zero, as near to every other as to itself by the inner product alone.
    texts = ["red mug", "blue mug", "green mug", "", "a shelf"]
    batch = single_steps([1.0, 0.0, 0.0, 5.0, 0.0], state=texts)
    out = credit.assign("proxmo", **batch, top_k=1, tau=1e-4)
    np.testing.assert_allclose(out.step_advantage, 0.0, atol=1e-6)
    assert out.explain(3).neighbours[0].text == ""


def test_rows_order_group_names_and_other_tasks_do_not_matter():
    rng = np.random.default_rng(7)
    batch = random_batch(rng, groups=2)
    size = len(batch["step"])
    expected = credit.assign("proxmo", **batch).advantage
    order = rng.permutation(size)
    moved = credit.assign("proxmo", **reorder(batch, order)).advantage
    np.testing.assert_allclose(moved, expected[order], atol=1e-5)
    renamed = batch | {"group": [("g", one) for one in batch["group"]]}
    np.testing.assert_array_equal(credit.assign("proxmo", **renamed).advantage, expected)
    stranger = single_steps([1.0, 0.0], group=["x", "x"], state=["you see mug mug", "shelf 1"])
    both = {name: [*batch[name], *stranger[name]] for name in batch}
    both |= {"reward": np.array(both["reward"])}
    np.testing.assert_allclose(
        credit.assign("proxmo", **both).advantage[:size], expected, atol=1e-12
    )

"""Where the preset that reproduces the published code leaves the paper, on a batch by hand."""

import numpy as np

from proxmo import credit
from proxmo.credit.embeddings import tfidf
from proxmo.credit.proxmo_released import fitted_to_batch
from tests.proxmo.credit.batches import single_steps


def test_long_episodes_weigh_more_and_their_mean_is_the_success_rate():
    # A three-step win (1) and a one-step loss: mean over steps 3/4, which is also p.
    # w(success, 3/4) = 1 + 0.1 tanh(0.25^4 / 2) / (2 tanh(1/2)) = 1.000211,
    # w(failure, 3/4) = 1 - 0.1 tanh(0.75^4 / 2) / (2 tanh(1/2)) = 0.983024.
    batch = single_steps(
        [0.0] * 4,
        episode=[0, 0, 0, 1],
        step=[0, 1, 2, 0],
        reward=np.array([0.0, 0.0, 1.0, 0.0]),
        success=[True, True, True, False],
        state=["in a room", "in the hall", "at the door", "in a room"],
    )
    found = credit.assign("proxmo-released", **batch).episode_advantage
    np.testing.assert_allclose(found, [0.250053] * 3 + [-0.737268], atol=1e-5)
    # The paper's mean is 1/2, and so is p: w = 1.00338 and 0.99662.
    ours = credit.assign("proxmo", **batch, norm="mean").episode_advantage
    np.testing.assert_allclose(ours, [0.501690] * 3 + [-0.498310], atol=1e-5)


def test_a_large_reward_saturates_the_success_rate():
    # Two wins of eight pay 10: the mean 2.5, cut to 1, says that every episode succeeds.
    batch = single_steps([10.0, 10.0] + [0.0] * 6)
    found = credit.assign("proxmo-released", **batch)
    np.testing.assert_allclose(found.episode_advantage, [7.5] * 2 + [-2.5 * 0.95] * 6, atol=1e-5)
    np.testing.assert_allclose(found.modulation, [1.0] * 2 + [0.95] * 6)
    # The paper's p is 1/4; 7.5 and -2.5 are divided by the deviation sqrt(150 / 7).
    ours = credit.assign("proxmo", **batch)
    np.testing.assert_allclose(ours.modulation, [1.01698] * 2 + [0.99979] * 6, atol=1e-5)
    np.testing.assert_allclose(ours.episode_advantage, [1.6477] * 2 + [-0.5399] * 6, atol=5e-5)


def test_a_group_of_one_step_keeps_its_raw_reward():
    found = credit.assign("proxmo-released", **single_steps([10.0]), modulation=False)
    assert found.episode_advantage.tolist() == [10.0]
    assert credit.assign("proxmo", **single_steps([10.0])).advantage.tolist() == [0.0]


def test_numbered_places_coincide_and_other_tasks_change_the_weights():
    batch = single_steps([1.0, 0.0], state=["drawer 1", "drawer 2"])
    found = credit.assign("proxmo-released", **batch)
    np.testing.assert_allclose(found.step_advantage, [0.5, -0.5], atol=1e-6)
    batch = single_steps([1.0, 0.0, 0.0], group=[0, 0, 1], state=["red mug", "red cup", "red"])
    alone = credit.assign("proxmo-released", **{k: v[:2] for k, v in batch.items()})
    among = credit.assign("proxmo-released", **batch)
    np.testing.assert_allclose(alone.step_advantage[0], 0.00131, atol=1e-5)
    np.testing.assert_allclose(among.step_advantage[0], 0.00060, atol=1e-5)
    ours = credit.assign("proxmo", **batch)
    np.testing.assert_allclose(ours.step_advantage[0], 0.00131, atol=1e-5)


def test_the_places_of_the_page_are_told_apart_by_the_paper_only():
    places = [f"You arrive at drawer {one}. The drawer {one} is closed." for one in (1, 2)]
    ours, released = tfidf(places), fitted_to_batch(places)(places)
    np.testing.assert_allclose(ours[0] @ ours[1], 0.559, atol=5e-4)
    np.testing.assert_allclose(released[0] @ released[1], 1.0, atol=1e-6)


def test_an_observation_without_a_longer_word_is_not_similar_to_itself():
    # Its vector is zero: its own return weighs e^0 = 1 like all others, and not e^(1/tau).
    batch = single_steps([1.0, 0.0, 0.0, 0.0], state=["a", "b 1", "a mug", "a mug"])
    found = credit.assign("proxmo-released", **batch).step_advantage
    np.testing.assert_allclose(found[:2], [0.75, -0.25])
    ours = credit.assign("proxmo", **batch).step_advantage
    assert abs(ours[0]) < 0.5

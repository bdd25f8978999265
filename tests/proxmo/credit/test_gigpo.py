"""GiGPO: groups of steps that start from one state."""

import numpy as np
import pytest

from proxmo import credit
from proxmo.credit import matching
from proxmo.errors import ConfigError
from tests.proxmo.credit.batches import single_steps


def step_advantage(returns, state, **options):
    group = options.pop("group", [0] * len(returns))
    batch = single_steps(returns, state=state, group=group)
    return credit.assign("gigpo", **batch, **options).step_advantage


def test_steps_are_compared_with_steps_from_the_identical_state():
    # State a: returns 1, 0 (mean 1/2, std sqrt(1/2)); state b: 1, 1; state c alone.
    found = step_advantage([1.0, 0.0, 1.0, 1.0, 5.0], ["a", "a", "b", "b", "c"])
    np.testing.assert_allclose(found, [np.sqrt(0.5), -np.sqrt(0.5), 0, 0, 0], atol=1e-5)
    assert (found[2:] == 0).all()


def test_returns_that_only_rounding_tells_apart_are_equal():
    # From the shared state both episodes gain 0, one by 11.1 + 22.2 - 33.3 in float32: 2e-6.
    batch = single_steps(
        [0.0] * 5,
        episode=[0, 0, 0, 1, 1],
        step=[0, 1, 2, 0, 1],
        reward=np.array([11.1, 22.2, -33.3, 11.1, -11.1], np.float32),
        state=["shared", "a", "b", "shared", "c"],
    )
    out = credit.assign("gigpo", **batch, gamma=1.0)
    assert 0 < abs(out.step_return[0]) < 1e-5 and out.step_return[3] == 0
    assert (out.step_advantage == 0).all()


def test_the_mean_norm_leaves_out_the_division():
    found = step_advantage([1.0, 0.0], ["a", "a"], norm="mean")
    np.testing.assert_allclose(found, [0.5, -0.5])


def test_identical_states_of_different_tasks_are_not_compared():
    assert (step_advantage([1.0, 0.0], ["a", "a"], group=[0, 1]) == 0).all()


def test_the_whole_advantage_adds_omega_times_the_step_part():
    batch = single_steps([1.0, 0.0, 0.5, 0.2], state=["a", "a", "b", "b"])
    out = credit.assign("gigpo", **batch, omega=0.25)
    np.testing.assert_allclose(out.advantage, out.episode_advantage + 0.25 * out.step_advantage)


def test_similar_states_join_the_first_group_they_are_similar_to():
    # "abcdefghij" and "abcdefghiX" share 9 of 10 characters: ratio 0.9.
    state = ["abcdefghij", "abcdefghiX", "nothing like it"]
    strict = step_advantage([1.0, 0.0, 0.0], state, similarity=0.95)
    loose = step_advantage([1.0, 0.0, 0.0], state, similarity=0.9, norm="mean")
    assert (strict == 0).all()
    np.testing.assert_allclose(loose, [0.5, -0.5, 0.0])


def test_similarity_may_be_the_cosine_of_embeddings():
    # (3, 4) against (1, 0): cosine 0.6; against (4, 3): 0.96.
    state = np.array([[3.0, 4.0], [4.0, 3.0], [1.0, 0.0]])
    options = {"matcher": "tfidf", "norm": "mean"}
    found = step_advantage([1.0, 0.0, 0.0], state, similarity=0.95, **options)
    np.testing.assert_allclose(found, [0.5, -0.5, 0.0])
    found = step_advantage([1.0, 0.0, 0.0], state, similarity=0.6, **options)
    np.testing.assert_allclose(found, [2 / 3, -1 / 3, -1 / 3])


def test_a_matcher_of_texts_refuses_embeddings_and_says_what_to_do():
    with pytest.raises(ConfigError, match="matcher is 'difflib', which compares texts.*'policy'"):
        step_advantage([1.0, 0.0], np.eye(2), similarity=0.9)
    assert step_advantage([1.0, 0.0], np.ones((2, 2)), similarity=0.9, matcher="policy").any()


def test_quick_bounds_do_not_change_which_texts_are_alike(monkeypatch):
    texts = ["on the shelf 1 you see a mug", "on the shelf 2 you see a mug", "drawer 1 is closed"]
    with_bounds = matching.lead_by_text(texts, 0.9)
    monkeypatch.setattr(
        matching,
        "_alike",
        lambda one, two, least: matching.SequenceMatcher(None, one, two).ratio() >= least,
    )
    np.testing.assert_array_equal(with_bounds, matching.lead_by_text(texts, 0.9))
    assert with_bounds.tolist() == [0, 0, 2]


@pytest.mark.parametrize("weighting", ["episodes", "steps"])
def test_the_released_weighting_counts_an_episode_as_often_as_it_has_steps(weighting):
    batch = single_steps(
        [0.0] * 4,
        episode=[0, 0, 0, 1],
        step=[0, 1, 2, 0],
        reward=np.array([0.0, 0.0, 1.0, 0.0]),
        state=list("abcd"),
    )
    out = credit.assign("gigpo", **batch, norm="mean", weighting=weighting)
    mean = {"episodes": 1 / 2, "steps": 3 / 4}[weighting]
    np.testing.assert_allclose(out.episode_advantage, [1 - mean] * 3 + [-mean])

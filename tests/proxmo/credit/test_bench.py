"""The benchmark of credit assignment."""

import numpy as np

from proxmo import credit
from proxmo.credit.bench import dense_soft_advantage, synthetic_batch, time_methods


def test_the_synthetic_batch_has_the_asked_size_and_share_of_distinct_states():
    batch = synthetic_batch(np.random.default_rng(0), groups=3, episodes=2, steps=10, words=5)
    assert len(batch["state"]) == 60
    assert len(set(batch["state"])) == 30
    assert len(batch["state"][0].split()) == 5


def test_the_dense_version_computes_the_same_baseline_of_one_group():
    # One group: document frequencies over rows and over distinct states agree when all differ.
    batch = synthetic_batch(np.random.default_rng(0), groups=1, episodes=2, steps=20, distinct=1.0)
    out = credit.assign("proxmo", **batch)
    dense = dense_soft_advantage(batch["state"], batch["group"], out.step_return)
    np.testing.assert_allclose(out.step_advantage, dense, atol=1e-5)


def test_both_methods_are_timed_against_their_dense_version():
    batch = synthetic_batch(np.random.default_rng(0), groups=2, episodes=2, steps=5)
    timings = time_methods(batch, repeats=1)
    assert [one.method for one in timings] == ["gigpo", "proxmo"]
    assert all(one.rows == 20 and one.seconds > 0 and one.ratio > 0 for one in timings)
    (alone,) = time_methods(batch, ["grpo"], repeats=1)
    assert alone.ratio is None

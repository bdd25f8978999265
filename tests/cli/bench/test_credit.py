"""The benchmark of credit assignment."""

import sys

import numpy as np
import pytest

from proxmo import credit
from proxmo_cli.bench import credit as bench
from proxmo_cli.bench.credit import (
    measure_scale,
    plain_exact_advantage,
    plain_soft_advantage,
    synthetic_batch,
    time_methods,
)


@pytest.fixture
def batch():
    return synthetic_batch(np.random.default_rng(0), groups=3, episodes=4, steps=10)


def test_the_synthetic_batch_has_the_asked_size_and_share_of_distinct_states():
    batch = synthetic_batch(np.random.default_rng(0), groups=3, episodes=2, steps=10, words=5)
    assert len(batch["state"]) == 60
    assert len(set(batch["state"])) == 30
    assert len(batch["state"][0].split()) == 5


def test_the_plain_versions_compute_what_is_timed(batch):
    returns = credit.assign("grpo", **batch).step_return
    columns = (batch["state"], batch["group"], returns)
    soft = credit.assign("proxmo-released", **batch).step_advantage
    np.testing.assert_allclose(plain_soft_advantage(*columns), soft, atol=1e-5)
    exact = credit.assign("gigpo", **batch).step_advantage
    np.testing.assert_allclose(plain_exact_advantage(*columns), exact, atol=1e-5)


def test_both_methods_are_timed_against_their_plain_version(batch, monkeypatch):
    plain = []
    for name in ("exact", "soft"):
        monkeypatch.setattr(bench, f"plain_{name}_advantage", lambda *_, it=name: plain.append(it))
    timings = time_methods(batch, repeats=1)
    assert [one.method for one in timings] == ["gigpo", "proxmo"]
    for one in timings:
        assert one.rows == 120
        assert one.ratio == pytest.approx(one.plain_seconds / one.seconds)
    assert plain == ["exact"] * 2 + ["soft"] * 2  # The first of each is not counted.


def test_the_growth_is_measured_in_a_process_of_its_own():
    found = measure_scale(800, top_k=8)
    assert (found.rows, found.top_k, found.recall) == (800, 8, 1.0)
    assert found.dense_mb == pytest.approx(2.56)
    assert found.seconds > 0
    assert 10 < found.peak_mb < 1000 or not sys.platform.startswith("linux")


@pytest.mark.slow
def test_a_hundred_thousand_states_take_less_than_a_gigabyte():
    # 17 s on two quiet cores; the dense matrix would take 40 GB.
    found = measure_scale(100_000)
    assert found.peak_mb < 1000
    assert found.recall > 0.7

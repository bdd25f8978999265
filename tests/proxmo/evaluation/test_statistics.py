import math

import numpy as np
import pytest

from proxmo.evaluation.statistics import Proportion, bootstrap_interval, wilson_interval

Z95 = 1.959963984540054  # the 97.5 % quantile of the standard normal distribution


@pytest.mark.parametrize(
    ("wins", "n", "low", "high"),
    [
        # The four examples of R. G. Newcombe, Statistics in Medicine 17 (1998) 857-872, table I,
        # method 3 (score without continuity correction), to its four decimals.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_agrees_with_published_intervals(wins, n, low, high):
    assert wilson_interval(wins, n) == pytest.approx((low, high), abs=5e-5)


def test_no_win_and_only_wins_have_a_closed_form():
    # p = 0: (z^2/2n + z sqrt(z^2/4n^2)) / (1 + z^2/n) = z^2 / (n + z^2), here 3.8415 / 13.8415.
    bound = Z95**2 / (10 + Z95**2)
    assert bound == pytest.approx(0.277533, abs=1e-6)
    assert wilson_interval(0, 10) == (0.0, pytest.approx(bound, rel=1e-12))
    assert wilson_interval(10, 10) == (pytest.approx(1 - bound, rel=1e-12), 1.0)


@pytest.mark.parametrize("wins", [1, 3, 7, 49, 95])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_both_ends_are_the_rates_whose_score_test_just_rejects(wins, confidence):
    # Wilson's ends are the solutions p of |wins/n - p| = z sqrt(p (1 - p) / n).
    from statistics import NormalDist

    n, z = 96, NormalDist().inv_cdf((1 + confidence) / 2)
    for end in wilson_interval(wins, n, confidence):
        assert abs(wins / n - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), rel=1e-9)


def test_intervals_mirror_hold_their_rate_and_stay_between_0_and_1():
    for n in (1, 2, 8, 140):
        for wins in range(n + 1):
            low, high = wilson_interval(wins, n)
            assert 0.0 <= low <= wins / n <= high <= 1.0
            assert low < high
            mirrored = wilson_interval(n - wins, n)
            assert (low, high) == pytest.approx((1 - mirrored[1], 1 - mirrored[0]), abs=1e-12)


def test_no_episode_means_nothing_is_known():
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("wins", "n"), [(-1, 3), (4, 3), (1, 0), (0, -1)])
def test_impossible_counts_are_refused(wins, n):
    with pytest.raises(ValueError, match="expected 0 <= wins <= n"):
        wilson_interval(wins, n)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, -0.1, math.nan])
def test_a_confidence_outside_0_to_1_is_refused(confidence):
    with pytest.raises(ValueError, match="expected a number between 0 and 1"):
        wilson_interval(1, 3, confidence)
    with pytest.raises(ValueError, match="expected a number between 0 and 1"):
        bootstrap_interval([1.0, 2.0], np.random.default_rng(0), confidence)


def test_a_proportion_reads_as_rate_interval_and_counts():
    # 5/8, z^2 = 3.84146: centre (0.625 + 0.240091) / 1.480182 = 0.584449; half width
    # 1.959964 sqrt(0.234375/8 + 3.84146/256) / 1.480182 = 0.278707.
    assert Proportion(5, 8).interval() == pytest.approx((0.305742, 0.863156), abs=1e-6)
    assert str(Proportion(5, 8)) == "62.5 % [30.6, 86.3] (5/8)"
    assert Proportion(5, 8).rate == 0.625
    assert math.isnan(Proportion(0, 0).rate)
    assert str(Proportion(0, 0)) == "- [0.0, 100.0] (0/0)"


def test_bootstrap_of_a_mean_has_the_width_theory_says():
    # For many values the bootstrap mean is normal with deviation sqrt(variance / n): here the
    # variance of 0..99 is (100^2 - 1) / 12 = 833.25, so 49.5 -+ 1.96 sqrt(833.25 / 100) = 5.66.
    low, high = bootstrap_interval(np.arange(100.0), np.random.default_rng(0))
    half = Z95 * math.sqrt(833.25 / 100)
    assert low == pytest.approx(49.5 - half, abs=0.3)
    assert high == pytest.approx(49.5 + half, abs=0.3)


def test_bootstrap_of_two_values_is_exact():
    # Means of two draws from {0, 1}: 0, 1/2, 1 with chances 1/4, 1/2, 1/4. Quantiles at 40 % of
    # coverage (30 %, 70 %) are 1/2 both; at 60 % (20 %, 80 %) they are 0 and 1.
    rng = np.random.default_rng(0)
    assert bootstrap_interval([0.0, 1.0], rng, confidence=0.4) == (0.5, 0.5)
    assert bootstrap_interval([0.0, 1.0], rng, confidence=0.6) == (0.0, 1.0)


def test_bootstrap_is_determined_by_the_generator_that_is_passed():
    values = np.random.default_rng(1).normal(size=40)
    first = bootstrap_interval(values, np.random.default_rng(7))
    assert bootstrap_interval(values, np.random.default_rng(7)) == first
    assert bootstrap_interval(values, np.random.default_rng(8)) != first


def test_bootstrap_in_several_chunks_draws_the_same_resamples_as_in_one(monkeypatch):
    values = np.random.default_rng(1).normal(size=5)
    whole = bootstrap_interval(values, np.random.default_rng(0), resamples=99)
    # Two rows at a time, one in the last chunk, out of the same stream of draws.
    monkeypatch.setattr("proxmo.evaluation.statistics._CHUNK_DRAWS", 11)
    assert bootstrap_interval(values, np.random.default_rng(0), resamples=99) == whole


def test_bootstrap_edges_are_one_value_and_none():
    rng = np.random.default_rng(0)
    assert bootstrap_interval([0.25], rng) == (0.25, 0.25)
    assert bootstrap_interval([], rng) == (-math.inf, math.inf)
    with pytest.raises(ValueError, match="finite numbers"):
        bootstrap_interval([0.0, math.nan], rng)
    with pytest.raises(ValueError, match="at least 1"):
        bootstrap_interval([0.0], rng, resamples=0)

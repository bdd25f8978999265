import math

import numpy as np
import pytest

from proxmo.evaluation.statistics import (
    bootstrap_interval,
    mcnemar,
    mean_interval,
    pass_at_k,
    wilson_interval,
)

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
def test_both_ends_are_the_rates_whose_score_test_just_rejects(wins):
    # Wilson's ends are the solutions p of |wins/n - p| = z sqrt(p (1 - p) / n).
    n = 96
    for end in wilson_interval(wins, n):
        assert abs(wins / n - end) == pytest.approx(Z95 * math.sqrt(end * (1 - end) / n), rel=1e-9)


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


# Two-sided 95 % points of Student's t, from the usual printed tables.
@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042), (120, 1.980)],
)
def test_the_interval_of_a_mean_uses_students_quantiles(freedom, quantile):
    # 0, 1 .. n - 1 have the unbiased variance n (n + 1) / 12; the half width is t sqrt(v / n).
    n = freedom + 1
    values = [float(i) for i in range(n)]
    centre, variance = freedom / 2, n * (n + 1) / 12
    low, high = mean_interval(values)
    assert (high - centre) / math.sqrt(variance / n) == pytest.approx(quantile, abs=6e-4)
    assert centre - low == pytest.approx(high - centre)


@pytest.mark.parametrize(
    ("n", "wins", "k", "expected"),
    [
        (5, 0, 3, 0.0),
        (5, 5, 1, 1.0),
        (5, 2, 1, 0.4),
        # 1 - C(3,2)/C(5,2) = 1 - 3/10; 1 - C(3,3)/C(5,3) = 1 - 1/10; fewer than k losses: 1.
        (5, 2, 2, 0.7),
        (5, 2, 3, 0.9),
        (5, 2, 4, 1.0),
    ],
)
def test_pass_at_k_is_one_minus_the_share_of_draws_without_a_win(n, wins, k, expected):
    assert pass_at_k(n, wins, k) == pytest.approx(expected)


def test_pass_at_k_is_unbiased():
    # The expectation over binomial wins of n = 6 attempts is 1 - (1 - p)^k.
    n, k, p = 6, 3, 0.3
    expected = sum(
        math.comb(n, w) * p**w * (1 - p) ** (n - w) * pass_at_k(n, w, k) for w in range(n + 1)
    )
    assert expected == pytest.approx(1 - (1 - p) ** k)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (0, 0, 1.0),
        (5, 5, 1.0),
        # 2 (C(6,0) + C(6,1)) / 2^6 = 14 / 64.
        (1, 5, 14 / 64),
        (0, 10, 2 / 1024),
        # scipy.stats.binomtest(9, 12, 0.5) gives 0.14599609375, binomtest(30, 40, 0.5) 0.0022214...
        (9, 3, 0.14599609375),
        (30, 10, 0.0022214337732293643),
    ],
)
def test_mcnemar_is_the_exact_binomial_test_of_the_discordant_pairs(first, second, expected):
    assert mcnemar(first, second) == pytest.approx(expected, rel=1e-12)
    assert mcnemar(second, first) == mcnemar(first, second)


def test_the_bootstrap_interval_of_many_values_is_that_of_the_normal_distribution():
    values = np.random.default_rng(1).normal(size=400)
    low, high = bootstrap_interval(values, np.random.default_rng(0))
    half = Z95 * values.std() / math.sqrt(400)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.01)
    assert (low, high) == bootstrap_interval(values, np.random.default_rng(0))


def test_the_bootstrap_interval_of_one_value_is_that_value():
    assert bootstrap_interval([0.25], np.random.default_rng(0)) == (0.25, 0.25)


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        *((wilson_interval, a, "expected 0 <= wins") for a in [(-1, 3), (4, 3), (1, 0), (0, -1)]),
        *((pass_at_k, a, "wins in") for a in [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)]),
        (mean_interval, ([0.5],), "expected at least 2"),
        (bootstrap_interval, ([], np.random.default_rng(0)), "got no values"),
    ],
)
def test_impossible_counts_and_too_few_values_are_refused(function, arguments, said):
    with pytest.raises(ValueError, match=said):
        function(*arguments)

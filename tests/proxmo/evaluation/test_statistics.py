import math

import pytest

from proxmo.evaluation.statistics import wilson_interval

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

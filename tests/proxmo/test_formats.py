"""Numbers as a reader wants them."""

from __future__ import annotations

import pytest

from proxmo.formats import count, duration, interval, percent, sparkline


def test_shares_and_intervals_are_percent():
    assert percent(0.5625) == "56.2 %"
    assert interval(0.471, 0.6489) == "[47.1, 64.9]"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.6, "1:00"), (425, "7:05"), (4025, "1:07:05"), (-3, "0:00")],
)
def test_durations_show_hours_only_when_there_are_some(seconds: float, text: str):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.4, "0"), (312.4, "312"), (4712, "4.7 k"), (12345, "12 k"), (3.14e6, "3.1 M")],
)
def test_large_numbers_are_short(number: float, text: str):
    assert count(number) == text


def test_a_sparkline_rises_with_its_values():
    assert sparkline([0.0, 0.5, 1.0], low=0, high=1) == "▁▅█"
    assert sparkline([3.0, 2.0, 1.0]) == "█▅▁"


def test_a_sparkline_of_equal_values_is_flat_and_of_none_is_empty():
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert sparkline([]) == ""


def test_a_long_series_is_drawn_as_means_and_values_outside_are_clamped():
    rising = [index / 1000 for index in range(1000)]
    line = sparkline(rising, width=8, low=0, high=1)
    assert line == "".join(sorted(line)) and len(line) == 8
    assert sparkline([-1.0, 2.0], low=0, high=1) == "▁█"

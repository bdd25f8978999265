"""Formats numbers for people: shares, intervals, durations, sparklines."""

from __future__ import annotations

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"


def percent(share: float) -> str:
    """Write a share of 1 as percent: 0.5625 as `56.2 %`."""
    return f"{100 * share:.1f} %"


def interval(low: float, high: float) -> str:
    """Write a 95 % interval of a share in percent: `[47.1, 64.9]`."""
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def duration(seconds: float) -> str:
    """Write a time as `7:05` or, from an hour on, `1:07:05`."""
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def count(number: float) -> str:
    """Write a large number shortly: 312, 4.7 k, 12 k, 3.1 M."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.{1 if number < 10 * size else 0}f}{unit}"
    return f"{number:.0f}"


def sparkline(
    values: Sequence[float],
    width: int = 24,
    low: float | None = None,
    high: float | None = None,
) -> str:
    """Draw a series in one line of at most `width` characters, from `low` to `high`.

    A longer series is drawn as means of equal parts. Without `low` and `high` the range is that of
    the values drawn.
    """
    if len(values) > width:
        edges = [round(part * len(values) / width) for part in range(width + 1)]
        parts = [values[start:end] for start, end in zip(edges, edges[1:], strict=False)]
        values = [sum(part) / len(part) for part in parts]
    if not values:
        return ""
    bottom = min(values) if low is None else low
    span = (max(values) if high is None else high) - bottom
    if span <= 0:
        return _BARS[0] * len(values)
    top = len(_BARS) - 1
    return "".join(_BARS[min(top, max(0, round((v - bottom) / span * top)))] for v in values)

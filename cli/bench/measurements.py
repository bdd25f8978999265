"""Measurements are dataclasses whose fields say how a table shows them.

    @dataclass(frozen=True, slots=True)
    class Measurement:
        seconds: Annotated[float, Column("time", "{:.1f} s")]  # median of all runs

As JSON a measurement has all fields, with their full precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

import click

from ..display import show_table


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a field, and how its value is written: a format or a function."""

    heading: str
    form: str | Callable[[Any], str] = "{}"

    def text(self, value: Any) -> str:
        """Write a value."""
        return self.form.format(value) if isinstance(self.form, str) else self.form(value)


def cells(measurement: object) -> dict[str, str]:
    """Return the text under each heading; fields without a column are left out."""
    hints = get_type_hints(type(measurement), include_extras=True)
    return {
        column.heading: column.text(getattr(measurement, name))
        for name, hint in hints.items()
        for column in getattr(hint, "__metadata__", ())
    }


def show_measurements(found: Sequence[object]) -> None:
    """Print a table with a row for each measurement; nothing for none."""
    rows = [cells(one) for one in found]
    if rows:
        show_table(tuple(rows[0]), [tuple(row.values()) for row in rows])


def duration(seconds: float) -> str:
    """Write a short time in milliseconds and a longer one in seconds."""
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


class Sizes(click.ParamType):
    """Whole numbers above 0 with commas between, or none; `1e6` is one too."""

    name = "sizes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the numbers, in the order given."""
        try:
            sizes = tuple(int(float(one)) for one in str(value).split(",") if one)
        except (ValueError, OverflowError):
            sizes = (0,)
        if any(size < 1 for size in sizes):
            self.fail(f"{value!r}; expected numbers like 1000,100000", param, ctx)
        return sizes

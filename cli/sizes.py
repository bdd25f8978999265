"""An option that takes several sizes."""

from __future__ import annotations

import click


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

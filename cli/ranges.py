"""Numbers with bounds, for flags."""

from __future__ import annotations

import math
from typing import Any

import click


class FloatRange(click.FloatRange):
    """As click's own, which lets nan through: no comparison with it is ever true."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; fail for what is none or out of the bounds."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number

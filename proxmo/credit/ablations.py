"""The two ablations of ProxMO (arXiv 2602.19225), by names of their own.

`proxmo` takes either part away by an option; a name makes it one flag: `--method proxmo-no-...`.
"""

from __future__ import annotations

from typing import Any

from proxmo.credit.proxmo import proxmo
from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows

_SWITCHES = {"modulation", "aggregation"}


@method("proxmo-no-modulation", extends=proxmo, without=_SWITCHES | {"alpha", "beta"})
def proxmo_no_modulation(rows: Rows, **options: Any) -> Parts:
    """A = Z + omega (G_t - B_t): `proxmo` where every episode weighs 1; its options."""
    return proxmo(rows, modulation=False, **options)


@method(
    "proxmo-no-aggregation",
    extends=proxmo,
    without=_SWITCHES | {"tau", "omega", "embedding", "history", "scope", "exclude", "top_k"},
)
def proxmo_no_aggregation(rows: Rows, **options: Any) -> Parts:
    """A = w(R, p) Z: `proxmo` without a step part, so that states do not matter."""
    return proxmo(rows, aggregation=False, **options)

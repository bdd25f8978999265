"""Credit assignment as pure functions on flat arrays: which step of which episode deserves what."""

from proxmo.credit.assign import Credit, assign
from proxmo.credit.registry import Neighbour, Parts, method, method_names, method_options
from proxmo.credit.rows import Rows

__all__ = [
    "Credit", "Neighbour", "Parts", "Rows", "assign", "method", "method_names", "method_options",
]  # fmt: skip

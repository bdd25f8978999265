"""Credit assignment as pure functions on flat arrays: which step of which episode earned what.

    credit = assign("proxmo", group=..., episode=..., step=..., reward=..., success=..., state=...)
    credit.advantage

A method of your own is a function of Rows that returns Parts, registered with `@method("name")` or
referred to as "module:name".
"""

from proxmo.credit.assign import Credit, assign
from proxmo.credit.explain import Explanation
from proxmo.credit.proximity import ProximityIndex
from proxmo.credit.registry import Neighbour, Parts, method, method_names, method_options
from proxmo.credit.requirements import (
    credit_options,
    needs_policy,
    needs_values,
    try_method,
)
from proxmo.credit.rows import Rows

__all__ = [
    "Credit",
    "Explanation",
    "Neighbour",
    "Parts",
    "ProximityIndex",
    "Rows",
    "assign",
    "credit_options",
    "method",
    "method_names",
    "method_options",
    "needs_policy",
    "needs_values",
    "try_method",
]

"""Credit quality: how close a method's advantages are to the true ones of a fixed policy.

`measure` plays episodes and estimates the true advantage of every step by Monte Carlo; `compare`
scores methods against it.
"""

from proxmo.evaluation.credit_quality.comparison import (
    Comparison,
    Score,
    check_methods,
    compare,
    split_names,
)
from proxmo.evaluation.credit_quality.measurement import Settings, measure
from proxmo.evaluation.credit_quality.truth import Truth

__all__ = [
    "Comparison",
    "Score",
    "Settings",
    "Truth",
    "check_methods",
    "compare",
    "measure",
    "split_names",
]

"""Small integers for hashable values: the one loop over rows, at the speed of a dict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from itertools import count
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=Hashable)


def number(values: Iterable[T]) -> tuple[NDArray[np.int64], list[T]]:
    """(N,) number of each value, from 0 in order of first appearance, and the distinct values."""
    numbers: defaultdict[T, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(numbers.__getitem__, values), np.int64)
    return codes, list(numbers)

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.webshop_server.recorded import unit_cases
from webshop_server.data.prices import parse_price, purchase_price
from webshop_server.errors import CatalogueError


def test_price_texts_are_read_as_recorded(shared: Path):
    for case in unit_cases(shared, "pricing"):
        if "exception" in case:
            with pytest.raises(CatalogueError, match="cannot be read; expected a text such as"):
                parse_price(case["input"])
            continue
        pricing, tag = parse_price(case["input"])
        expected = case["expected"]
        assert (list(pricing), tag) == (expected["pricing"], expected["price_tag"])
        assert purchase_price(pricing, random.Random(1)) == expected["sampled_price"]


def test_only_a_range_draws_a_number():
    rng = random.Random(0)
    state = rng.getstate()
    assert purchase_price((7.0,), rng) == 7.0
    assert rng.getstate() == state
    assert 3.0 <= purchase_price((4.0, 3.0), rng) <= 4.0
    assert rng.getstate() != state

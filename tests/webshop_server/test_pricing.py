from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from webshop_server.errors import CatalogueError
from webshop_server.pricing import (
    NO_LIMIT,
    draw_limit,
    limit_candidates,
    limit_text,
    parse_price,
    purchase_price,
)


def recorded(shared: Path, function: str) -> list[dict[str, Any]]:
    cases = (shared / "webshop" / "tables" / "unit_cases.jsonl").read_text().splitlines()
    found = [case for case in map(json.loads, cases) if case["fn"] == function]
    assert found
    return found


def test_price_texts_are_read_as_recorded(shared: Path):
    for case in recorded(shared, "pricing"):
        if "exception" in case:
            with pytest.raises(CatalogueError, match="cannot be read; expected a text such as"):
                parse_price(case["input"])
            continue
        pricing, tag = parse_price(case["input"])
        expected = case["expected"]
        assert (list(pricing), tag) == (expected["pricing"], expected["price_tag"])
        assert purchase_price(pricing, random.Random(1)) == expected["sampled_price"]


def test_limit_candidates_are_those_recorded(shared: Path):
    for case in recorded(shared, "price_upper_candidates"):
        assert list(limit_candidates(case["input"])) == case["expected"]


@pytest.mark.parametrize(
    ("text", "numbers", "tag"),
    [
        ("$1,299.50", (1299.5,), "$1299.5"),
        ("$27.00 - $33.98", (27.0, 33.98), "$27.0 to $33.98"),
        ("$44.99 to $33.98", (44.99, 33.98), "$44.99 to $33.98"),
        ("", (100.0,), "$100.0"),
    ],
)
def test_a_price_text_is_one_number_or_a_range(text: str, numbers: tuple[float, ...], tag: str):
    assert parse_price(text) == (numbers, tag)


def test_only_a_range_draws_a_number():
    rng = random.Random(0)
    state = rng.getstate()
    assert purchase_price((7.0,), rng) == 7.0
    assert rng.getstate() == state
    assert 3.0 <= purchase_price((4.0, 3.0), rng) <= 4.0
    assert rng.getstate() != state


def test_the_lowest_candidate_is_never_the_limit():
    rng = random.Random(0)
    assert {draw_limit(12.0, rng) for _ in range(200)} == {30.0, 40.0, 50.0}


def test_a_price_that_leaves_no_choice_has_no_limit_and_no_text():
    state = (rng := random.Random(0)).getstate()
    assert draw_limit(985.0, rng) == NO_LIMIT
    assert rng.getstate() == state
    assert limit_text(NO_LIMIT) == ""
    assert limit_text(60.0) == ", and price lower than 60.00 dollars"

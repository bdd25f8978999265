from __future__ import annotations

import random
from pathlib import Path

from tests.webshop_server.recorded import unit_cases
from webshop_server.rules.price_limits import NO_LIMIT, draw_limit, limit_candidates, limit_text


def test_limit_candidates_are_those_recorded(shared: Path):
    for case in unit_cases(shared, "price_upper_candidates"):
        assert list(limit_candidates(case["input"])) == case["expected"]


def test_the_lowest_candidate_is_never_the_limit():
    rng = random.Random(0)
    assert {draw_limit(12.0, rng) for _ in range(200)} == {30.0, 40.0, 50.0}


def test_a_price_that_leaves_no_choice_has_no_limit_and_no_text():
    state = (rng := random.Random(0)).getstate()
    assert draw_limit(985.0, rng) == NO_LIMIT
    assert rng.getstate() == state
    assert limit_text(NO_LIMIT) == ""
    assert limit_text(60.0) == ", and price lower than 60.00 dollars"

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.webshop_server.recorded import PRODUCT_FIELDS, lines, unit_cases
from tests.webshop_server.recorded import goal as recorded_goal
from webshop_server.data.products import Product
from webshop_server.errors import RewardError
from webshop_server.rules import nouns
from webshop_server.rules.matching import (
    COLOR_WORDS,
    _token_set_ratio,
    _words,
    alike,
    normalize_color,
)
from webshop_server.rules.records import Reward, ShoppingGoal
from webshop_server.rules.reward import attribute_matches, option_matches, score

PRICE = {"pricing": (1.0,), "price_tag": "$1.0", "purchase_price": 1.0}


def product(row: dict[str, Any]) -> Product:
    """A product of the reward table."""
    known = {ours: row[theirs] for theirs, ours in PRODUCT_FIELDS.items() if theirs in row}
    texts = {name: tuple(known[name]) for name in ("bullets", "attributes")}
    return Product(**{**known, **texts, **PRICE})


def goal(row: dict[str, Any]) -> ShoppingGoal:
    return recorded_goal(row, "table/0", "table")


def recorded_nouns(case: dict[str, Any]) -> nouns.NounFinder:
    """The nouns the original found: those of the goal are asked for first."""
    wanted = case["goal_nouns"]
    repeats = case["goal_noun_count_with_repeats"] - len(wanted)
    answers = iter([wanted + wanted[:1] * repeats, case["purchased_nouns"]])
    return lambda asin, title: next(answers)


def scarf(**changes: Any) -> dict[str, Any]:
    whole = {
        "asin": "B000000001",
        "query": "scarves",
        "product_category": "Clothing › Women › Scarves",
        "category": "fashion",
        "name": "Blue Wool Scarf",
        "Title": "Blue Wool Scarf",
        "Attributes": ["soft wool"],
        "BulletPoints": ["Hand wash"],
        "Description": "",
        "attributes": ["soft wool"],
        "goal_options": {"color": "black137"},
        "price_upper": 30.0,
        "instruction_text": "a scarf",
    }
    return whole | changes


def cases(shared: Path) -> list[dict[str, Any]]:
    found = list(lines(shared / "webshop" / "tables" / "reward_cases.jsonl.gz"))
    assert len(found) > 400
    return found


def test_rewards_and_their_parts_are_those_recorded(shared: Path):
    for case in cases(shared):
        bought, asked = product(case["product"]), goal(case["goal"])
        arguments = (bought, asked, case["options"], case["price"])
        if "exception" in case:
            with pytest.raises(RewardError):
                score(*arguments, profile="original", nouns=recorded_nouns(case))
            continue
        reward = score(*arguments, profile="original", nouns=recorded_nouns(case))
        assert reward.total == case["reward"], case["id"]
        assert reward.info == case["info"], case["id"]
        assert list(reward.info) == list(case["info"])
        assert reward.type_factor == case["type_reward"]["r_type"]
        attributes = attribute_matches(bought, asked.attributes)
        assert [reward.attribute, attributes] == case["attribute_reward"]
        options = option_matches(case["options"].values(), asked.options, "original")
        assert [reward.option, options] == case["option_reward"]


def test_fuzzy_scores_are_those_recorded(shared: Path):
    table = shared / "webshop" / "tables" / "token_set_ratio.jsonl"
    for case in map(json.loads, table.read_text().splitlines()):
        first, second = case["purchased"], case["goal"]
        second = str(tuple(second)) if isinstance(second, list) else second
        assert _token_set_ratio(_words(first), _words(second)) == case["difflib_score"]
        assert alike(first, second) == (case["difflib_score"] > 85)


def test_colours_are_found_as_recorded(shared: Path):
    tables = shared / "webshop" / "tables"
    assert list(COLOR_WORDS) == json.loads((tables / "color_words.json").read_text())["words"]
    for case in unit_cases(shared, "normalize_color"):
        assert normalize_color(case["input"]) == case["expected"]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("large", "x-large", True),  # a subset
        ("Soft  Wool!", "wool soft", True),
        ("wool", "cotton", False),
        ("", "", False),
        ("☞", "☞", False),  # no word
        ("caf\u00e9", "caf", True),  # Latin letters beyond ASCII are dropped
        ("日本", "日本", True),  # others are not
    ],
)
def test_texts_are_alike_by_their_words(first: str, second: str, same: bool):
    assert alike(first, second) is same


def test_a_colour_with_a_number_counts_in_clean_only():
    bought, asked = product(scarf()), goal(scarf())
    chosen = {"color": "black137"}
    assert score(bought, asked, chosen, 20.0, profile="original").total == 2 / 3
    assert score(bought, asked, chosen, 20.0, profile="clean").total == 1.0
    assert score(bought, asked, {"color": "white"}, 20.0).option == 0.0
    assert score(bought, asked, {}, 20.0).option == 0.0


@pytest.mark.parametrize("value", ["☞", "日本", "black137", "x-large", "8 | 9"])
def test_the_value_asked_for_always_matches_in_clean(value: str):
    asked = goal(scarf(goal_options={"size": value}))
    assert score(product(scarf()), asked, {"size": value}, 30.0).total == 1.0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("10x50 hd binoculars", "8x40 hd binoculars"),  # a ratio of 86, the other way 84
        ("10 ounce (pack of 12)", "240 ounce (pack of 1)"),
        ("black137", "black"),
        ("large", "x-large"),
    ],
)
def test_in_clean_it_does_not_matter_which_of_two_options_was_asked_for(first: str, second: str):
    there = option_matches([first], [("size", second)], "clean")
    assert there == option_matches([second], [("size", first)], "clean")


def test_the_product_asked_for_is_of_its_own_type_in_clean():
    # One noun in eleven: the original takes the very same title for another type.
    title = " ".join(["wool"] * 11)
    bought, asked = product(scarf(Title=title)), goal(scarf(name=title, goal_options={}))
    assert score(bought, asked, {}, 20.0, profile="original").type_factor == 0.1
    assert score(bought, asked, {}, 20.0).total == 1.0


def test_a_price_at_the_limit_is_within_it():
    bought, asked = product(scarf()), goal(scarf(goal_options={}))
    assert score(bought, asked, {}, 30.0).price is True
    reward = score(bought, asked, {}, 30.01)
    assert reward == Reward(0.5, 1.0, 1.0, None, False, reward.info)
    assert "r_option" not in reward.info


def test_a_goal_without_attributes_is_possible_in_clean_only():
    asked = goal(scarf(attributes=[]))
    reward = score(product(scarf()), asked, {"color": "black137"}, 20.0)
    assert (reward.total, reward.attribute) == (1.0, 1.0)
    with pytest.raises(RewardError, match="goal table/0 asks for no attributes; expected at least"):
        score(product(scarf()), asked, {}, 20.0, profile="original")


def test_a_goal_without_a_positive_limit_is_an_error():
    with pytest.raises(RewardError, match="price limit 0; expected more than 0"):
        score(product(scarf()), goal(scarf(price_upper=0)), {}, 20.0)

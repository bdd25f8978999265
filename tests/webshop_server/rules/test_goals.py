from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from tests.webshop_server.recorded import goal as recorded_goal
from tests.webshop_server.recorded import lines, unit_cases
from tests.webshop_server.rows import row, wish, write
from webshop_server.data.catalogue import Catalogue
from webshop_server.data.raw import read_catalogue
from webshop_server.errors import CatalogueError, UnknownGoalError
from webshop_server.rules.goal_rows import NO_LIMIT, draw_limit, limit_candidates
from webshop_server.rules.goals import Goals
from webshop_server.rules.records import ShoppingGoal
from webshop_server.rules.reward import option_matches, score

KINDS = ("synthetic", "human")


def real(shared: Path, name: str = "real1000") -> Catalogue:
    return read_catalogue(shared / "webshop" / "data" / name)


def best(catalogue: Catalogue, goal: ShoppingGoal) -> float:
    """What buying exactly what a synthetic goal asks for scores."""
    product = catalogue.get(goal.asin)
    options = dict(goal.options)
    return score(product, goal, options, product.purchase_price, profile="clean").total


@pytest.mark.parametrize("name", ["real1000", "fict300"])
@pytest.mark.parametrize("kind", KINDS)
def test_goals_come_in_the_recorded_order(name: str, kind: str, shared: Path):
    data = shared / "webshop" / "data" / name
    goals = Goals.build(read_catalogue(data), kind)
    recorded = list(lines(data / f"goals_{kind}_seed0.jsonl.gz"))
    assert len(goals) == len(recorded)
    for number, expected in enumerate(recorded):
        assert expected["index"] == number
        assert goals[number] == recorded_goal(expected, f"{kind}/{number:07d}", kind)


def test_the_original_splits_by_number(shared: Path):
    goals = Goals.build(real(shared))
    assert goals.split("test") == range(500)
    assert goals.split("validation") == range(500, 1500)
    assert goals.split("train") == range(1500, 6910)
    few = Goals.build(real(shared), "human")
    assert [len(few.split(name)) for name in ("test", "validation", "train")] == [13, 0, 0]


def test_some_goals_of_the_original_cannot_be_met_and_they_are_those_recorded(shared: Path):
    catalogue = real(shared)
    table = json.loads(
        (shared / "webshop" / "tables" / "unsolvable_goals_real1000.json").read_text()
    )
    unmet = [
        number
        for number, goal in enumerate(Goals.build(catalogue))
        if option_matches([value for _, value in goal.options], goal.options, "original")
        < len(goal.options)
    ]
    assert unmet == table["indices"]


@pytest.mark.parametrize("name", ["real1000", "fict300"])
def test_every_clean_goal_can_be_met_and_splits_share_no_product(name: str, shared: Path):
    catalogue = real(shared, name)
    goals = Goals.build(catalogue, "synthetic", "clean")
    splits = [goals.split(split) for split in ("train", "validation", "test")]
    kept = [number for split in splits for number in split]
    assert len(kept) == len(set(kept)) > 0.95 * len(goals)
    products = [{goals[number].asin for number in split} for split in splits]
    assert all(products) and len(set().union(*products)) == sum(map(len, products))
    assert 0.7 < len(products[0]) / sum(map(len, products)) < 0.9
    assert {best(catalogue, goals[number]) for number in kept} == {1.0}


def test_a_product_stays_in_its_clean_split_when_the_catalogue_grows(shared: Path):
    data = shared / "webshop" / "data" / "real1000"

    def tested(limit: int) -> set[str]:
        goals = Goals.build(read_catalogue(data, limit=limit), "synthetic", "clean")
        return {goals[number].asin for number in goals.split("test")}

    assert tested(300) < tested(1000)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"size": ["s", "m"]}, 2),
        ({"size": ["s", " "]}, 1),  # nothing to click
        ({"size": ["s", "Reviews"]}, 2),  # a button has that name: the label is "size: reviews"
        ({"color": ["gold", "red"], "trim": ["gold", "tan"]}, 4),  # "color: gold", "trim: gold"
    ],
)
def test_clean_leaves_out_only_the_choices_that_a_click_cannot_make(
    options: dict[str, list[str]], kept: int, tmp_path: Path
):
    given = {name: [{"value": value} for value in values] for name, values in options.items()}
    catalogue = read_catalogue(write(tmp_path, [row(customization_options=given)]))
    goals = Goals.build(catalogue, "synthetic", "clean")
    names = ("train", "validation", "test")
    numbers = [number for name in names for number in goals.split(name)]
    assert len(numbers) == kept
    assert {best(catalogue, goals[number]) for number in numbers} == {1.0}


@pytest.mark.parametrize(
    ("asked", "attribute", "met"),
    [
        (["navy", "large"], "soft wool", True),
        (["royal navy"], "soft wool", True),  # both are navy
        (["large", "small"], "soft wool", False),  # of one option
        (["green"], "soft wool", False),
        ([], "waterproof", False),
    ],
)
def test_clean_keeps_human_goals_that_some_choice_meets(
    asked: list[str], attribute: str, met: bool, tmp_path: Path
):
    human = {"instruction": "x", "instruction_attributes": [attribute]}
    human["instruction_options"] = asked
    catalogue = read_catalogue(write(tmp_path, [row()], human={"B000000001": [human]}))
    goals = Goals.build(catalogue, "human", "clean")
    assert len(goals) == 1
    assert sum(len(goals.split(name)) for name in ("train", "validation", "test")) == met


def test_goals_are_found_by_number_and_id(tmp_path: Path):
    goals = Goals.build(read_catalogue(write(tmp_path, [row(), row("B000000002")])))
    assert len(goals) == 4
    assert goals[np.int64(3)] == goals[-1] == goals.get("synthetic/0000003")
    assert goals[1:3] == [goals[1], goals[2]]
    with pytest.raises(IndexError, match="no synthetic goal 4; there are 4, from 0"):
        goals[4]
    for unknown in ("synthetic/0000004", "human/0000000", "synthetic/1", "synthetic/²", ""):
        with pytest.raises(UnknownGoalError, match="there are: synthetic/0000000 to"):
            goals.get(unknown)
    with pytest.raises(UnknownGoalError, match="unknown split 'valid'; known: train, validation"):
        goals.split("valid")


def test_an_instruction_names_options_and_limit_and_a_human_one_loses_its_dots(tmp_path: Path):
    asked = {"B000000001": wish("soft wool"), "B000000002": wish() | {"instruction": "A scarf."}}
    human = {"B000000001": [{"instruction": "..a scarf. ", "instruction_attributes": ["wool"]}]}
    rows = [row(), row("B000000002", customization_options=None)]
    catalogue = read_catalogue(write(tmp_path, rows, asked, human))
    texts = {goal.instruction.partition(", and price")[0] for goal in Goals.build(catalogue)}
    start = "Find me a scarf of soft wool with color: navy | white, and size:"
    assert texts == {f"{start} large", f"{start} small", "A scarf."}
    (goal,) = Goals.build(catalogue, "human")
    assert goal.instruction.startswith("a scarf. , and price lower than ")


def test_options_without_end_are_an_error(tmp_path: Path):
    options = {f"o{n}": [{"value": str(i)} for i in range(50)] for n in range(8)}
    catalogue = read_catalogue(write(tmp_path, [row(customization_options=options)]))
    with pytest.raises(CatalogueError, match="product B000000001: its options make .* goals"):
        Goals.build(catalogue)


def test_limit_candidates_are_those_recorded(shared: Path):
    for case in unit_cases(shared, "price_upper_candidates"):
        assert list(limit_candidates(case["input"])) == case["expected"]


def test_the_lowest_candidate_is_never_the_limit_and_one_alone_is_no_choice():
    rng = random.Random(0)
    assert {draw_limit(12.0, rng) for _ in range(200)} == {30.0, 40.0, 50.0}
    state = rng.getstate()
    assert draw_limit(985.0, rng) == NO_LIMIT
    assert rng.getstate() == state

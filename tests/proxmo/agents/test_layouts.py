import pytest

from proxmo.agents.base import View
from proxmo.agents.layouts import LAYOUTS, clean_observation, shown_actions

TASK = "put a clean mug in cabinet."
FIRST = (
    "-= Welcome to TextWorld, ALFRED! =-\n\n"
    "You are in the middle of a room. Looking quickly around you, you see a bed 2, and a bed 1.\n\n"
    "Your task is to: put a clean mug in cabinet."
)
ROOM = "You are in the middle of a room. Looking quickly around you, you see a bed 2, and a bed 1."


def test_banner_and_task_announcement_go():
    assert clean_observation(FIRST, TASK).strip() == ROOM


@pytest.mark.parametrize(
    ("page", "cleaned"),
    [
        ("Shop [SEP] Instruction: [SEP] {} [SEP] Search", "Shop [SEP] Search"),
        ("Instruction: [SEP] {} [SEP] Back [SEP] Page 1", "Back [SEP] Page 1"),
        ("Shop [SEP] {} [SEP] Search", "Shop [SEP] Search"),
        ("Results: 50 [SEP] Instruction: [SEP] {}", "Results: 50 [SEP]"),
    ],
)
def test_the_task_goes_from_pages_whose_parts_are_marked(page, cleaned):
    task = "i need a red (xl) shirt, and price lower than 50.00 dollars"
    assert clean_observation(page.format(task), task).strip() == cleaned


def test_a_line_that_is_the_task_goes_and_its_neighbours_stay_apart():
    lines = clean_observation(f"A room.\n{TASK}\nA bed.", TASK).split("\n")
    assert (lines[0], lines[-1]) == ("A room.", "A bed.")


@pytest.mark.parametrize(
    ("observation", "task"),
    [
        ("You arrive at cabinet 1. The cabinet 1 is closed.", TASK),
        ("They asked you to put a clean mug in cabinet. You agree.", TASK),
        ("2 - 1 -= 1", TASK),
        ("", TASK),
        ("Seen: put it in desklamp 1", "put it in desk"),
        ("Note: this.", ""),
        ("Note: this.", "  "),
    ],
)
def test_what_does_not_announce_the_task_stays_as_it_is(observation, task):
    assert clean_observation(observation, task) == observation


def test_blank_lines_collapse_in_think_and_all_lines_in_terse():
    page = "\n one \n\n\n two  three\n"
    assert LAYOUTS["think"].tidy(page, TASK) == "one\ntwo  three"
    assert LAYOUTS["terse"].tidy(page, TASK) == "one two three"


@pytest.mark.parametrize("style", ["terse", "bare"])
def test_the_mark_between_the_texts_of_a_web_page_becomes_one_sign(style: str):
    assert LAYOUTS[style].tidy("Back [SEP] A1 [SEP] red pot", TASK) == "Back | A1 | red pot"
    assert LAYOUTS["think"].tidy("Back [SEP] A1", TASK) == "Back [SEP] A1"


def test_a_bare_prompt_offers_nothing_and_shows_page_and_task():
    offered = ("click[red]", "click[buy now]")
    assert shown_actions(offered, LAYOUTS["terse"]) == offered
    assert shown_actions(offered, LAYOUTS["bare"]) == ()
    view = View("buy a pot", (), 0, "red | Buy Now", ())
    assert LAYOUTS["bare"].render(view) == "now: red | Buy Now\ntask: buy a pot"

"""Shopping in the clean profile; the recorded sessions test the original one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.webshop_server.small import LAMP, PLAIN, shop, shopper
from webshop_server.data.catalogue import Catalogue
from webshop_server.data.products import Entry, Wish
from webshop_server.packing import search_index
from webshop_server.rules.goals import Goals
from webshop_server.rules.pages import PageKind
from webshop_server.rules.records import Profile, Split
from webshop_server.session import Session
from webshop_server.shop import Shop

SEARCH = "search[desk lamp]"
ITEM = f"click[{LAMP.asin.lower()}]"


def test_a_purchase_ends_the_clean_episode_for_good() -> None:
    session = shopper("clean", SEARCH, ITEM)
    bought = session.act("click[buy now]")
    assert bought.done and bought.score is not None and 0 < bought.reward == bought.score.total
    page = session.observe()
    for action in ("search[lamp]", "click[buy now]", "click[back to search]"):
        after = session.act(action)
        assert (after.reward, after.done, after.valid) == (0.0, True, False)
        assert after.complaint and session.observe() == page
    assert session.admissible == []


def test_a_clean_search_needs_a_search_bar() -> None:
    session = shopper("clean", SEARCH)
    refused = session.act("search[lamp]")
    assert not refused.valid and "back to search" in str(refused.complaint)
    assert shopper("original", SEARCH).act("search[lamp]").valid


@pytest.mark.parametrize("action", ["search[]", "search[ ]", "search[\n]"])
def test_an_empty_clean_search_changes_nothing(action: str) -> None:
    session = shopper("clean")
    outcome = session.act(action)
    assert not outcome.valid and "empty" in str(outcome.complaint)
    assert session.page.kind is PageKind.SEARCH


@pytest.mark.parametrize("profile", ["original", "clean"])
@pytest.mark.parametrize(
    "action", ["", "buy now", "click[fly]", "click[]", "lamp", "search", "x" * 100_000, "\0\ud800"]
)
def test_what_is_malformed_or_unknown_changes_nothing_and_is_told(
    profile: str, action: str
) -> None:
    session = shopper(profile, SEARCH)
    page = session.observe()
    outcome = session.act(action)
    assert not outcome.valid and outcome.reward == 0.0 and not outcome.done
    assert outcome.complaint and len(outcome.complaint) < 200
    assert session.observe() == page


@pytest.mark.parametrize("profile", ["original", "clean"])
@pytest.mark.parametrize(
    "query",
    [
        "lamp " * 2_000,
        'title:lamp AND (price:[1 TO 5] OR "desk lamp"~2) -x +y *:* lam? lam*',
        "<script>alert(1)</script> lamp",
        "\0\ud800\u202e 🙂 ½ lamp",
        "'\"; DROP TABLE products; -- {{7*7}} ${x} %s lamp",
        "[lamp]",
    ],
)
def test_any_query_is_only_words(profile: str, query: str) -> None:
    session = shopper(profile)
    assert session.act(f"search[{query}]").valid is (profile == "clean" or "[" not in query)
    if session.page.kind is PageKind.RESULTS:
        assert session.page.total > 0
    for mode in ("text", "text_rich", "url", "html"):
        assert session.observe(mode)


@pytest.mark.parametrize("word", ["<r>", "<a>", "<c>", "<q>"])
def test_reserved_words_have_no_power_in_the_clean_profile(word: str) -> None:
    assert shopper("clean", f"search[{word} zzz]").page.total == 0
    plain = shopper("clean", "search[mini lamp]").page.products
    assert shopper("clean", f"search[{word} mini lamp]").page.products == plain


def test_after_a_query_that_breaks_down_the_page_still_works() -> None:
    session = shopper("original", SEARCH, ITEM, "click[white]")
    page = session.observe("text_rich")
    assert not session.act("search[<c>]").valid and session.observe("text_rich") == page
    assert session.act("click[features]").valid and session.act("click[< prev]").valid
    assert not session.act("click[< prev]").valid  # it would search again
    assert session.act("click[buy now]").reward > 0


def test_random_products_follow_the_generator_that_is_passed() -> None:
    where = shop("original")

    def draw(seed: int) -> str:
        session = Session(where, where.goals[0], "0", np.random.default_rng(seed))
        session.act("search[<r>]")
        return session.observe()

    assert draw(1) == draw(1) != draw(2)
    assert shopper("original", "search[<r>]").page.total == 25


def test_every_listed_click_works_and_no_label_comes_twice() -> None:
    session = shopper("clean", SEARCH, ITEM)
    labels = [label for label, target in session.clickables.items() if target.option]
    assert labels == [
        "color: black",
        "white",
        "color: next >",
        "shade color: black",
        "red",
        "pack [2]",
        "[1]",
        "4 ounces",
        "style: reviews",
        "<b>bold</b>",
        'the "best"',
        "été",
    ]
    for label, (_, value, option) in list(session.clickables.items()):
        if option:
            assert session.act(f"click[{label}]").valid
            assert session.state.options[option] == value and value in LAMP.options[option]
    assert set(session.state.options) == set(LAMP.options)


def test_in_the_original_an_option_called_attributes_opens_the_tab_it_does_not_show() -> None:
    product = replace(PLAIN, options={"print": ("attributes", "plain")})
    stock = Catalogue([Entry(product, Wish("Find me a lamp", ("warm light",)))])
    profiles: tuple[Profile, ...] = ("original", "clean")
    kinds = {}
    for profile in profiles:
        goals = Goals.build(stock, "synthetic", profile)
        session = Session(Shop(stock, goals, search_index(stock), profile), goals[0])
        label = "attributes" if profile == "original" else "print: attributes"
        for action in (SEARCH, f"click[{product.asin}]", f"click[{label}]"):
            assert session.act(action).valid
        kinds[profile] = session.page.kind, session.state.options
    assert kinds["original"] == (PageKind.DETAIL, {})
    assert kinds["clean"] == (PageKind.ITEM, {"print": "attributes"})


def test_a_chosen_option_is_visible_in_the_clean_text_only() -> None:
    actions = (SEARCH, ITEM, "click[white]")
    before = shopper("clean", *actions[:-1]).observe()
    after = shopper("clean", *actions).observe()
    assert after == before.replace("color [SEP]", "color (chosen: white) [SEP]", 1) != before
    assert shopper("original", *actions).observe() == shopper("original", *actions[:-1]).observe()
    rich = shopper("clean", *actions).observe("text_rich")
    assert rich.startswith("You have clicked white.\n") and "[clicked button] white" in rich


def test_choosing_again_replaces_and_survives_a_look_at_the_details() -> None:
    session = shopper("clean", SEARCH, ITEM, "click[white]", "click[color: black]")
    for tab in ("description", "features", "reviews"):
        assert session.act(f"click[{tab}]").valid and session.act("click[< prev]").valid
    assert session.state.options == {"color": "black"}
    session.act("click[< prev]")
    assert session.page.kind is PageKind.RESULTS and session.state.options == {}


def test_clean_pages_of_results_end_where_the_results_do() -> None:
    session = shopper("clean", "search[lamp]")
    numbers = []
    while "next >" in session.clickables:
        session.act("click[next >]")
        numbers.append((session.page.number, len(session.page.products)))
    assert numbers == [(2, 10), (3, 5)]


def test_the_query_cannot_redirect_the_way_back_in_the_clean_profile() -> None:
    session = shopper(
        "clean", "search[search_results item_page desk lamp]", ITEM, "click[features]"
    )
    session.act("click[< prev]")
    assert session.page.kind is PageKind.ITEM


def test_blank_texts_leave_no_trace_in_the_clean_text() -> None:
    features = shopper("clean", SEARCH, ITEM, "click[features]").observe().split(" [SEP] ")
    assert features[-2:] == ["Warm light", "Small foot"]


def test_attributes_are_shown_on_request() -> None:
    where = shop("clean", show_attributes=True)
    session = Session(where, where.goals[0])
    for action in (SEARCH, ITEM, "click[attributes]"):
        assert session.act(action).valid
    assert session.observe().endswith(
        "warm light [SEP] electronics [SEP] desk lamps [SEP] Home › Lamps"
    )
    assert "attributes" not in shopper("clean", SEARCH, ITEM).clickables


def test_a_clean_purchase_shows_what_was_bought_and_the_score() -> None:
    session = shopper("clean", SEARCH, ITEM, "click[white]")
    score = session.act("click[buy now]").reward
    assert session.observe().split(" [SEP] ") == [
        "Thank you for shopping with us!",
        "Purchased",
        LAMP.asin,
        LAMP.title,
        "color: white",
        "Your score (min 0.0, max 1.0)",
        str(score),
    ]


def buy_as_asked(where: Shop, number: int) -> float:
    """Buy the product that a goal was made from, with its options; return the score."""
    goal = where.goals[number]
    session = Session(where, goal)
    session.act(f"search[{goal.title}]")
    while goal.asin.lower() not in session.clickables:
        assert session.act("click[next >]").valid, f"{goal.asin} is not found by its title"
    session.act(f"click[{goal.asin}]")
    labels = {(target.option, target.value): label for label, target in session.clickables.items()}
    for pair in goal.options:
        assert session.act(f"click[{labels[pair]}]").valid
    return session.act("click[buy now]").reward


def test_odd_labels_make_no_clean_goal_unfit() -> None:
    where = shop("clean")
    splits: tuple[Split, ...] = ("train", "validation", "test")
    kept = [number for name in splits for number in where.goals.split(name)]
    assert sorted(kept) == list(range(len(where.goals)))
    assert {buy_as_asked(where, number) for number in kept} == {1.0}


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_every_clean_goal_of_the_bundled_shop_can_be_met_in_full(split: Split) -> None:
    where = Shop.open(difficulty="small")
    numbers = where.goals.split(split)
    assert len(numbers) > 20
    assert {buy_as_asked(where, number) for number in numbers} == {1.0}

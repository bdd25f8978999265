"""The pages for people, read with beautifulsoup4 as a client would."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag
from flask.testing import FlaskClient

from tests.webshop_server.app.serving import application
from tests.webshop_server.small import LAMP, LAMP_GOAL, shop
from webshop_server.app.pages import _hue
from webshop_server.data.catalogue import Catalogue
from webshop_server.data.products import Entry, Wish
from webshop_server.packing import search_index
from webshop_server.rules.goals import Goals
from webshop_server.shop import Shop

ATTACK = "<script>document.title='owned'</script><img src=x onerror=alert(1)>\"'><b>"


class Browser:
    """Follows forms and redirects, and remembers the page."""

    def __init__(self, client: FlaskClient) -> None:
        self.client = client

    def _open(self, answer: Any) -> Browser:
        self.status = answer.status_code
        if answer.status_code == 303:
            self.at = answer.headers["Location"]
            return self._open(self.client.get(self.at))
        self.text = answer.text
        self.page = BeautifulSoup(answer.text, "html.parser")
        return self

    def get(self, path: str) -> Browser:
        self.at = path
        return self._open(self.client.get(path))

    def enter(self, goal: int = 0) -> Browser:
        return self._open(self.client.post("/shop", data={"goal_index": goal}))

    def _submit(self, form: Tag, **more: str) -> Browser:
        hidden = {field["name"]: field["value"] for field in form.select("input[type=hidden]")}
        return self._open(self.client.post(form["action"], data={**hidden, **more}))

    def search(self, words: str) -> Browser:
        (form,) = self.page.select("#form-buscar")
        return self._submit(form, search_query=words)

    def buttons(self) -> dict[str, str]:
        """Label of every button of the shop -> its action."""
        return {
            " ".join(button.stripped_strings): button["value"]
            for button in self.page.select("button[form=move]")
        }

    def press(self, label: str) -> Browser:
        (action,) = [a for text, a in self.buttons().items() if label in text]
        return self._submit(self.page.select_one("#move"), action=action)

    def said(self, selector: str) -> str:
        return " ".join(self.page.select_one(selector).stripped_strings)


@pytest.fixture
def open_shop(tmp_path: Path) -> Iterator[Callable[..., Browser]]:
    with ExitStack() as stack:
        yield lambda where: Browser(stack.enter_context(application(where, tmp_path)).test_client())


@pytest.fixture
def browser(open_shop: Callable[..., Browser]) -> Browser:
    return open_shop(shop())


@pytest.mark.parametrize("profile", ["clean", "original"])
def test_a_person_reads_the_instruction_shops_and_sees_the_score(open_shop, profile):
    browser = open_shop(shop(profile)).get("/")
    browser.enter()
    assert LAMP_GOAL in browser.said("#instruction-text")
    browser.search("desk lamp")
    assert "Total results: 25" in browser.said("h3")
    browser.press("B000000001")
    assert browser.said("h2") == LAMP.title
    assert browser.said(".product-price") == "$10.00 – $20.00"
    assert "Your score" in browser.press("Buy Now").said("#reward")
    score = float(browser.said("#reward pre"))
    assert 0 < score < 1
    assert browser.said("#asin") == LAMP.asin and "1 of 1 found" in browser.said("table")


def test_every_page_can_be_reached_and_left(browser):
    browser.enter().search("lamp")
    assert "Page 1" in browser.said("h3") and "< Prev" not in browser.buttons()
    assert "Page 2" in browser.press("Next >").said("h3")
    assert "Page 3" in browser.press("Next >").said("h3")
    assert "Next >" not in browser.buttons()
    browser.press("< Prev").press("< Prev").search("desk lamp").press("B000000001")
    assert "Warm light" in browser.press("Features").said("article")
    browser.press("< Prev")
    assert "A lamp for the desk.\nIt shines." in browser.press("Description").page.text
    browser.press("< Prev")
    assert "No reviews yet" in browser.press("Reviews").said("article")
    assert "What are you looking for" in browser.press("Back to Search").said("h1")


def test_a_chosen_option_is_marked_and_counts_for_the_score(open_shop):
    browser = open_shop(shop()).enter()
    browser.search("desk lamp").press("B000000001").press("white")
    assert [b.text for b in browser.page.select("[aria-pressed=true]")] == ["white"]
    assert "color: white" in browser.said("legend")
    browser.press("Buy Now")
    assert "color: white" in browser.said("#options")


def test_a_search_from_any_page_goes_back_first(browser):
    browser.enter().search("desk lamp").press("B000000001").search("plain lamp")
    assert browser.page.select_one("#search_input")["value"] == "plain lamp"
    assert "Plain lamp" in browser.said(".results")


def test_a_search_without_words_or_hits_is_explained(browser):
    browser.enter().search(" ")
    assert "an empty search finds nothing" in browser.said(".notice")
    assert "Nothing here" in browser.search("zeppelin").said("main")


def test_what_comes_from_a_page_left_behind_changes_nothing_and_is_explained(browser):
    item = browser.enter().search("desk lamp").press("B000000001").page
    here = browser.press("< Prev").press("B000000002").at
    browser.page = item
    for label in ("white", "Features", "Buy Now"):
        browser.page = item
        assert browser.press(label).status == 409
        assert "no longer open" in browser.said(".notice") and browser.said("h2") == "Plain lamp"
    # The browser's back button asks for the page of an earlier step.
    browser.get(re.sub(r"step=\d+", "step=1", here))
    assert "no longer open" in browser.said(".notice") and browser.said("h2") == "Plain lamp"
    assert browser.get(here).page.select(".notice") == []


def test_after_going_back_in_the_browser_one_can_open_another_product_or_search(browser):
    first = browser.enter().search("desk lamp").page
    browser.press("Next >").press("B000000109").press("Features")
    browser.page = first
    assert browser.press("B000000001").status == 200
    assert browser.said("h2") == LAMP.title
    assert "Page 1" in browser.press("< Prev").said("h3")
    browser.page = first
    browser.press("B000000002").page = first
    assert "Page 1" in browser.search("plain").said("h3")


def test_buying_twice_counts_once(browser):
    browser.enter().search("desk lamp").press("B000000001")
    item = browser.page
    browser.press("Buy Now")
    score, browser.page = browser.said("#reward pre"), item
    assert browser.press("Buy Now").status == 409
    assert browser.said("#reward pre") == score


def test_leaving_closes_the_session(browser):
    token = browser.enter().at.split("?")[0]
    browser._open(browser.client.post(f"{token}/leave"))
    assert browser.at == "/"
    assert browser.get(token).status == 404
    assert "it was closed" in browser.said("[role=alert]")


@pytest.mark.parametrize(
    ("path", "form", "status", "words"),
    [
        ("/shop", {"goal_index": "many"}, 400, "a whole number from 0 is needed"),
        ("/shop", {"goal_index": "99999"}, 404, "no goal 99999"),
        ("/shop", {"task_id": "<b>"}, 404, "unknown goal '<b>'"),
        ("/shop/nobody", {"action": "click[x]", "step": "0"}, 404, "no session 'nobody'"),
        ("SESSION", {"step": "0"}, 400, "either search_query or action"),
        ("SESSION", {"action": "x", "search_query": "y"}, 400, "either search_query or action"),
        ("SESSION", {"action": "x"}, 400, "a whole number"),
    ],
)
def test_a_strange_form_gets_a_page_that_says_what_was_expected(browser, path, form, status, words):
    path = path.replace("SESSION", browser.enter().at.split("?")[0])
    browser._open(browser.client.post(path, data=form))
    assert browser.status == status and words in browser.said("[role=alert]")


def attacked() -> Shop:
    """A shop whose every text is an attack."""
    product = replace(
        LAMP,
        title=f"Lamp {ATTACK}",
        description=ATTACK,
        bullets=(ATTACK,),
        category=ATTACK,
        product_category=ATTACK,
        attributes=(ATTACK,),
        options={ATTACK.lower(): (ATTACK.lower(), "plain")},
        image="javascript:alert(1)",
    )
    wish = Wish(f"Find {ATTACK}", (ATTACK,))
    stock = Catalogue([Entry(product, synthetic=wish)])
    goals = Goals.build(stock, "synthetic", "clean")
    return Shop(stock, goals, search_index(stock), "clean", show_attributes=True)


def test_texts_of_products_instructions_and_queries_are_never_markup(open_shop):
    browser = open_shop(attacked()).get("/")
    pages = [browser.text, browser.enter().text, browser.search(f"lamp {ATTACK}").text]
    assert browser.page.select_one("#search_input")["value"] == f"lamp {ATTACK}".lower()
    pages.append(browser.press("Lamp").text)
    pages.append(browser.press("plain").text)
    for tab in ("Description", "Features", "Attributes"):
        pages.append(browser.press(tab).text)
        assert ATTACK in browser.page.text
        browser.press("< Prev")
    pages.append(browser.press("<script>").text)
    pages.append(browser.press("Buy Now").text)
    pages.append(browser.get(f"/shop/{ATTACK}").text)
    pages.append(browser._open(browser.client.post("/shop", data={"task_id": ATTACK})).text)
    assert len(pages) == 12
    for text in pages:
        page = BeautifulSoup(text, "html.parser")
        assert not page.select("script, img, b, iframe, [onerror], [style]")
        assert "javascript:" not in text


def test_every_answer_forbids_scripts_and_foreign_content(browser):
    token = browser.enter().at
    for path in ("/", token, "/shop/none", "/api", "/static/shop.css"):
        answer = browser.client.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'")
        assert "script" not in policy and "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        answer.close()


def test_pages_load_nothing_from_elsewhere(browser):
    browser.enter().search("lamp")
    for text in (browser.text, browser.get("/").text):
        assert "//" not in re.sub(r"<!DOCTYPE html>", "", text)
        for path in re.findall(r'(?:src|href)="([^"]*)"', text):
            assert path.startswith(("/", "#")), path
    with browser.client.get("/static/shop.css") as style:
        assert "url(" not in style.text and "@import" not in style.text


def test_every_control_has_a_name_for_those_who_do_not_see_it(browser):
    results = browser.enter().search("desk lamp").page
    for page in (results, browser.press("B000000001").page, browser.get("/").page):
        assert page.html["lang"] == "en" and page.title.text
        for button in page.select("button, a"):
            assert list(button.stripped_strings), button
        labelled = {label["for"] for label in page.select("label")}
        for field in page.select("input:not([type=hidden])"):
            assert field["id"] in labelled
        assert all(picture["aria-hidden"] == "true" for picture in page.select("svg"))


def test_pictures_are_the_same_at_every_start():
    assert _hue("B000000001") == 21
    assert {_hue(f"B{n}") for n in range(50)} <= set(range(360))

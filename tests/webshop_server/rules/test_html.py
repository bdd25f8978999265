"""The HTML holds the same texts and buttons as the page model, where clients look for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.webshop_server.recorded import CONFIGS, session, transcripts
from tests.webshop_server.rows import row, write
from tests.webshop_server.small import LAMP, shopper
from webshop_server.session import Session
from webshop_server.shop import Shop

bs4 = pytest.importorskip("bs4", reason="needs beautifulsoup4")
INVISIBLE = ("style", "script", "head", "title", "meta", "[document]")


def visible_text(html: str) -> str:
    """The text of a page by the rule with which the original made its text observations."""
    nodes = bs4.BeautifulSoup(html, "html.parser").find_all(string=True)
    return " [SEP] ".join(
        node.strip()
        for node in nodes
        if not isinstance(node, bs4.element.Comment)
        and node.parent.name not in INVISIBLE
        and node != "\n"
    )


def buttons(html: str) -> list[str]:
    """What can be clicked, as the original found it."""
    soup = bs4.BeautifulSoup(html, "html.parser")
    pressed = [*soup.find_all(class_="btn"), *soup.find_all(class_="product-link")]
    radios = soup.select("input[type=radio]")
    labels = [button.get_text() for button in pressed] + [radio["value"] for radio in radios]
    return list(dict.fromkeys(label.lower() for label in labels))


def check(shopper: Session) -> None:
    html = shopper.observe("html")
    assert visible_text(html) == shopper.observe("text")
    offered = list(shopper.clickables)
    if shopper.page.has_search_bar and shopper.shop.profile == "clean":
        offered = ["search"]
    assert buttons(html) == offered


@pytest.mark.parametrize("profile", ["original", "clean"])
@pytest.mark.parametrize("config", CONFIGS)
def test_the_html_of_recorded_sessions_holds_the_text_observation(
    config: str, profile: str, shared: Path
) -> None:
    # One session of each policy; the texts themselves are compared with the recordings elsewhere.
    policies = {episode["policy"]: episode for episode in transcripts(shared, config)}
    for episode in policies.values():
        walker = session(shared, config, episode, profile)
        check(walker)
        for step in episode["steps"]:
            if walker.act(step["action"]).valid:
                check(walker)


@pytest.mark.parametrize("profile", ["original", "clean"])
def test_clients_find_the_elements_they_look_for(profile: str) -> None:
    def page(*actions: str):  # type: ignore[no-untyped-def]
        return bs4.BeautifulSoup(shopper(profile, *actions).observe("html"), "html.parser")

    search = "search[desk lamp]"
    item = f"click[{LAMP.asin}]"
    first = page()
    assert first.select_one("form#form-buscar input#search_input[name=search_query]")
    assert first.select_one("#instruction-text h4").text.startswith("Instruction: Find me")
    results = page(search)
    assert results.select_one("#logo") is None
    assert len(results.select(".list-group-item .product-asin > a.product-link")) == 10
    assert results.select_one(".product-title").text == LAMP.title
    assert results.select_one(".product-price").text == LAMP.price_tag
    product = page(search, item)
    radios = product.select(".radio-toolbar input[type=radio]")
    assert {radio["name"] for radio in radios} == set(LAMP.options)
    assert all(product.find("label", attrs={"for": radio["id"]}) for radio in radios)
    assert product.select_one("div[name=bulletpoints] button.btn").text == "Features"
    assert product.select_one("button.btn.purchase").text == "Buy Now"
    bullets = page(search, item, "click[features]").select(
        "div[name=bulletpoints] li p.product-info"
    )
    assert [bullet.text.strip() for bullet in bullets] == list(LAMP.bullets)
    done = page(search, item, "click[buy now]")
    assert 0 < float(done.select_one("#reward pre").text) < 1


def test_product_texts_and_queries_cannot_become_markup() -> None:
    html = shopper("clean", "search[desk lamp]", f"click[{LAMP.asin}]").observe("html")
    assert "<Mini>" not in html and "Desk Lamp &lt;Mini&gt; &amp; more" in html
    assert bs4.BeautifulSoup(html, "html.parser").select("b") == []
    html = shopper("original", 'search["><script>alert(1)</script>]').observe("html")
    assert "<script" not in html


def test_half_characters_of_a_catalogue_have_a_page(tmp_path: Path) -> None:
    half = "\ud800"
    options = {half: [{"value": half}, {"value": "b"}]}
    data = write(tmp_path / "raw", [row(name=half, customization_options=options)])
    walker = Session(shop := Shop.open(data), shop.goals[0])
    for action in ("search[scarf]", "click[b000000001]", f"click[{half}]", "click[buy now]"):
        assert walker.act(action).valid
        assert half in walker.observe("html")

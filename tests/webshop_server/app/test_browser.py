"""The pages in headless Chromium: a person shops to a score of 1.0, and no text becomes a script.

Needs Chromium and its driver (Debian: `apt-get install chromium chromium-driver`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from proxmo_envs.webshop.expert import ShopExpert
from tests.webshop_server.app.serving import served
from webshop_server.session import Session
from webshop_server.shop import Shop

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]
PHONE, DESK = (360, 740), (1280, 900)


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """A browser; its console is read by `quiet`."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} (Debian: apt-get install chromium chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options, service)
    browser.implicitly_wait(10)
    yield browser
    browser.quit()


def quiet(driver: Any) -> None:
    """Assert that the console has nothing to say: no blocked content, no error."""
    assert driver.get_log("browser") == []


def one(driver: Any, selector: str) -> Any:
    """Return the element; waits for it."""
    return driver.find_element("css selector", selector)


def enter(driver: Any, selector: str, words: str = "") -> None:
    """Type words and Enter into an element, as the keyboard does; wait for the next page."""
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.support.wait import WebDriverWait

    loaded = "return document.readyState === 'complete' && performance.timeOrigin"
    before = driver.execute_script(loaded)
    element = one(driver, selector)
    if words:
        element.clear()
    element.send_keys(f"{words}\n")
    # Questions can fail while one page takes the place of another.
    wait = WebDriverWait(driver, 30, 0.05, ignored_exceptions=[WebDriverException])
    wait.until(lambda _: driver.execute_script(loaded) not in (False, before))


def press(driver: Any, action: str) -> None:
    """Press the button that posts an action."""
    enter(driver, f'button[value="{action}"]')


def search(driver: Any, words: str) -> None:
    """Search for words."""
    enter(driver, "#search_input", words)


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_a_person_shops_to_a_score_of_1_with_the_keyboard(driver, tmp_path, size):
    shop = Shop.open(difficulty="small")
    goal = next(i for i in shop.goals.split("test") if shop.goals[i].options)
    driver.set_window_size(*size)
    with served(shop, tmp_path) as (address, _):
        driver.get(address)
        # Products have a drawing in place of a photograph.
        picture = one(driver, ".tasks svg")
        assert picture.size["width"] > 100 and picture.size["height"] > 50
        enter(driver, "#goal_index", str(goal))
        assert shop.goals[goal].instruction in one(driver, "#instruction-text").text
        # The expert reads the same episode as text and says what to press.
        expert, twin = ShopExpert(), Session(shop, shop.goals[goal])
        while not twin.state.done:
            info = {"admissible_actions": twin.admissible}
            action = expert.act(twin.observe(), info)
            twin.act(action)
            words = action.removeprefix("search[")
            if words != action:
                # The cursor waits in the search field of the search page.
                assert driver.switch_to.active_element == one(driver, "#search_input")
                search(driver, words[:-1])
            else:
                press(driver, action)
            wide = driver.execute_script("return document.documentElement.scrollWidth")
            assert wide <= max(size[0], driver.execute_script("return innerWidth"))
        assert one(driver, "#reward pre").text == "1.0"
        quiet(driver)


def test_going_back_in_the_browser_leads_to_other_products(driver, tmp_path):
    with served(Shop.open(difficulty="small"), tmp_path) as (address, _):
        driver.get(address)
        enter(driver, ".hero button")
        search(driver, "table lamp")
        titles = [found.text for found in driver.find_elements("css selector", ".product-title")]
        enter(driver, ".product-link")
        assert one(driver, "h2").text == titles[0]
        driver.back()
        # The browser shows the page it kept, or the shop the one it is on.
        if "Prev" in one(driver, ".moves").text:
            press(driver, "click[< prev]")
        enter(driver, "li:nth-child(2) .product-link")
        assert one(driver, "h2").text == titles[1]

"""The expert shopper: it reads what agents read, buys the right thing, and copes with detours."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from proxmo_envs.webshop.env import WebShopEnv
from proxmo_envs.webshop.expert import ShopExpert

INSTRUCTION = "buy soft shirt with color: red, and price lower than 40.00 dollars"
SEARCH = f"WebShop [SEP] Instruction: [SEP] {INSTRUCTION} [SEP] Search"
HEAD = f"Instruction: [SEP] {INSTRUCTION} [SEP] Back to Search"
BAR = {"admissible_actions": ["search[<your query>]"]}


def results(*found: tuple[str, str, str]) -> tuple[str, dict[str, list[str]]]:
    texts = [text for one in found for text in one]
    page = " [SEP] ".join([HEAD, f"Page 1 (Total results: {len(found)})", *texts])
    return page, {"admissible_actions": _clicks("back to search", *(one[0] for one in found))}


def item(title: str, price: str, *colors: str, chosen: str = "") -> tuple[str, dict[str, Any]]:
    heading = f"color (chosen: {chosen})" if chosen else "color"
    parts = ["< Prev", heading, *colors, title, f"Price: {price}", "Features", "Buy Now"]
    page = " [SEP] ".join([HEAD, *parts])
    clicks = _clicks("back to search", "< prev", "features", "buy now", *colors)
    return page, {"admissible_actions": clicks}


def _clicks(*labels: str) -> list[str]:
    return [f"click[{label.lower()}]" for label in labels]


def play(env: WebShopEnv, task_id: str, noise: float = 0.0, seed: int = 0) -> tuple[float, int]:
    """Score and length of an episode in which some actions are replaced by random ones."""
    rng = np.random.default_rng(seed)
    observation, info = env.reset(options={"task_id": task_id})
    expert = ShopExpert()
    for step in range(1, 16):
        action = expert.act(observation, info)
        if rng.random() < noise:
            action = env.action_space.choices[int(rng.integers(len(env.action_space.choices)))]
        observation, reward, done, _, info = env.step(action)
        if done:
            return reward, step
    return 0.0, 15


def scores(n: int, *, noise: float = 0.0, **kwargs: Any) -> np.ndarray:
    env = WebShopEnv(**kwargs)
    ids = env.task_set(**kwargs).ids
    chosen = np.random.default_rng(1).permutation(len(ids))[:n]
    return np.array([play(env, ids[i], noise, seed=int(i))[0] for i in chosen])


def test_it_searches_with_the_words_that_matter():
    assert ShopExpert().act(SEARCH, BAR) == "search[red soft shirt]"


def test_it_opens_the_result_that_fits_title_and_limit_best():
    expert = ShopExpert()
    expert.act(SEARCH, BAR)
    found = (
        ("A1", "warm shirt", "$9.0"),
        ("A2", "soft shirt", "$50.0"),
        ("A3", "soft shirt", "$9.0"),
    )
    assert expert.act(*results(*found)) == "click[a3]"


def test_it_chooses_what_was_asked_for_and_buys():
    expert = ShopExpert()
    expert.act(SEARCH, BAR)
    expert.act(*results(("A1", "soft shirt", "$9.0")))
    assert expert.act(*item("soft shirt", "$9.0", "blue", "red")) == "click[red]"
    # Somebody chose otherwise.
    assert expert.act(*item("soft shirt", "$9.0", "blue", "red", chosen="blue")) == "click[red]"
    assert expert.act(*item("soft shirt", "$9.0", "blue", "red", chosen="red")) == "click[buy now]"


def test_it_leaves_a_product_that_lacks_an_option_for_another_one():
    expert = ShopExpert()
    found = results(("A1", "soft shirt", "$9.0"), ("A2", "soft warm shirt", "$9.0"))
    expert.act(SEARCH, BAR)
    assert expert.act(*found) == "click[a1]"
    assert expert.act(*item("soft shirt", "$9.0", "blue", "green")) == "click[< prev]"
    assert expert.act(*found) == "click[a2]"


def test_it_buys_the_best_it_has_seen_when_nothing_fits():
    expert = ShopExpert()
    found = results(("A1", "soft shirt", "$9.0"), ("A2", "wool hat", "$9.0"))
    expert.act(SEARCH, BAR)
    expert.act(*found)
    expert.act(*item("soft shirt", "$9.0", "blue", "green"))
    expert.act(*found)
    assert expert.act(*item("wool hat", "$9.0", "blue", "green")) == "click[< prev]"
    assert expert.act(*found) == "click[a1]"
    assert expert.act(*item("soft shirt", "$9.0", "blue", "green")) == "click[buy now]"


def test_reset_begins_another_episode():
    expert = ShopExpert()
    expert.act(SEARCH, BAR)
    expert.reset(SEARCH.replace("soft shirt", "steel pot"))
    assert expert.act(SEARCH, BAR) == "search[red steel pot]"


def test_a_text_without_an_instruction_is_refused():
    with pytest.raises(ValueError, match="no instruction in 'You are in a kitchen'"):
        ShopExpert().act("You are in a kitchen", BAR)


@pytest.mark.parametrize(
    ("difficulty", "goals", "mean"),
    [
        ("tiny", "synthetic", 0.99),
        ("small", "synthetic", 0.96),
        ("default", "synthetic", 0.98),
        ("default", "human", 0.96),
    ],
)
def test_it_is_close_to_perfect_in_the_bundled_shops(difficulty: str, goals: str, mean: float):
    assert scores(60, difficulty=difficulty, goals=goals).mean() > mean


def test_detours_cost_it_little():
    assert scores(60, noise=0.2, difficulty="tiny").mean() > 0.9


@pytest.mark.parametrize(
    ("profile", "goals", "mean"),
    [("clean", "synthetic", 0.8), ("clean", "human", 0.85), ("original", "human", 0.85)],
)
def test_it_does_well_on_pages_it_was_not_written_for(
    profile: Literal["clean", "original"], goals: str, mean: float, shared: Path
):
    data = shared / "webshop" / "data" / "fict300"
    split = "train" if goals == "synthetic" or profile == "clean" else "test"
    assert scores(300, data=data, profile=profile, goals=goals, split=split).mean() > mean

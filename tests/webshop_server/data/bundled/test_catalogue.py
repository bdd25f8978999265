"""The bundled catalogue: the same everywhere, well-formed, and every wish in it can be met."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from webshop_server.data import bundled
from webshop_server.data.bundled.kinds import DEPARTMENTS
from webshop_server.data.products import document
from webshop_server.packing import search_index
from webshop_server.rules.goals import Goals
from webshop_server.rules.records import ShoppingGoal
from webshop_server.rules.reward import score

SIZES = {"tiny": 900, "small": 300, "default": 3000}
# Published results name goals by number: whoever changes tables or draws changes these catalogues,
# raises VERSION and says so in CHANGELOG. The digests were printed by fingerprint().
DIGESTS = {"tiny": "81201554784a2a0b", "small": "7735f333b5a5d377", "default": "bcd398fc55170007"}


def fingerprint(difficulty: str) -> str:
    return hashlib.sha256(repr(bundled.catalogue(difficulty).entries).encode()).hexdigest()[:16]


def sample(goals: Goals, n: int) -> list[ShoppingGoal]:
    return [goals[int(i)] for i in np.random.default_rng(0).permutation(len(goals))[:n]]


def words(goal: ShoppingGoal) -> str:
    """What a shopper types who thinks a little: the instruction without the price."""
    return goal.instruction.partition(", and price lower")[0]


@pytest.mark.parametrize("difficulty", bundled.DIFFICULTIES)
def test_a_catalogue_stays_what_it_is(difficulty: str):
    assert len(bundled.catalogue(difficulty)) == SIZES[difficulty]
    assert fingerprint(difficulty) == DIGESTS[difficulty]


def test_a_catalogue_depends_on_no_hash_seed(repository: Path):
    script = (
        "from tests.webshop_server.data.bundled.test_catalogue import fingerprint\n"
        "print(fingerprint('small'))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=repository,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == DIGESTS["small"]


def test_an_unknown_difficulty_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'huge'.*tiny, small, default"):
        bundled.catalogue("huge")


@pytest.mark.parametrize("difficulty", bundled.DIFFICULTIES)
def test_products_have_the_form_the_shop_expects(difficulty: str):
    catalogue = bundled.catalogue(difficulty)
    assert len(set(catalogue.asins)) == len(catalogue)
    for product in catalogue:
        assert product.asin == product.asin.upper() and 0 < len(product.asin) <= 10
        assert product.title and product.attributes and product.category in DEPARTMENTS
        assert min(product.pricing) <= product.purchase_price <= max(product.pricing)
        assert product.price_tag.count("$") == len(product.pricing)
        texts = [product.title, product.description, *product.bullets]
        for text in texts:
            assert text.isascii() and "[" not in text and "{" not in text and "  " not in text
        values = [value for offered in product.options.values() for value in offered]
        assert values == [value.lower() for value in values]
        assert len(values) == len(set(values)), "a value under two options cannot be clicked"
        assert all(len(offered) > 1 for offered in product.options.values())


def test_the_text_of_a_product_tells_all_its_attributes():
    for product in bundled.catalogue("small"):
        told = " ".join((product.title, product.description, *product.bullets)).lower()
        assert all(attribute in told for attribute in product.attributes)


@pytest.mark.parametrize("difficulty", bundled.DIFFICULTIES)
def test_what_a_wish_asks_for_is_true_and_can_be_searched(difficulty: str):
    wished = 0
    for entry in bundled.catalogue(difficulty).entries:
        for wish in filter(None, (entry.synthetic, *entry.human)):
            wished += 1
            assert wish.attributes and set(wish.attributes) <= set(entry.product.attributes)
            indexed = document(entry.product)
            values = {v for offered in entry.product.options.values() for v in offered}
            assert set(wish.options) <= values
            for text in (*wish.attributes, *wish.options):
                assert text in wish.text and text in indexed
    assert wished > 200


@pytest.mark.parametrize("kind", ["synthetic", "human"])
@pytest.mark.parametrize("difficulty", bundled.DIFFICULTIES)
def test_buying_what_was_asked_for_scores_one(difficulty: str, kind: str):
    catalogue = bundled.catalogue(difficulty)
    goals = Goals.build(catalogue, kind, "clean")
    for goal in sample(goals, 200):
        product = catalogue.get(goal.asin)
        assert product.purchase_price <= goal.price_upper
        # Goals in free words do not name their options.
        chosen = {name or str(i): value for i, (name, value) in enumerate(goal.options)}
        assert score(product, goal, chosen, product.purchase_price).total == 1.0


@pytest.mark.parametrize("kind", ["synthetic", "human"])
def test_a_search_with_the_words_of_the_instruction_finds_the_product(kind: str):
    catalogue = bundled.catalogue()
    search = search_index(catalogue)
    places = []
    for goal in sample(Goals.build(catalogue, kind, "clean"), 150):
        found = search.search(words(goal))
        assert goal.asin in found
        places.append(found.index(goal.asin))
    assert np.mean(np.array(places) < 10) > 0.92

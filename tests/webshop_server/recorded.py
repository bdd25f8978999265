"""Shops as the recordings of the original had them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from webshop_server.rules.records import ShoppingGoal
from webshop_server.session import Session
from webshop_server.shop import Shop

CONFIGS = (
    "real_synthgoals",
    "real_humangoals",
    "real_attrs",
    "fict_synthgoals",
    "fict_humangoals",
    "fict_attrs",
    "fict_history",
    "fict_histact",
)
HUMAN = ("real_humangoals", "fict_humangoals", "fict_attrs", "fict_history", "fict_histact")


def lines(path: Path) -> Iterator[Any]:
    """Go through the objects of a compressed JSON-lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        yield from map(json.loads, rows)


def unit_cases(shared: Path, function: str) -> list[Any]:
    """The recorded inputs and results of one function of the original."""
    text = (shared / "webshop" / "tables" / "unit_cases.jsonl").read_text(encoding="utf-8")
    cases = [case for case in map(json.loads, text.splitlines()) if case["fn"] == function]
    assert cases
    return cases


def data(shared: Path, config: str) -> Path:
    """The directory of raw files of a recording."""
    return shared / "webshop" / "data" / ("real1000" if config.startswith("real") else "fict300")


def transcripts(shared: Path, config: str) -> Iterator[Any]:
    """Go through the recorded sessions of a configuration."""
    return lines(shared / "webshop" / "transcripts" / f"sessions_{config}.jsonl.gz")


@cache
def shop(shared: Path, config: str, profile: str = "original") -> Shop:
    """The shop of a configuration; for real1000 with the nouns that the original's tagger found."""
    directory = data(shared, config)
    nouns = directory / "title_nouns.json"
    return Shop.open(
        directory,
        goals="human" if config in HUMAN else "synthetic",
        profile=profile,
        show_attributes=config.endswith("attrs"),
        title_nouns=nouns if nouns.exists() else None,
    )


def session(shared: Path, config: str, episode: Any, profile: str = "original") -> Session:
    """The shopper of a recorded session, at its start."""
    where = shop(shared, config, profile)
    return Session(where, where.goals[episode["goal_index"]], episode["session"])


# Name in the recordings -> field of a product.
PRODUCT_FIELDS = {
    "asin": "asin",
    "Title": "title",
    "Description": "description",
    "BulletPoints": "bullets",
    "category": "category",
    "query": "query",
    "product_category": "product_category",
    "Attributes": "attributes",
    "pricing": "pricing",
    "Price": "price_tag",
    "options": "options",
    "option_to_image": "option_images",
    "MainImage": "image",
}


def goal(row: dict[str, Any], goal_id: str, kind: str) -> ShoppingGoal:
    """The goal of a recorded row; a human one has values of options without their names."""
    options = row["goal_options"]
    pairs = options.items() if isinstance(options, dict) else (("", value) for value in options)
    return ShoppingGoal(
        goal_id=goal_id,
        asin=row["asin"],
        instruction=row["instruction_text"],
        attributes=tuple(row["attributes"]),
        options=tuple(pairs),
        price_upper=row["price_upper"],
        weight=row.get("weight", 1.0),
        kind=kind,
        title=row["name"],
        category=row["category"],
        query=row["query"],
        product_category=row["product_category"],
    )

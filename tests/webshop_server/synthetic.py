"""Made-up raw files of any size, with long tails of words, options and price ranges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_BATCH = 1000
_WORDS = 200_000
# Exponent of the frequencies of words by rank, as in English.
_ZIPF = 1.07
# Each two letters long.
_SYLLABLES = "bacedifoguhajekilomunapequrosutavewixoly"
_DEPARTMENTS = ("beauty", "electronics", "fashion", "garden", "grocery")
_TITLE, _DESCRIPTION, _BULLET = 12, 18, 12
_OPTIONS = {"color": 4, "size": 3}


def synthetic_rows(number: int, seed: int = 0) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield rows of the files of products and of attributes, of products that nobody sells."""
    rng = np.random.default_rng(seed)
    words = _words(rng)
    chances = np.arange(1, _WORDS + 1) ** -_ZIPF
    bounds = np.cumsum(chances / chances.sum())
    width = _TITLE + _DESCRIPTION + 2 * _BULLET
    for start in range(0, number, _BATCH):
        picks = np.searchsorted(bounds, rng.random((_BATCH, width)))
        draws = rng.random((_BATCH, 4))
        for place in range(start, min(start + _BATCH, number)):
            row = picks[place - start].tolist()
            yield _row(place, [words[min(pick, _WORDS - 1)] for pick in row], draws[place - start])


def write_raw(directory: Path, number: int, seed: int = 0) -> None:
    """Write the three raw files of `number` products into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    human = {}
    with (
        (directory / "items_shuffle.json").open("w") as products,
        (directory / "items_ins_v2.json").open("w") as attributes,
    ):
        for place, (product, wish) in enumerate(synthetic_rows(number, seed)):
            asin = json.dumps(product["asin"])
            products.write(("," if place else "[") + json.dumps(product))
            attributes.write(("," if place else "{") + f"{asin}:{json.dumps(wish)}")
            if place % 100 == 0:
                human[product["asin"]] = [{**wish, "instruction_options": []}]
        products.write("]")
        attributes.write("}")
    (directory / "items_human_ins.json").write_text(json.dumps(human))


def _words(rng: np.random.Generator) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < _WORDS:
        picks = rng.integers(len(_SYLLABLES) // 2, size=(_WORDS, 5))
        lengths = rng.integers(1, 6, size=_WORDS)
        for row, length in zip(picks.tolist(), lengths.tolist(), strict=True):
            found["".join(_SYLLABLES[2 * pick : 2 * pick + 2] for pick in row[:length])] = None
    return list(found)[:_WORDS]


def _row(place: int, words: list[str], draws: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
    title, words = words[:_TITLE], words[_TITLE:]
    description, bullets = words[:_DESCRIPTION], words[_DESCRIPTION:]
    price = round(5 + 200 * float(draws[0]), 2)
    attributes = [" ".join(title[at : at + 2]) for at in (0, 4, 8)]
    options = {
        name: [{"value": f"{title[at]} {name}", "image": None} for at in range(count)]
        for name, count in _OPTIONS.items()
        if draws[1] < 0.5
    }
    product = {
        "asin": f"B{place:09d}",
        "name": " ".join(title).title(),
        "category": _DEPARTMENTS[place % len(_DEPARTMENTS)],
        "query": " ".join(title[:2]),
        "product_category": f"{_DEPARTMENTS[place % len(_DEPARTMENTS)]} › {title[0]} › {title[1]}",
        "full_description": " ".join(description) if draws[2] < 0.7 else "",
        "small_description": [" ".join(bullets[:_BULLET]), " ".join(bullets[_BULLET:])],
        "images": [f"https://example.org/{place}.jpg"],
        "pricing": f"${price}" if draws[3] < 0.9 else f"${price}${price + 20:.2f}",
        "customization_options": options,
    }
    wish = {
        "attributes": attributes,
        "instruction": f"Find me {' and '.join(attributes[:2])} {title[-1]}",
        "instruction_attributes": attributes[:2],
    }
    return product, wish

"""Generates the catalogue: products in families of near-duplicates, and wishes for goals.

A family is one design and others that differ from it in a single thing (an attribute, the maker,
the choices on offer, the price), so that a shopper has to compare. Everything follows from the
difficulty; the numbers come from numpy's PCG64 stream as doubles, which are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final
from zlib import crc32

from webshop_server.data.bundled import wording
from webshop_server.data.bundled.kinds import ProductKind, kinds, names
from webshop_server.data.bundled.rng import Rng
from webshop_server.data.bundled.wording import Design
from webshop_server.data.catalogue import Catalogue
from webshop_server.data.products import Entry, Product, Wish
from webshop_server.errors import CatalogueError

# Part of every task: raise it whenever the catalogue of a difficulty changes.
VERSION: Final = 1

# Members of a family, equally likely.
_FAMILY: Final = (1, 1, 2, 3, 4)
# Share of the wordy products whose price is a range.
_PRICED_AS_RANGE: Final = 0.3
_CENTS: Final = (0.0, 0.49, 0.5, 0.95, 0.99)
# Chance that a request in free words names a value of an option.
_OPTION_ASKED: Final = 0.9
_ASIN_LETTERS: Final = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_SYLLABLES: Final = [f"{first}{second}" for first in "BCDFGHJKLMNPRSTVWZ" for second in "AEIOU"]


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a catalogue and of its products; ranges are inclusive.

    Attributes:
        products: size of the catalogue.
        attributes: attributes of a product.
        asked: attributes of a wish.
        options: largest number of options of a product.
        values: values of an option.
        wished: share of the products that are not overpriced for which wishes are made.
        wordy: full texts, makers and ids; otherwise a few words and short ids.
    """

    products: int
    attributes: tuple[int, int]
    asked: tuple[int, int]
    options: int
    values: tuple[int, int]
    wished: float
    wordy: bool = True


SETTINGS: Final = {
    "tiny": Size(900, (2, 2), (2, 2), 1, (4, 6), 1.0, wordy=False),
    "small": Size(300, (4, 6), (1, 2), 1, (2, 4), 0.6),
    "default": Size(3000, (5, 8), (2, 3), 3, (2, 6), 0.4),
}
DIFFICULTIES: Final = tuple(SETTINGS)


@lru_cache(maxsize=len(SETTINGS))
def catalogue(difficulty: str = "default") -> Catalogue:
    """Return the catalogue of a difficulty; it is made once per process.

    Raises:
        CatalogueError: the difficulty is none of `DIFFICULTIES`.
    """
    if difficulty not in SETTINGS:
        raise CatalogueError(
            f"unknown difficulty {difficulty!r:.50}; known: {', '.join(DIFFICULTIES)}"
        )
    return Catalogue(_entries(difficulty))


def _entries(difficulty: str) -> list[Entry]:
    settings = SETTINGS[difficulty]
    rng = Rng(VERSION, crc32(difficulty.encode()))
    table = kinds(few_words=not settings.wordy)
    # Cycle through the kinds, one family at a time.
    designs: list[Design] = []
    while len(designs) < settings.products:
        for kind in table:
            designs.extend(_family(kind, settings, rng))
    del designs[settings.products :]
    asins = _asins(len(designs), settings, rng)
    return [
        _entry(design, asin, settings, rng) for design, asin in zip(designs, asins, strict=True)
    ]


def _asins(n: int, settings: Size, rng: Rng) -> list[str]:
    """Draw ids that look like the usual ones; without long texts, count: BA0, BE0 ... ZU9.

    Neighbours, which are often twins, have different letters.
    """
    if not settings.wordy:
        return [f"{start}{number}" for number in range(10) for start in _SYLLABLES][:n]
    found: dict[str, None] = {}
    while len(found) < n:
        found["B0" + "".join(rng.pick(_ASIN_LETTERS) for _ in range(8))] = None
    return list(found)


def _family(kind: ProductKind, settings: Size, rng: Rng) -> Iterator[Design]:
    """Draw a design and its near-duplicates."""
    brands, lines = names()
    first = Design(
        kind=kind,
        brand=rng.pick(brands),
        line=rng.pick(lines),
        use=rng.pick(kind.uses),
        attributes=tuple(rng.some(kind.attributes, rng.between(settings.attributes))),
        options=_options(kind, settings, rng),
        price=_price(kind, rng),
    )
    yield first
    for _ in range(rng.pick(_FAMILY) - 1):
        yield rng.pick(_CHANGES)(first, settings, rng)


def _other_attribute(design: Design, settings: Size, rng: Rng) -> Design:
    """Exchange the most striking attribute, title included, or a later one."""
    place = int(rng.uniform() * min(3, len(design.attributes)))
    new = rng.pick([text for text in design.kind.attributes if text not in design.attributes])
    kept = list(design.attributes)
    kept[place] = new
    return replace(design, attributes=tuple(kept))


def _other_maker(design: Design, settings: Size, rng: Rng) -> Design:
    """Change only names and price."""
    brand, line = map(rng.pick, names())
    return replace(design, brand=brand, line=line, price=_price(design.kind, rng))


def _other_choices(design: Design, settings: Size, rng: Rng) -> Design:
    return replace(design, options=_options(design.kind, settings, rng))


def _dearer(design: Design, settings: Size, rng: Rng) -> Design:
    """Raise the price above any limit of a wish for the first one (at most 40 dollars more)."""
    return replace(design, price=design.price + 41 + int(rng.uniform() * 9), overpriced=True)


_CHANGES: Final = (_other_attribute, _other_attribute, _other_maker, _other_choices, _dearer)


def _options(kind: ProductKind, settings: Size, rng: Rng) -> dict[str, tuple[str, ...]]:
    """Draw options and their values, both in the order of the table."""
    chosen = set(rng.some(list(kind.options), settings.options))
    found = {}
    for name, values in kind.options.items():
        if name in chosen:
            drawn = set(rng.some(values, rng.between(settings.values)))
            found[name] = tuple(value for value in values if value in drawn)
    return found


def _price(kind: ProductKind, rng: Rng) -> float:
    """Draw a whole number of dollars, cheap ones more often than dear ones."""
    low, high = kind.price
    return float(int(low * (high / low) ** rng.uniform()))


def _entry(design: Design, asin: str, settings: Size, rng: Rng) -> Entry:
    """Return a design with texts, a price tag and wishes."""
    kind = design.kind
    pricing, bought = _pricing(design, settings, rng)
    wordy = settings.wordy
    product = Product(
        asin=asin,
        title=wording.title(design, rng)
        if wordy
        else wording.plain_phrase(kind, design.attributes),
        description=wording.description(design, rng) if wordy else "",
        bullets=wording.bullets(design, rng) if wordy else (),
        category=kind.department,
        query=kind.query,
        product_category=kind.path,
        attributes=design.attributes,
        pricing=pricing,
        price_tag=" to ".join(f"${price if wordy else int(price)}" for price in pricing),
        purchase_price=bought,
        options=design.options,
    )
    if design.overpriced or rng.uniform() >= settings.wished:
        return Entry(product)
    return Entry(product, _synthetic(design, settings, rng), (_human(design, settings, rng),))


def _pricing(design: Design, settings: Size, rng: Rng) -> tuple[tuple[float, ...], float]:
    """Return the numbers of the price tag and the purchase price."""
    if not settings.wordy:
        return (design.price,), design.price
    price = round(design.price + rng.pick(_CENTS), 2)
    if rng.uniform() >= _PRICED_AS_RANGE:
        return (price,), price
    most = round(price * (1.15 + 0.6 * rng.uniform()), 2)
    return (price, most), round(price + (most - price) * rng.uniform(), 2)


def _asked(design: Design, settings: Size, rng: Rng) -> list[str]:
    """Draw attributes that a search can find: those of title and description."""
    return rng.some(design.attributes[:5], rng.between(settings.asked))


def _synthetic(design: Design, settings: Size, rng: Rng) -> Wish:
    asked = _asked(design, settings, rng)
    return Wish(wording.order(design.kind, asked, rng, plain=not settings.wordy), tuple(asked))


def _human(design: Design, settings: Size, rng: Rng) -> Wish:
    """Ask for some attributes and for one value each of some options."""
    asked = _asked(design, settings, rng)
    chosen = {
        name: rng.pick(values)
        for name, values in design.options.items()
        if rng.uniform() < _OPTION_ASKED
    }
    text = wording.request(design.kind, asked, chosen, rng)
    return Wish(text, tuple(asked), tuple(chosen.values()))

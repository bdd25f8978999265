"""Writes the catalogue: products in families of near-duplicates, and the wishes goals are made of.

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

from ..catalogue import Catalogue, Entry, Wish
from ..records import Product
from . import wording
from .draws import Draws
from .kinds import Kind, kinds, names
from .wording import Design

# Part of every task: raise it whenever a difficulty gives another catalogue than before.
VERSION: Final = 1

# Members of a family, equally likely.
_FAMILY: Final = (1, 1, 2, 3, 4)
# Share of products that are priced as a range, where there is something to choose.
_PRICED_AS_RANGE: Final = 0.3
_CENTS: Final = (0.0, 0.49, 0.5, 0.95, 0.99)
# How often a request in free words names a value of an option.
_OPTION_ASKED: Final = 0.9
_ASIN_LETTERS: Final = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_SYLLABLES: Final = [f"{first}{second}" for first in "BCDFGHJKLMNPRSTVWZ" for second in "AEIOU"]


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How much there is to read and to choose; ranges are inclusive.

    Attributes:
        products: size of the catalogue.
        attributes: attributes of a product.
        asked: attributes of a wish.
        options: most options of a product.
        values: values of an option.
        wished: share of products that somebody wishes for, of those that are not overpriced.
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
    "tiny": Difficulty(900, (2, 2), (2, 2), 1, (4, 6), 1.0, wordy=False),
    "small": Difficulty(300, (4, 6), (1, 2), 1, (2, 4), 0.6),
    "default": Difficulty(3000, (5, 8), (2, 3), 3, (2, 6), 0.4),
}
DIFFICULTIES: Final = tuple(SETTINGS)


@lru_cache(maxsize=len(SETTINGS))
def catalogue(difficulty: str = "default") -> Catalogue:
    """Return the catalogue of a difficulty; it is made once per process.

    Raises:
        ValueError: the difficulty is none of `DIFFICULTIES`.
    """
    if difficulty not in SETTINGS:
        raise ValueError(
            f"unknown difficulty {difficulty!r} of the bundled catalogue; "
            f"expected one of {', '.join(DIFFICULTIES)}"
        )
    return Catalogue(_entries(difficulty))


def _entries(difficulty: str) -> list[Entry]:
    settings = SETTINGS[difficulty]
    draws = Draws(VERSION, crc32(difficulty.encode()))
    table = kinds(few_words=not settings.wordy)
    # Round and round through the kinds, a family each time.
    designs: list[Design] = []
    while len(designs) < settings.products:
        for kind in table:
            designs.extend(_family(kind, settings, draws))
    del designs[settings.products :]
    asins = _asins(len(designs), settings, draws)
    return [
        _entry(design, asin, settings, draws) for design, asin in zip(designs, asins, strict=True)
    ]


def _asins(n: int, settings: Difficulty, draws: Draws) -> list[str]:
    """Draw ids that look like the usual ones; where all is short, count: BA0, BE0 ... ZU9.

    Neighbours, which are often twins, have different letters.
    """
    if not settings.wordy:
        return [f"{start}{number}" for number in range(10) for start in _SYLLABLES][:n]
    found: dict[str, None] = {}
    while len(found) < n:
        found["B0" + "".join(draws.pick(_ASIN_LETTERS) for _ in range(8))] = None
    return list(found)


def _family(kind: Kind, settings: Difficulty, draws: Draws) -> Iterator[Design]:
    """Draw a design and its near-duplicates."""
    first = Design(
        kind=kind,
        brand=draws.pick(names().brands),
        line=draws.pick(names().lines),
        use=draws.pick(kind.uses),
        attributes=tuple(draws.some(kind.attributes, draws.between(settings.attributes))),
        options=_options(kind, settings, draws),
        price=_price(kind, draws),
    )
    yield first
    for _ in range(draws.pick(_FAMILY) - 1):
        yield draws.pick(_CHANGES)(first, settings, draws)


def _other_attribute(design: Design, settings: Difficulty, draws: Draws) -> Design:
    """Exchange the most striking attribute, title included, or a later one."""
    place = int(draws.uniform() * min(3, len(design.attributes)))
    new = draws.pick([text for text in design.kind.attributes if text not in design.attributes])
    kept = list(design.attributes)
    kept[place] = new
    return replace(design, attributes=tuple(kept))


def _other_maker(design: Design, settings: Difficulty, draws: Draws) -> Design:
    """Keep what it is, with other names and another price."""
    brand, line = draws.pick(names().brands), draws.pick(names().lines)
    return replace(design, brand=brand, line=line, price=_price(design.kind, draws))


def _other_choices(design: Design, settings: Difficulty, draws: Draws) -> Design:
    return replace(design, options=_options(design.kind, settings, draws))


def _dearer(design: Design, settings: Difficulty, draws: Draws) -> Design:
    """Put it above any limit that a wish for the first one can have (40 dollars more at most)."""
    return replace(design, price=design.price + 41 + int(draws.uniform() * 9), overpriced=True)


_CHANGES: Final = (_other_attribute, _other_attribute, _other_maker, _other_choices, _dearer)


def _options(kind: Kind, settings: Difficulty, draws: Draws) -> dict[str, tuple[str, ...]]:
    """Draw options and their values, both in the order of the table."""
    chosen = set(draws.some(list(kind.options), settings.options))
    found = {}
    for name, values in kind.options.items():
        if name in chosen:
            drawn = set(draws.some(values, draws.between(settings.values)))
            found[name] = tuple(value for value in values if value in drawn)
    return found


def _price(kind: Kind, draws: Draws) -> float:
    """Draw a whole number of dollars, cheap ones more often than dear ones."""
    low, high = kind.price
    return float(int(low * (high / low) ** draws.uniform()))


def _entry(design: Design, asin: str, settings: Difficulty, draws: Draws) -> Entry:
    """Give a design its words, its price tag and the wishes for it."""
    kind = design.kind
    pricing, bought = _pricing(design, settings, draws)
    wordy = settings.wordy
    product = Product(
        asin=asin,
        title=wording.title(design, draws)
        if wordy
        else wording.plain_phrase(kind, design.attributes),
        description=wording.description(design, draws) if wordy else "",
        bullets=wording.bullets(design, draws) if wordy else (),
        category=kind.department,
        query=kind.query,
        product_category=kind.path,
        attributes=design.attributes,
        pricing=pricing,
        price_tag=" to ".join(f"${price if wordy else int(price)}" for price in pricing),
        purchase_price=bought,
        options=design.options,
    )
    if design.overpriced or draws.uniform() >= settings.wished:
        return Entry(product)
    return Entry(product, _synthetic(design, settings, draws), (_human(design, settings, draws),))


def _pricing(design: Design, settings: Difficulty, draws: Draws) -> tuple[tuple[float, ...], float]:
    """Return the numbers of the price tag and what is paid in the end."""
    if not settings.wordy:
        return (design.price,), design.price
    price = round(design.price + draws.pick(_CENTS), 2)
    if draws.uniform() >= _PRICED_AS_RANGE:
        return (price,), price
    most = round(price * (1.15 + 0.6 * draws.uniform()), 2)
    return (price, most), round(price + (most - price) * draws.uniform(), 2)


def _asked(design: Design, settings: Difficulty, draws: Draws) -> list[str]:
    """Draw attributes that a search can find: those of title and description."""
    return draws.some(design.attributes[:5], draws.between(settings.asked))


def _synthetic(design: Design, settings: Difficulty, draws: Draws) -> Wish:
    asked = _asked(design, settings, draws)
    return Wish(wording.order(design.kind, asked, draws, plain=not settings.wordy), tuple(asked))


def _human(design: Design, settings: Difficulty, draws: Draws) -> Wish:
    """Ask for some attributes and for one value each of some options."""
    asked = _asked(design, settings, draws)
    chosen = {
        name: draws.pick(values)
        for name, values in design.options.items()
        if draws.uniform() < _OPTION_ASKED
    }
    text = wording.request(design.kind, asked, chosen, draws)
    return Wish(text, tuple(asked), tuple(chosen.values()))

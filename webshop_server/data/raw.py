"""Read the original's raw files product by product, so that a catalogue of any size fits."""

from __future__ import annotations

import logging
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from webshop_server.data.catalogue import Catalogue
from webshop_server.data.json_stream import Place, elements
from webshop_server.data.products import Entry, Product, Wish
from webshop_server.errors import CatalogueError

_log = logging.getLogger(__name__)

_PRODUCTS, _ATTRIBUTES, _HUMAN = "items_shuffle", "items_ins_v2", "items_human_ins.json"
_LONGEST_ASIN = 10
# The price of a product that names none.
_DEFAULT_PRICE = 100.0
# The attributes that the original gives a product without any in the file of attributes.
_NO_ATTRIBUTES = ("DUMMY_ATTR",)


def find_files(source: str | Path) -> tuple[Path, Path, Path | None]:
    """Find the files in a directory, or beside the file of products `source`.

    Returns:
        The files of products, of attributes and of human instructions, None if the last is missing.

    Raises:
        CatalogueError: a file is missing; the text names it.
    """
    source = Path(source)
    products = source
    if source.is_dir():
        # The complete set if it is there, else the small one.
        found = [source / f"{_PRODUCTS}{size}.json" for size in ("", "_1000")]
        products = next((path for path in found if path.is_file()), found[0])
    size = "_1000" if products.stem.endswith("_1000") else ""
    attributes = products.parent / f"{_ATTRIBUTES}{size}.json"
    for path in (products, attributes):
        if not path.is_file():
            raise CatalogueError(
                f"no file {path}; expected a directory with {_PRODUCTS}.json, {_ATTRIBUTES}.json "
                f"and, for human goals, {_HUMAN} (or the first two with _1000 in their names)"
            )
    human = products.parent / _HUMAN
    return products, attributes, human if human.is_file() else None


def read_catalogue(source: str | Path, *, limit: int | None = None, seed: int = 0) -> Catalogue:
    """Read raw files into memory; the arguments and errors are those of `read_entries`."""
    return Catalogue(read_entries(source, limit=limit, seed=seed), seed)


def read_entries(
    source: str | Path,
    *,
    limit: int | None = None,
    seed: int = 0,
    tell: Callable[[str], None] = _log.info,
) -> Iterator[Entry]:
    """Yield the products of raw files as the original loads them.

    Leaves out rows without a proper id; of rows with the same id the first counts.

    Args:
        source: as for `find_files`.
        limit: take only so many rows.
        seed: of the prices of products that name a range.
        tell: called at the end with a line that says how many rows were left out.

    Raises:
        CatalogueError: a file is missing or broken, or a product lacks a field.
    """
    products_file, attributes_file, human_file = find_files(source)
    attributes = _read_attributes(attributes_file)
    human = _read_human(human_file) if human_file else {}
    rng = random.Random(seed)
    seen: set[str] = set()
    rows = left_out = 0
    for _, row, place in elements(products_file, "["):
        if rows == limit:
            break
        rows += 1
        fields = _Fields(row, place, f"product {rows}")
        asin = fields.text("asin")
        if not asin.isprintable():
            raise fields.wrong("field 'asin'", asin, "a text of printable characters")
        if asin == "nan" or len(asin) > _LONGEST_ASIN or asin in seen:
            left_out += 1
            continue
        seen.add(asin)
        known, wish = attributes.get(asin, (None, None))
        product = _product(fields, _NO_ATTRIBUTES if known is None else known, rng)
        yield Entry(product, wish, human.get(asin, ()))
    if left_out:
        tell(f"{source}: left out {left_out:,} of {rows:,} rows: no proper id, or a repeated one")


class _Fields:
    """A row of a raw file; checks each field when it is read."""

    def __init__(self, row: Any, place: Place, name: str) -> None:
        self._place, self._name = place, name
        if not isinstance(row, dict):
            raise self.wrong("row", row, "an object")
        self._row = row

    def wrong(self, name: str, value: object, expected: str) -> CatalogueError:
        found = "is missing" if value is None else f"is {value!r:.50}"
        return self.error(f"{name} {found}; expected {expected}")

    def error(self, problem: str) -> CatalogueError:
        return CatalogueError(f"{self._place} ({self._name}): {problem}")

    def __contains__(self, name: str) -> bool:
        return name in self._row

    def text(self, name: str, default: str | None = None) -> str:
        value = self._row.get(name)
        value = default if value is None else value
        if not isinstance(value, str):
            raise self.wrong(f"field {name!r}", value, "a text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._row.get(name)
        if value is None:
            return ()
        if isinstance(value, str) and name == "small_description":
            value = [value]
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.wrong(f"field {name!r}", value, "a list of texts")
        # The same few thousand attributes occur in a million products.
        return tuple(map(sys.intern, value)) if "attributes" in name else tuple(value)

    def options(self) -> tuple[dict[str, tuple[str, ...]], dict[str, str | None]]:
        options: dict[str, tuple[str, ...]] = {}
        images: dict[str, str | None] = {}
        given = self._row.get("customization_options") or {}
        try:
            for name, choices in given.items():
                if choices is None:
                    continue
                values = [clean_option(choice["value"]) for choice in choices]
                options[name.lower()] = tuple(values)
                images |= {
                    value: choice.get("image")
                    for value, choice in zip(values, choices, strict=True)
                }
        except (AttributeError, KeyError, TypeError) as error:
            raise self.wrong(
                "field 'customization_options'", given, 'an object of lists of {"value": TEXT}'
            ) from error
        return options, images

    def price(self) -> tuple[tuple[float, ...], str]:
        text = self.text("pricing", "")
        try:
            return parse_price(text)
        except ValueError as error:
            raise self.error(
                f"price {text[:100]!r} cannot be read; expected a text such as '$12.99', "
                "'$12.99 - $15.49', or nothing"
            ) from error


def clean_option(value: str) -> str:
    """Return an option value as the shop shows it."""
    return value.strip().replace("/", " | ").lower()


def parse_price(text: str) -> tuple[tuple[float, ...], str]:
    """Read a price text such as "$12.99 - $15.49".

    Returns:
        The numbers (one, or the two ends of a range, in the order written) and the price tag.

    Raises:
        ValueError: the text holds no dollar sign, or no number after one.
    """
    if not text:
        return (_DEFAULT_PRICE,), f"${_DEFAULT_PRICE}"
    numbers = tuple(float(re.sub(r"[^\d.]", "", part)) for part in text.split("$")[1:])
    if not numbers:
        raise ValueError("no dollar sign")
    return numbers[:2], " to ".join(f"${number}" for number in numbers[:2])


def purchase_price(pricing: tuple[float, ...], rng: random.Random) -> float:
    """Return what a product costs; draws a number from `rng` for a price range."""
    return pricing[0] if len(pricing) == 1 else rng.uniform(*pricing)


def _product(fields: _Fields, attributes: tuple[str, ...], rng: random.Random) -> Product:
    options, images = fields.options()
    pricing, tag = fields.price()
    return Product(
        asin=fields.text("asin"),
        title=fields.text("name"),
        description=fields.text("full_description", ""),
        bullets=fields.texts("small_description"),
        category=fields.text("category"),
        query=fields.text("query").lower().strip(),
        product_category=fields.text("product_category"),
        attributes=attributes,
        pricing=pricing,
        price_tag=tag,
        purchase_price=purchase_price(pricing, rng),
        options=options,
        option_images=images,
        image=next(iter(fields.texts("images")), ""),
    )


def _read_attributes(path: Path) -> dict[str, tuple[tuple[str, ...] | None, Wish | None]]:
    found = {}
    for asin, row, place in elements(path, "{"):
        fields = _Fields(row, place, asin)
        attributes = fields.texts("attributes") if "attributes" in fields else None
        text = fields.text("instruction", "")
        wish = Wish(text, fields.texts("instruction_attributes")) if text else None
        found[asin] = (attributes, wish)
    return found


def _read_human(path: Path) -> dict[str, tuple[Wish, ...]]:
    found = {}
    for asin, rows, place in elements(path, "{"):
        if not isinstance(rows, list):
            raise CatalogueError(f"{place} ({asin}): expected a list of instructions")
        wishes = []
        for row in rows:
            fields = _Fields(row, place, asin)
            attributes = fields.texts("instruction_attributes")
            # The original makes no goal of an instruction without attributes.
            if attributes:
                options = fields.texts("instruction_options")
                wishes.append(Wish(fields.text("instruction"), attributes, options))
        found[asin] = tuple(wishes)
    return found

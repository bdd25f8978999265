"""The content of a catalogue: products, and the wishes that goals are made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(frozen=True, slots=True)
class Product:
    """One product as it is shown and searched; texts are as the raw file has them.

    Attributes:
        asin: its id, upper case, at most 10 characters.
        title: the raw `name`.
        description: the raw `full_description`.
        bullets: the raw `small_description`, one entry per feature.
        category: department, such as "beauty".
        query: the phrase it was crawled by, lower case.
        product_category: path of categories, parted by " › ".
        attributes: the properties that a goal may ask for.
        pricing: numbers of the price tag: one, or two of a range; (100.0,) without a price.
        price_tag: the price as it is shown, "$12.5" or "$27.0 to $33.98".
        purchase_price: the price paid at the purchase, drawn from the range and never shown.
        options: option name -> its values, in the order shown; both lower case.
        option_images: option value -> address of its picture, if it has one.
        image: address of the main picture, may be empty.
    """

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    category: str
    query: str
    product_category: str
    attributes: tuple[str, ...]
    pricing: tuple[float, ...]
    price_tag: str
    purchase_price: float
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    option_images: Mapping[str, str | None] = field(default_factory=dict)
    image: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """An instruction before options and a price limit are added.

    Attributes:
        text: the instruction.
        attributes: the attributes it asks for.
        options: the option values it asks for (only of a crowd worker's instruction).
    """

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A product and the wishes that goals are made from.

    Attributes:
        product: the product.
        synthetic: one goal for every choice of options is made from it.
        human: one goal is made from each.
    """

    product: Product
    synthetic: Wish | None = None
    human: tuple[Wish, ...] = ()


_PRODUCT_FIELDS = tuple(field.name for field in fields(Product))


def encode(entry: Entry) -> bytes:
    """Return an entry as one line of JSON; equal entries give equal bytes."""
    product = [getattr(entry.product, name) for name in _PRODUCT_FIELDS]
    wish = entry.synthetic
    synthetic = None if wish is None else (wish.text, wish.attributes)
    human = [(wish.text, wish.attributes, wish.options) for wish in entry.human]
    # Escapes for all but ASCII: a lone surrogate of a raw file has no other form in UTF-8.
    return json.dumps((product, synthetic, human), separators=(",", ":")).encode("ascii")


def decode(line: bytes) -> Entry:
    """Return the entry that `encode` wrote."""
    product, synthetic, human = json.loads(line)
    values = dict(zip(_PRODUCT_FIELDS, product, strict=True))
    for name in ("bullets", "attributes", "pricing"):
        values[name] = tuple(values[name])
    values["options"] = {name: tuple(offered) for name, offered in values["options"].items()}
    return Entry(
        Product(**values),
        None if synthetic is None else Wish(synthetic[0], tuple(synthetic[1])),
        tuple(Wish(text, tuple(names), tuple(wanted)) for text, names, wanted in human),
    )


def document(product: Product) -> str:
    """Return the text of a product that is indexed: title, description, first bullet, options."""
    options = ", and ".join(
        f"{name}: {', '.join(values)}" for name, values in product.options.items()
    )
    first = product.bullets[0] if product.bullets else ""
    return " ".join((product.title, product.description, first, options)).lower()

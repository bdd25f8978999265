"""What a catalogue holds of a product: itself and the wishes that goals are made from."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

from .records import Product

_PRODUCT = tuple(field.name for field in fields(Product))


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asked for in words, before options and a price limit are added.

    Attributes:
        text: the instruction.
        attributes: what it asks for.
        options: the option values it asks for (of a crowd worker's instruction only).
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


def encode(entry: Entry) -> bytes:
    """Return an entry as one line of JSON; equal entries give equal bytes."""
    product = [getattr(entry.product, name) for name in _PRODUCT]
    wish = entry.synthetic
    synthetic = None if wish is None else (wish.text, wish.attributes)
    human = [(wish.text, wish.attributes, wish.options) for wish in entry.human]
    # Escapes for all but ASCII: a lone surrogate of a raw file has no other form in UTF-8.
    return json.dumps((product, synthetic, human), separators=(",", ":")).encode("ascii")


def decode(line: bytes) -> Entry:
    """Return the entry that `encode` wrote."""
    product, synthetic, human = json.loads(line)
    values = dict(zip(_PRODUCT, product, strict=True))
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

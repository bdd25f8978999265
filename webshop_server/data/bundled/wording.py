"""The texts of a product: title, description, bullets, and wishes for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from webshop_server.data.bundled.kinds import ProductKind, table
from webshop_server.data.bundled.rng import Rng

# Words that start with the sound of "you": usb, usda, uv.
_SAID_WITH_Y: Final = ("us", "uv")
_TEXTS: Final = table("wording")


@dataclass(frozen=True, slots=True)
class Design:
    """A product before it has texts.

    Attributes:
        kind: the kind of product.
        brand: its maker.
        line: name of the product line.
        use: its user or purpose.
        attributes: its attributes, most striking first.
        options: option name -> values on offer.
        price: of the cheapest choice in dollars.
        overpriced: dearer than its twin, so that no wish is made for it.
    """

    kind: ProductKind
    brand: str
    line: str
    use: str
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    price: float
    overpriced: bool = False


def title(design: Design, rng: Rng) -> str:
    """Return a title with the first two attributes."""
    kind = design.kind
    first, second = (_joined(kind, text) for text in design.attributes[:2])
    # An attribute after "with" or "for" cannot stand before the noun.
    titles = _TEXTS["titles"]
    patterns = titles if first == design.attributes[0] else titles[:3]
    text = rng.pick(patterns).format(
        brand=design.brand,
        line=design.line,
        noun=capitalised(kind.noun),
        first=capitalised(first),
        second=capitalised(second),
        use=capitalised(design.use),
    )
    return text[0].upper() + text[1:]


def description(design: Design, rng: Rng) -> str:
    """Return two or three sentences that name the attributes from the second to the fifth."""
    return rng.pick(_TEXTS["descriptions"]).format(
        brand=design.brand,
        line=design.line,
        use=design.use,
        np=noun_phrase(design.kind, design.attributes[1:5]),
    )


def bullets(design: Design, rng: Rng) -> tuple[str, ...]:
    """Return one bullet per attribute from the last to the third, and a closing one."""
    patterns = _TEXTS["bullets"]
    texts = rng.some(patterns, len(patterns))
    noun, brand = design.kind.noun, design.brand
    one, a = ("these", "") if noun.endswith("s") else ("this", "a ")
    lines = [
        texts[place % len(texts)].format(
            attribute=text.capitalize(), one=f"{one} {noun}", a=f"{a}good {noun}", noun=noun,
            brand=brand, line=design.line,
        )
        for place, text in enumerate(reversed(design.attributes[2:]))
    ]  # fmt: skip
    return (*lines, rng.pick(_TEXTS["closing"]).format(brand=brand))


def order(kind: ProductKind, attributes: Sequence[str], rng: Rng, *, plain: bool = False) -> str:
    """Return an instruction to which options are added as "name: value"."""
    if plain:
        return f"buy {plain_phrase(kind, attributes)}"
    return rng.pick(_TEXTS["orders"]).format(np=noun_phrase(kind, attributes))


def request(
    kind: ProductKind, attributes: Sequence[str], options: Mapping[str, str], rng: Rng
) -> str:
    """Return an instruction in a person's words, options included."""
    chosen = [
        _TEXTS["choices"].get(name, "with {value} " + name).format(value=value)
        for name, value in options.items()
    ]
    return rng.pick(_TEXTS["requests"]).format(
        np=noun_phrase(kind, attributes), options="".join(f", {text}" for text in chosen)
    )


def noun_phrase(kind: ProductKind, attributes: Sequence[str]) -> str:
    """Return such as "a vegan, sulfate free shampoo with keratin for dry hair and fine hair"."""
    adjectives = [text for text in attributes if text not in kind.links]
    text = f"{', '.join(adjectives)} {kind.noun}".strip()
    for link in ("with", "for"):
        linked = [one for one in attributes if kind.links.get(one) == link]
        if linked:
            text += f" {link} {' and '.join(linked)}"
    if kind.noun.endswith("s"):
        return text
    if kind.department == "grocery":
        return f"some {text}"
    vowel = text[0] in "aeiou" and not text.startswith(_SAID_WITH_Y)
    return f"an {text}" if vowel else f"a {text}"


def _joined(kind: ProductKind, attribute: str) -> str:
    return f"{kind.links.get(attribute, '')} {attribute}".strip()


def capitalised(text: str) -> str:
    """Return the text as titles have it: "With Argan Oil"; words such as "for" stay small."""
    small = {"for", "and", "with", "of", "to", "the"}
    return " ".join(word if word in small else word[:1].upper() + word[1:] for word in text.split())


def plain_phrase(kind: ProductKind, attributes: Sequence[str]) -> str:
    """Return such as "soft striped shirt"."""
    return " ".join([*attributes, kind.noun])

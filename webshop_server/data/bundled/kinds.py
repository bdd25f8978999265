"""Kinds of product, as the tables beside this file describe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from webshop_server.data.tables import read_table

DEPARTMENTS: Final = ("beauty", "electronics", "fashion", "garden", "grocery")
_LINKS: Final = {"+": "with", "~": "for"}


@dataclass(frozen=True, slots=True)
class ProductKind:
    """A kind of product: the properties its products can have.

    Attributes:
        department: one of `DEPARTMENTS`.
        noun: its name.
        query: the phrase it is found by in a shop's menu.
        path: its place in the tree of categories.
        attributes: all it may have.
        links: attribute -> "with" or "for", the word before it; the others are adjectives.
        options: option name -> values.
        price: lowest and highest price in dollars.
        uses: possible users or purposes, such as "for kids".
    """

    department: str
    noun: str
    query: str
    path: str
    attributes: tuple[str, ...]
    links: Mapping[str, str]
    options: Mapping[str, tuple[str, ...]]
    price: tuple[int, int]
    uses: tuple[str, ...]


@cache
def names() -> tuple[list[str], list[str]]:
    """Return invented names of makers and of their product lines."""
    pools = table("pools")
    return pools["brands"].split(), pools["lines"].split()


@cache
def kinds(few_words: bool = False) -> tuple[ProductKind, ...]:
    """Return all kinds, department by department; the ten of tiny.toml for `few_words`."""
    if few_words:
        return tuple(_kind(row, row["department"]) for row in table("tiny")["kind"])
    return tuple(_kind(row, name) for name in DEPARTMENTS for row in table(name)["kind"])


@cache
def table(name: str) -> Mapping[str, Any]:
    """Return a TOML file beside this module."""
    return read_table(Path(__file__).with_name(f"{name}.toml"))


def _kind(row: Mapping[str, Any], department: str) -> ProductKind:
    pools = table("pools")

    def values(text: str) -> tuple[str, ...]:
        return _listed(pools["pools"][text[1:]] if text.startswith("@") else text)

    attributes = _listed(row["attributes"])
    return ProductKind(
        department=department,
        noun=row["noun"],
        query=row["query"],
        path=f"{pools['roots'][department]} › {row['path']}",
        attributes=tuple(text.lstrip("+~") for text in attributes),
        links={text[1:]: _LINKS[text[0]] for text in attributes if text[0] in _LINKS},
        options={name: values(text) for name, text in row["options"].items()},
        price=(row["price"][0], row["price"][1]),
        uses=_listed(pools["uses"][department]),
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))

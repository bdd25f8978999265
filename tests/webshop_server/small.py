"""A shop of four products with every odd label that real catalogues have."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from webshop_server.data.catalogue import Catalogue
from webshop_server.data.products import Entry, Product, Wish
from webshop_server.packing import search_index
from webshop_server.rules.goals import Goals
from webshop_server.session import Session
from webshop_server.shop import Shop

LAMP = Product(
    asin="B000000001",
    title="Desk Lamp <Mini> & more",
    description="A lamp for the desk.\nIt shines.",
    bullets=("Warm light", "", "Small foot"),
    category="electronics",
    query="desk lamps",
    product_category="Home › Lamps",
    attributes=("warm light",),
    pricing=(10.0, 20.0),
    price_tag="$10.0 to $20.0",
    purchase_price=15.0,
    options={
        "color": ("black", "white", "next >"),
        "shade color": ("black", "red"),
        "pack": ("pack [2]", "[1]", "4  ounces"),
        "style": ("reviews", "<b>bold</b>", 'the "best"', "été"),
    },
)
LAMP_GOAL = "Find me a desk lamp with warm light"
PLAIN = replace(
    LAMP, asin="B000000002", title="Plain lamp", options={}, purchase_price=12.0, description=""
)
LAMPS = tuple(
    replace(PLAIN, asin=f"B0000001{number:02d}", title=f"Lamp number {number}")
    for number in range(23)
)


def catalogue() -> Catalogue:
    """The products: one with all oddities, one without options, and 23 more lamps."""
    wish = Wish(LAMP_GOAL, ("warm light",))
    entries = [Entry(LAMP, synthetic=wish), Entry(PLAIN, synthetic=wish)]
    return Catalogue([*entries, *(Entry(product) for product in LAMPS)])


def shop(profile: Literal["original", "clean"] = "clean", *, show_attributes: bool = False) -> Shop:
    """The shop that sells them."""
    stock = catalogue()
    goals = Goals.build(stock, "synthetic", profile)
    return Shop(stock, goals, search_index(stock), profile, show_attributes)


def shopper(profile: Literal["original", "clean"] = "clean", *actions: str) -> Session:
    """A shopper who wants the first goal, after some actions."""
    where = shop(profile)
    session = Session(where, where.goals[0])
    for action in actions:
        assert session.act(action).valid, action
    return session

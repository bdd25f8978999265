"""What crosses the module borders of the shop: products, goals, rewards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
        attributes: what a goal may ask for.
        pricing: numbers of the price tag: one, or two of a range; (100.0,) without a price.
        price_tag: the price as it is shown, "$12.5" or "$27.0 to $33.98".
        purchase_price: what it costs when bought, drawn once from the range and never shown.
        options: option name -> its values, in the order shown; both lower case.
        option_images: option value -> address of a picture, where there is one.
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
class Goal:
    """What a shopper is asked to buy.

    Attributes:
        goal_id: stable name of the goal, the id of the task.
        asin: the product it was made from.
        instruction: the text shown, price limit included.
        attributes: attributes asked for.
        options: (name, value) pairs of a synthetic goal; of a human one the names are "".
        price_upper: most the purchase may cost; 1000000.0 when the text names no limit.
        weight: of a random pick.
        kind: "synthetic" or "human".
        title, category, query, product_category: those of the product, which the reward compares.
    """

    goal_id: str
    asin: str
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    price_upper: float
    weight: float
    kind: str
    title: str
    category: str
    query: str
    product_category: str


@dataclass(frozen=True, slots=True)
class Reward:
    """Score of a purchase in [0, 1] and its parts, as far as they were computed.

    Attributes:
        total: type factor times (matched attributes + matched options + price) / (all of them).
        type_factor: in [0, 1], how alike the products are.
        attribute: share of the attributes matched.
        option: share of the options matched; None when none was asked for.
        price: whether the price is within the limit.
        info: all parts under the names of the literature (r_type, r_att, w_att, ...).
    """

    total: float
    type_factor: float
    attribute: float
    option: float | None
    price: bool
    info: Mapping[str, float | bool | None]

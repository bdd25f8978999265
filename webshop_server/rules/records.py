"""Goals and rewards, which the modules of the shop exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Profile = Literal["original", "clean"]
GoalKind = Literal["synthetic", "human"]
Split = Literal["train", "validation", "test"]


@dataclass(frozen=True, slots=True)
class ShoppingGoal:
    """A shopping task: a product to find, with attributes, options and a price limit.

    Attributes:
        goal_id: stable name of the goal, the id of the task.
        asin: the product it was made from.
        instruction: the text shown, price limit included.
        attributes: attributes asked for.
        options: (name, value) pairs of a synthetic goal; of a human one the names are "".
        price_upper: the price limit; 1000000.0 if the text names none.
        weight: of the goal in a random draw of the original.
        kind: "synthetic" or "human".
        title, category, query, product_category: of the product, for the reward to compare.
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
    """Score of a purchase in [0, 1] and its parts.

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

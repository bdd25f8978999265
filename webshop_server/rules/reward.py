"""The score of a purchase: type, attributes, options and price.

With A the goal's attributes, O its options and t the type factor,

    reward = t * (matched attributes + matched options + [price <= limit]) / (|A| + |O| + 1)

Profile "original" scores as the literature's program does, quirks included. Profile "clean"
differs where that is unfair: an option is compared with the goal's by the value alone, both sides
reduced to a colour alike; the very product that was asked for has the type factor 1; a goal without
attributes is possible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from webshop_server.data.products import Product
from webshop_server.errors import RewardError
from webshop_server.rules.matching import alike, normalize_color, normalize_pair
from webshop_server.rules.nouns import NounFinder, rule
from webshop_server.rules.records import Profile, Reward, ShoppingGoal

# Thresholds for the share of the goal's title nouns, and the type factors below them.
_SAME_TITLE, _OTHER_TITLE = 0.2, 0.1
_SCORE_WITHOUT_NOUNS = 0.2
_OTHER_TYPE, _WRONG_TYPE = 0.5, 0.1


@dataclass(frozen=True, slots=True)
class TypeMatch:
    """The similarity of two products; `factor` is the t of the formula."""

    factor: float
    query: bool
    category: bool
    title: float


def score(
    product: Product,
    goal: ShoppingGoal,
    options: Mapping[str, str],
    price: float,
    *,
    profile: Profile = "clean",
    nouns: NounFinder = rule,
) -> Reward:
    """Score a purchase.

    Args:
        product: the product bought.
        goal: the task.
        options: the chosen options, name -> value.
        price: the price paid in dollars.
        profile: "original" or "clean", see above.
        nouns: finds the nouns of the titles.

    Raises:
        RewardError: the goal has no positive price limit, or (original) no attributes.
    """
    if not goal.price_upper > 0:
        raise RewardError(
            f"goal {goal.goal_id}: price limit {goal.price_upper}; expected more than 0"
        )
    if profile == "original" and not goal.attributes:
        raise RewardError(
            f"goal {goal.goal_id} asks for no attributes; expected at least one "
            "(profile 'clean' allows none)"
        )
    kind = type_match(product, goal, nouns)
    factor = 1.0 if profile == "clean" and product.asin == goal.asin else kind.factor
    attributes = attribute_matches(product, goal.attributes)
    matched = option_matches(options.values(), goal.options, profile)
    affordable = price <= goal.price_upper
    parts = len(goal.attributes) + len(goal.options) + 1
    total = factor * ((attributes + matched + affordable) / parts)
    attribute = attributes / len(goal.attributes) if goal.attributes else 1.0
    option = matched / len(goal.options) if goal.options else None
    info: dict[str, float | bool | None] = {
        "r_type": factor,
        "r_att": attribute,
        "w_att": len(goal.attributes) / parts,
        "query_match": kind.query,
        "category_match": kind.category,
        "title_score": kind.title,
    }
    if goal.options:
        info |= {"r_option": option, "w_option": len(goal.options) / parts}
    info |= {"r_price": affordable, "w_price": 1 / parts}
    return Reward(total, factor, attribute, option, affordable, info)


def type_match(product: Product, goal: ShoppingGoal, nouns: NounFinder = rule) -> TypeMatch:
    """Compare query, category path and title nouns of a product and of a goal's product."""
    wanted = nouns(goal.asin, goal.title)
    common = set(wanted) & set(nouns(product.asin, product.title))
    title = len(common) / len(wanted) if wanted else _SCORE_WITHOUT_NOUNS
    query = product.query == goal.query
    category = len(_path(product.product_category) & _path(goal.product_category)) >= 2
    if title == 0:
        factor = 0.0
    elif title < _OTHER_TITLE:
        factor = _WRONG_TYPE
    else:
        factor = 1.0 if query or category or title > _SAME_TITLE else _OTHER_TYPE
    return TypeMatch(factor, query, category, title)


def attribute_matches(product: Product, wanted: Collection[str]) -> int:
    """Count the wanted attributes that the product lists or names in one of its texts."""
    texts = [
        text.lower() for text in (product.title, " ".join(product.bullets), product.description)
    ]
    return sum(
        any(name in text for text in texts)
        or any(alike(attribute, name) for attribute in product.attributes)
        for name in wanted
    )


def option_matches(
    bought: Collection[str], wanted: Collection[tuple[str, str]], profile: Profile
) -> int:
    """Count the wanted (name, value) pairs that one of the bought values matches."""
    values = [normalize_color(value) for value in bought]
    if profile == "clean":
        # Sorted, because the ratio of a and b may differ from that of b and a.
        return sum(
            value in bought
            or any(alike(*sorted((normalize_color(value), other))) for other in values)
            for _, value in wanted
        )
    goals = [normalize_pair(*pair) if pair[0] else normalize_color(pair[1]) for pair in wanted]
    return sum(any(alike(other, goal) for other in values) for goal in goals)


def _path(category: str) -> set[str]:
    return {part.strip() for part in category.split("›")}

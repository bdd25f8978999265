"""The reserved first words of a query, which the original never documented ("clean" has none)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webshop_server.data.catalogue import Catalogue
from webshop_server.errors import QueryError

_SAMPLED = 50
WORDS = frozenset({"<r>", "<a>", "<c>", "<q>"})


def hits(catalogue: Catalogue, keywords: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return the asins that a query with a reserved first word finds.

    `<r>`: 50 random products. `<c> department` and `<q> phrase`: all products of the department,
    or crawled by the phrase, in catalogue order; each goes through the whole catalogue.

    Raises:
        QueryError: where the original breaks down: any `<a>`, and `<c>` without a department.
    """
    word, *others = keywords
    if word == "<r>":
        count = min(_SAMPLED, len(catalogue))
        places = rng.choice(len(catalogue), size=count, replace=False)
        return [catalogue[int(place)].asin for place in places]
    if word == "<a>":
        raise QueryError("the shop has no list of products by attribute: search[<a> ...] fails")
    if word == "<q>":
        phrase = " ".join(others).strip()
        return [product.asin for product in catalogue if product.query == phrase]
    if not others:
        raise QueryError("search[<c>] fails without a department after it")
    department = others[0].strip()
    return [product.asin for product in catalogue if product.category == department]

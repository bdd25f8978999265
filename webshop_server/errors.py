"""The errors of the shop; each says what was wrong, what was expected, and what to do."""

from __future__ import annotations


class ShopError(Exception):
    """Base of every error of `webshop_server`."""


class CatalogueError(ShopError, ValueError):
    """A file of the catalogue is missing, broken, or not of the form it should have."""


class UnknownProductError(ShopError, LookupError):
    """No product of the catalogue has this id."""


class UnknownGoalError(ShopError, LookupError):
    """No goal has this id or number, or a split is not known."""


class RewardError(ShopError, ValueError):
    """The reward of a purchase is not defined: the goal asks for nothing, or has no price limit."""


class QueryError(ShopError, ValueError):
    """A query on which the original breaks down; its first word is a reserved one."""


class SearchError(ShopError, ValueError):
    """A search index cannot be built from these documents, or a saved one cannot be read."""

"""The shop of an environment: in this process, or on a server."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, get_args

from proxmo_envs.errors import (
    DataNotFoundError,
    InvalidOptionError,
    UnknownTaskError,
    quote,
    unknown,
)
from webshop_server.data.bundled import DIFFICULTIES
from webshop_server.data.lazy_sequence import Computed
from webshop_server.errors import ShopError, UnknownGoalError
from webshop_server.rules.goals import content_hash
from webshop_server.rules.records import GoalKind, Profile, Split
from webshop_server.session import Session
from webshop_server.shop import Shop

if TYPE_CHECKING:
    from proxmo_envs.webshop.remote import RemotePlay, RemoteShop


# The shop of an environment, and one episode in it; both come in the same two forms.
Source: TypeAlias = "LocalShop | RemoteShop"
Play: TypeAlias = "Session | RemotePlay"


def open_source(
    data: str | os.PathLike[str] | None = None,
    *,
    goals: str = "synthetic",
    profile: str = "clean",
    difficulty: str | None = None,
    show_attributes: bool = False,
    title_nouns: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
) -> Source:
    """Open the shop that the arguments of the environment name.

    Raises InvalidOptionError, DataNotFoundError and, with `base_url`, ServerError.
    """
    if base_url is not None:
        theirs = {
            "data": data,
            "difficulty": difficulty,
            "show_attributes": show_attributes,
            "title_nouns": title_nouns,
        }
        given = [name for name, value in theirs.items() if value]
        if given:
            raise InvalidOptionError(
                f"with base_url, {', '.join(given)} is for the server to choose: give it to "
                "`proxmo webshop serve`"
            )
    difficulty = "default" if difficulty is None else difficulty
    for name, value, known in (
        ("goals", goals, get_args(GoalKind)),
        ("profile", profile, get_args(Profile)),
        ("difficulty", difficulty, DIFFICULTIES),
    ):
        if value not in known:
            raise InvalidOptionError(unknown(name, value, known))
    if base_url is not None:
        from proxmo_envs.webshop.remote import RemoteShop

        return RemoteShop(base_url, goals=goals, profile=profile)
    try:
        shop = Shop.open(
            _path("data", data),
            goals=goals,  # type: ignore[arg-type]
            profile=profile,  # type: ignore[arg-type]
            difficulty=difficulty,
            show_attributes=show_attributes,
            title_nouns=_path("title_nouns", title_nouns),
        )
    except ShopError as error:
        raise DataNotFoundError(str(error)) from error
    return LocalShop(shop)


def _path(name: str, value: str | os.PathLike[str] | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidOptionError(f"{name} is a path, got {value!r:.100}")
    return os.fspath(value)


class LocalShop:
    """A shop inside this process, shared by all environments with the same arguments."""

    def __init__(self, shop: Shop) -> None:
        """Serve the goals of `shop`."""
        self.shop = shop

    def ids(self, split: str) -> Sequence[str]:
        """Return the ids of a split; raises InvalidOptionError for an unknown one."""
        if split not in get_args(Split):
            raise InvalidOptionError(unknown("split", split, get_args(Split)))
        numbers = self.shop.goals.split(split)  # type: ignore[arg-type]
        return Computed(len(numbers), partial(self._id, numbers))

    def _id(self, numbers: Sequence[int], index: int) -> str:
        return self.shop.goals.id_of(int(numbers[index]))

    def start(self, task: str | int) -> Session:
        """Start an episode; raises UnknownTaskError."""
        goals = self.shop.goals
        with _tasks_are_known(task):
            number = task if isinstance(task, int) else goals.index_of(task)
            if not 0 <= number < len(goals):
                raise UnknownTaskError(f"goal_index is from 0 to {len(goals) - 1}, not {number}")
            return Session(self.shop, goals[number], str(number))

    def content_hash(self, task_id: str) -> str:
        """Return the hash of a goal and of the shop it is played in; raises UnknownTaskError."""
        with _tasks_are_known(task_id):
            goal = content_hash(self.shop.goals.get(task_id))
        place = f"{self.shop.profile} {self.shop.catalogue.manifest_hash}"
        return hashlib.sha256(f"{place} {goal}".encode()).hexdigest()

    def release(self) -> None:
        """Do nothing: a shop in this process holds no sessions."""

    def __deepcopy__(self, memo: dict[int, object]) -> LocalShop:
        """Return the shop itself, because it never changes."""
        return self


@contextmanager
def _tasks_are_known(task: str | int) -> Iterator[None]:
    try:
        yield
    except UnknownGoalError as error:
        raise UnknownTaskError(f"unknown task {quote(task)}: {error}") from error

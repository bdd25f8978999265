"""One shopper: the page they are on, the options they chose, and the effect of an action.

The profile "original" follows the recorded benchmark, oddities included: a search works on every
page, "< prev" is decided by words found in the address, and the shop stays open after a purchase.
In "clean" an action works where the page offers it, and a purchase ends the episode.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from webshop_server.data.products import Product
from webshop_server.errors import QueryError
from webshop_server.rules import actions, reserved_words, text_forms
from webshop_server.rules.pages import Move, Page, PageKind, Target, clickables, on_page
from webshop_server.rules.records import Reward, ShoppingGoal
from webshop_server.shop import Shop

_MOST_RESULTS = 50
_COUNTED_AS = {Move.PRODUCT: "asin", Move.OPTION: "options", Move.BUY: "purchase"}


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action.

    Attributes:
        reward: the score, in [0, 1], at a purchase; otherwise 0.
        done: whether the action ended the episode (in "clean" also: whether it had ended before).
        valid: whether the action did anything.
        complaint: why it did nothing, for the agent to read.
        score: of the purchase, with its parts.
    """

    reward: float = 0.0
    done: bool = False
    valid: bool = True
    complaint: str | None = None
    score: Reward | None = None


@dataclass(slots=True)
class State:
    """The state of a shopper; the fields are those of the recordings."""

    keywords: tuple[str, ...] | None = None
    page: int | None = None
    asin: str | None = None
    asins: frozenset[str] = frozenset()
    options: dict[str, str] = field(default_factory=dict)
    actions: Counter[str] = field(default_factory=Counter)
    done: bool = False


class Session:
    """The state machine of one shopper with one goal."""

    def __init__(
        self,
        shop: Shop,
        goal: ShoppingGoal,
        session_id: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        """Start on the search page; `rng` draws the products of the original's `search[<r>]`."""
        self.shop = shop
        self.goal = goal
        self.session_id = goal.goal_id if session_id is None else session_id
        self.state = State()
        self._found: tuple[tuple[str, ...], Sequence[str]] | None = None
        self._rng = rng or np.random.default_rng(0)
        self._clickables: dict[str, Target] | None = None
        self._show(PageKind.SEARCH)

    @property
    def task(self) -> str:
        """The instruction."""
        return self.goal.instruction

    @property
    def task_id(self) -> str:
        """The id of the goal."""
        return self.goal.goal_id

    @property
    def task_type(self) -> str:
        """The department of the goal's product."""
        return self.goal.category

    @property
    def clickables(self) -> dict[str, Target]:
        """The possible clicks of the page by label."""
        if self._clickables is None:
            self._clickables = clickables(self.page)
        return self._clickables

    @property
    def admissible(self) -> list[str]:
        """The admissible actions; a blank in < > stands for any words."""
        offered = [f"{actions.CLICK}[{label}]" for label in self.clickables]
        return [actions.SEARCH_TEMPLATE, *offered] if self.page.has_search_bar else offered

    def observe(self, mode: str = "text") -> str:
        """Return the page as "text", "text_rich", "url" or "html"."""
        return text_forms.observe(self.page, mode)

    def act(self, action: str) -> ActionResult:
        """Carry out one action; a malformed or inadmissible one changes nothing and says why."""
        original = self.shop.profile == "original"
        if self.state.done and not original:
            return ActionResult(
                done=True, valid=False, complaint="you have bought: the shop is closed"
            )
        name, argument = (actions.parse_original if original else actions.parse_clean)(action)
        if name == actions.SEARCH and argument is not None:
            return self._search(argument)
        if name == actions.CLICK and argument is not None:
            target = self.clickables.get(argument)
            # In the original nobody can click an option called "search", nor the search button.
            if target is None or argument == actions.SEARCH:
                return _refused(f"this page has no {argument[:100]!r} to click")
            return self._click(target)
        return _refused("an action is search[words] or click[something the page shows]")

    def _search(self, query: str) -> ActionResult:
        if self.shop.profile == "clean":
            if not self.page.has_search_bar:
                return _refused("this page has no search bar: click[back to search] first")
            if not query:
                return _refused("an empty search finds nothing: write search[words]")
        self.state.keywords = tuple(query.split(" "))
        return self._show_results(1)

    def _click(self, target: Target) -> ActionResult:
        state = self.state
        counted = target.value if target.move is Move.TAB else _COUNTED_AS.get(target.move)
        if counted is not None:
            state.actions[counted] += 1
        if target.move is Move.HOME:
            self.state = State(done=state.done)
            return self._show(PageKind.SEARCH)
        if target.move is Move.NEXT:
            return self._show_results((state.page or 0) + 1)
        if target.move is Move.PREVIOUS:
            return self._previous()
        if target.move is Move.TAB:
            return self._show(PageKind.DETAIL, tab=target.value)
        if target.move is Move.BUY:
            return self._buy()
        if target.move is Move.PRODUCT:
            state.asin = target.value
            state.asins |= {target.value}
        else:
            state.options = {**state.options, target.option: target.value}
        return self._show(PageKind.ITEM)

    def _previous(self) -> ActionResult:
        number = self.state.page or 0
        where = self._where()
        if where is PageKind.RESULTS:
            return self._show_results(number - 1)
        return self._show_results(number) if where is PageKind.ITEM else self._show(PageKind.ITEM)

    def _where(self) -> PageKind:
        """Return the kind of this page; the original takes the first kind named in the address."""
        if self.shop.profile == "clean":
            return self.page.kind
        address = text_forms.url(self.page)
        named = (PageKind.RESULTS, PageKind.ITEM, PageKind.DETAIL, PageKind.DONE)
        return next(kind for kind in named if kind.value in address)

    def _buy(self) -> ActionResult:
        product = self._product()
        score = self.shop.score(product, self.goal, self.state.options)
        self.state.done = True
        self._show(PageKind.DONE, score=score.total)
        return ActionResult(score.total, done=True, score=score)

    def _show_results(self, number: int) -> ActionResult:
        state = self.state
        state.page = number
        state.actions["search"] += 1
        try:
            hits = self._hits(state.keywords or ())
        except QueryError as error:
            # The page and its product stay.
            return _refused(str(error))
        state.asin, state.options = None, {}
        products = tuple(map(self.shop.catalogue.get, on_page(hits, number)))
        return self._show(PageKind.RESULTS, total=len(hits), products=products)

    def _hits(self, keywords: tuple[str, ...]) -> Sequence[str]:
        """Return the asins a search finds, best first; raises `QueryError`."""
        if self.shop.profile == "original" and keywords[0] in reserved_words.WORDS:
            return reserved_words.hits(self.shop.catalogue, keywords, self._rng)
        if self._found is None or self._found[0] != keywords:
            found = self.shop.index.search(" ".join(keywords), _MOST_RESULTS)
            self._found = keywords, found
        return self._found[1]

    def _product(self) -> Product:
        assert self.state.asin is not None
        return self.shop.catalogue.get(self.state.asin)

    def _show(
        self,
        kind: PageKind,
        *,
        tab: str = "",
        total: int = 0,
        products: tuple[Product, ...] = (),
        score: float | None = None,
    ) -> ActionResult:
        """Go to a page."""
        state = self.state
        self._clickables = None
        self.page = Page(
            kind,
            self.session_id,
            self.goal.instruction,
            self.shop.profile,
            keywords=state.keywords or (),
            number=state.page or 0,
            total=total,
            products=products,
            product=None if state.asin is None else self._product(),
            tab=tab,
            options=state.options,
            visited=state.asins,
            score=score,
            show_attributes=self.shop.show_attributes,
        )
        return ActionResult()

    def __deepcopy__(self, memo: dict[int, object]) -> Session:
        """Copy the shopper, not the shop: pages, products and goals never change."""
        twin = copy.copy(self)
        twin.state = copy.deepcopy(self.state, memo)
        twin._rng = copy.deepcopy(self._rng, memo)
        return twin


def _refused(complaint: str) -> ActionResult:
    return ActionResult(valid=False, complaint=complaint)

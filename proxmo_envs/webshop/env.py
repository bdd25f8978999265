"""WebShop as a Gymnasium environment."""

from __future__ import annotations

import copy
import os
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import gymnasium

from proxmo_envs.arguments import (
    Kinds,
    check_expert,
    check_flag,
    check_names,
    check_snapshot,
    reset_option,
)
from proxmo_envs.errors import (
    InvalidActionError,
    InvalidOptionError,
    NoEpisodeError,
    ShopFullError,
    unknown,
)
from proxmo_envs.task import TaskSet
from proxmo_envs.text_space import TextSpace
from proxmo_envs.webshop.sources import Play, open_source
from webshop_server.rules.actions import SEARCH_TEMPLATE
from webshop_server.rules.text_forms import MODES, with_history
from webshop_server.session import ActionResult

if TYPE_CHECKING:
    from proxmo_envs.webshop.expert import ShopExpert

# How each profile shares out the goals, for a message.
_SPLITS = {
    "clean": "goals that no purchase meets are left out, all those of a product are in one split",
    "original": "the first 500 are for test, the next 1,000 for validation",
}
_OPTIONS: Kinds = {"task_id": (str, "a string"), "goal_index": (Integral, "a whole number")}


@dataclass(slots=True)
class _Moment:
    """Where an episode stands: the shopper, what was last done, what was seen and done before."""

    play: Play
    expert: ShopExpert | None
    pages: deque[str]
    actions: deque[str]
    page: str
    observation: str
    action: str | None = None
    last: ActionResult = field(default_factory=ActionResult)
    # The last purchase: the original profile allows more than one.
    bought: ActionResult = field(default_factory=ActionResult)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A moment of an episode, for search and branching; it can be restored any number of times."""

    moment: _Moment
    observation_mode: str


class WebShopEnv(gymnasium.Env[str, str]):
    """A web shop in text: find the product an instruction describes, choose its options, buy it.

    Description:
        Five kinds of pages: search, results (ten a page, fifty at most), product, details of a
        product, purchase. The instruction names attributes, options and a price limit. Profile
        "original" is the published benchmark as recorded, oddities included; "clean" mends them
        (docs/webshop.md lists all differences). Numbers of one do not compare with the other's.

    Observation:
        The page, as `observation_mode` says: "text" (texts joined by " [SEP] "), "text_rich" (one
        line each, buttons marked), "url" or "html". With `num_prev_obs` and `num_prev_actions`, the
        last pages and actions come first.

    Actions:
        `search[words]` on a page with a search bar, `click[label]` on what the page shows, in any
        case. In "clean" it must be one of `info["admissible_actions"]`, with any words for the
        blank of `search[<your query>]`; what is not on offer costs a step and changes nothing. In
        "original" a search works on every page.

    Rewards:
        The score in [0, 1] at the purchase, otherwise 0.0.

    Termination:
        `terminated` at the purchase. `truncated` at the step limit, 15, or `max_episode_steps` of
        `gymnasium.make`. In "clean" further steps repeat the last page and pay nothing; in
        "original" the shop stays open, as the original's does.

    Info:
        `task` (the instruction), `task_id`, `task_type` (the department), `admissible_actions` (a
        new list each step), `won` (the score is 1.0), `score` (0.0 before a purchase),
        `action_valid` (the last action did something); `reward_parts` after a purchase (names of
        the literature: r_type, r_att, w_att, r_option, w_option, r_price, w_price, query_match,
        category_match, title_score); `hint` after an action that did nothing; `expert_action` when
        the environment was made with `expert_action=True`.

    Options:
        `data`: None or "bundled" (a catalogue of our own), or a path: a directory with the
        original's raw files, or a packed catalogue. `split`: train, validation, test. `difficulty`
        of the bundled catalogue: "default", "small" or "tiny". `profile`: "clean" or "original".
        `goals`: "synthetic" or "human".
        `show_attributes`: give products the page of their attributes, which says what a goal may
        ask for. `title_nouns`: a JSON file of the nouns a tagger found in the titles, for rewards
        exactly as spaCy gives them.
        `base_url`: play in the shop of a running server. `render_mode`: None or "ansi".
        `reset(options={"task_id": ...})` plays a given task, `{"goal_index": N}` the one with this
        number in the literature's order; without options the environment's own random generator
        draws a task of the split.
        `gymnasium.make_vec("WebShop-v0", num_envs=N)` steps N shoppers in one call
        (`TextVectorEnv`); `vectorization_mode="async"` uses processes and needs
        `vector_kwargs={"shared_memory": False}`, as texts have no fixed size.

    Registered ids:
        WebShop-v0
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        split: str = "train",
        profile: str = "clean",
        goals: str = "synthetic",
        observation_mode: str = "text",
        difficulty: str | None = None,
        show_attributes: bool = False,
        title_nouns: str | os.PathLike[str] | None = None,
        num_prev_obs: int = 0,
        num_prev_actions: int = 0,
        base_url: str | None = None,
        render_mode: str | None = None,
        expert_action: bool = False,
    ) -> None:
        """Open the shop; see the class for the arguments.

        Raises DataNotFoundError, InvalidOptionError and, with `base_url`, ServerError.
        """
        for name, value, known in (
            ("observation_mode", observation_mode, MODES),
            ("render_mode", render_mode, (None, *self.metadata["render_modes"])),
        ):
            if value not in known:
                raise InvalidOptionError(unknown(name, value, filter(None, known)))
        if not all(isinstance(n, int) and n >= 0 for n in (num_prev_obs, num_prev_actions)):
            raise InvalidOptionError(
                "num_prev_obs and num_prev_actions are whole numbers, 0 or more; got "
                f"{num_prev_obs!r:.50} and {num_prev_actions!r:.50}"
            )
        check_flag("show_attributes", show_attributes)
        check_flag("expert_action", expert_action)
        self._source = open_source(
            data,
            goals=goals,
            profile=profile,
            difficulty=difficulty,
            show_attributes=show_attributes,
            title_nouns=title_nouns,
            base_url=base_url,
        )
        self._ids = self._source.ids(split)
        if not self._ids:
            raise InvalidOptionError(
                f"split {split!r} of {base_url or data or 'bundled'!r} has no {goals} goals; "
                f"in the profile {profile!r} {_SPLITS[profile]}"
            )
        self.split = split
        self.observation_mode = observation_mode
        self.render_mode = render_mode
        self.observation_space = TextSpace()
        self.action_space: TextSpace = TextSpace()
        # A deque cannot be longer, and an episode never is.
        self._memory = min(num_prev_obs, sys.maxsize), min(num_prev_actions, sys.maxsize)
        self._with_expert = expert_action
        self._moment: _Moment | None = None

    @classmethod
    def task_set(
        cls,
        split: str = "train",
        data: str | os.PathLike[str] | None = None,
        profile: str = "clean",
        goals: str = "synthetic",
        difficulty: str | None = None,
        base_url: str | None = None,
        **others: Any,
    ) -> TaskSet:
        """Return the tasks of a split; takes the arguments of the environment."""
        check_names(cls, others)
        source = open_source(
            data, goals=goals, profile=profile, difficulty=difficulty, base_url=base_url
        )
        return TaskSet("WebShop-v0", split, source.ids(split), source.content_hash)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode: the task in `options`, or one drawn from the split.

        Raises InvalidOptionError, UnknownTaskError and, with `base_url`, ServerError.
        """
        super().reset(seed=seed)
        play = self._start(self._choose(options))
        pages, taken = self._memory
        page = play.observe(self.observation_mode)
        expert = _make_expert() if self._with_expert else None
        self._moment = moment = _Moment(
            play, expert, deque(maxlen=pages), deque(maxlen=taken), page, observation=page
        )
        self._source.release()
        return page, self._info(moment)

    def _choose(self, options: object) -> str | int:
        """Return the id or the number of the task that `options` name, or draw an id."""
        chosen = reset_option(options, _OPTIONS)
        if chosen is None:
            return self._ids[int(self.np_random.integers(len(self._ids)))]
        name, value = chosen
        return str(value) if name == "task_id" else int(value)

    def _start(self, task: str | int) -> Play:
        """Start an episode; where a server has no room for it, the present one makes some."""
        try:
            return self._source.start(task)
        except ShopFullError:
            self.close()
            return self._source.start(task)

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one action; raises InvalidActionError for anything but a string."""
        if not isinstance(action, str):
            came = type(action).__name__
            raise InvalidActionError(
                f"an action is a string such as 'search[red shoes]', got {came}"
            )
        moment = self._now()
        moment.pages.append(moment.page)
        moment.actions.append(action)
        moment.action = action
        moment.last = outcome = moment.play.act(action)
        if outcome.score is not None:
            moment.bought = outcome
        moment.page = moment.play.observe(self.observation_mode)
        moment.observation = with_history(moment.page, moment.pages, moment.actions)
        return moment.observation, outcome.reward, outcome.done, False, self._info(moment)

    def _now(self) -> _Moment:
        if self._moment is None:
            raise NoEpisodeError("the environment has no episode yet: call reset() first")
        return self._moment

    def _info(self, moment: _Moment) -> dict[str, Any]:
        play = moment.play
        admissible = play.admissible
        # A sample has to be an action that can be taken: the instruction fills the blank.
        self.action_space.choices = [
            f"search[{play.task}]" if action == SEARCH_TEMPLATE else action for action in admissible
        ]
        score = moment.bought.reward
        info: dict[str, Any] = {
            "task": play.task,
            "task_id": play.task_id,
            "task_type": play.task_type,
            "admissible_actions": admissible,
            "won": score == 1.0,
            "score": score,
            "action_valid": moment.last.valid,
        }
        if moment.bought.score is not None:
            info["reward_parts"] = dict(moment.bought.score.info)
        if moment.last.complaint is not None:
            info["hint"] = moment.last.complaint
        if moment.expert is not None:
            info["expert_action"] = moment.expert.act(play.observe("text"), info)
        return info

    def render(self) -> str | None:
        """Return the last action and the page it led to (render mode "ansi")."""
        if self.render_mode is None:
            return None
        moment = self._now()
        action = "" if moment.action is None else f"> {moment.action}\n"
        return f"{action}{moment.observation}\n"

    def close(self) -> None:
        """End the episode; a server closes its session."""
        self._moment = None
        self._source.release()

    def snapshot(self) -> Snapshot:
        """Return the present moment of the episode.

        The step count of a wrapper is not part of it: deep-copy the wrapped environment for that.
        """
        return Snapshot(copy.deepcopy(self._now()), self.observation_mode)

    def restore(self, snapshot: Snapshot) -> tuple[str, dict[str, Any]]:
        """Go back to a snapshot, also one of another environment; return observation and info.

        Raises InvalidOptionError for what is no snapshot, and where the other environment has
        another observation mode or, unlike this one, no expert.
        """
        snapshot = check_snapshot(snapshot, Snapshot)
        check_expert(snapshot.moment.expert, wanted=self._with_expert)
        theirs, ours = snapshot.observation_mode, self.observation_mode
        if theirs != ours:
            raise InvalidOptionError(
                f"the snapshot is of an environment with observation_mode={theirs!r}, this one has "
                f"{ours!r}"
            )
        moment = copy.deepcopy(snapshot.moment)
        if not self._with_expert:
            moment.expert = None
        self._moment = moment
        return moment.observation, self._info(moment)


def _make_expert() -> ShopExpert:
    from proxmo_envs.webshop.expert import ShopExpert

    return ShopExpert()

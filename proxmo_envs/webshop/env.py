"""WebShop as a Gymnasium environment."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from proxmo_envs.errors import InvalidOptionError, ShopFullError, unknown
from proxmo_envs.task import TaskSet
from proxmo_envs.text_env import Kinds, Moment, TextEnv, check_flag, check_names, reset_option
from proxmo_envs.webshop.sources import Play, open_source
from webshop_server.rules.actions import SEARCH_TEMPLATE
from webshop_server.rules.text_forms import MODES, with_history
from webshop_server.session import ActionResult

# How each profile shares out the goals, for a message.
_SPLITS = {
    "clean": "goals that no purchase meets are left out, all those of a product are in one split",
    "original": "the first 500 are for test, the next 1,000 for validation",
}
_OPTIONS: Kinds = {"task_id": (str, "a string"), "goal_index": (Integral, "a whole number")}


@dataclass(slots=True, kw_only=True)
class _Moment(Moment):
    """The shopper, what happened last, and the earlier pages and actions to be shown."""

    play: Play
    page: str
    pages: deque[str]
    actions: deque[str]
    last: ActionResult = field(default_factory=ActionResult)
    # The last purchase: the original profile allows more than one.
    bought: ActionResult = field(default_factory=ActionResult)


class WebShopEnv(TextEnv[_Moment]):
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
        `gymnasium.make_vec("WebShop-v0", num_envs=N)` steps N shoppers in one call;
        `vectorization_mode="async"` uses processes and needs
        `vector_kwargs={"shared_memory": False}`, as texts have no fixed size.

    Registered ids:
        WebShop-v0
    """

    action_example = "search[red shoes]"
    snapshot_settings = ("observation_mode",)

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
        super().__init__(render_mode=render_mode, expert_action=expert_action)
        if observation_mode not in MODES:
            raise InvalidOptionError(unknown("observation_mode", observation_mode, MODES))
        if not all(isinstance(n, int) and n >= 0 for n in (num_prev_obs, num_prev_actions)):
            raise InvalidOptionError(
                "num_prev_obs and num_prev_actions are whole numbers, 0 or more; got "
                f"{num_prev_obs!r:.50} and {num_prev_actions!r:.50}"
            )
        check_flag("show_attributes", show_attributes)
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
        # A deque cannot be longer, and an episode never is.
        self._memory = min(num_prev_obs, sys.maxsize), min(num_prev_actions, sys.maxsize)

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
        started = super().reset(seed=seed, options=options)
        self._source.release()
        return started

    def _start(self, options: object) -> _Moment:
        play = self._begin(self._choose(options))
        pages, taken = self._memory
        page = play.observe(self.observation_mode)
        moment = _Moment(
            play=play,
            page=page,
            pages=deque(maxlen=pages),
            actions=deque(maxlen=taken),
            observation=page,
        )
        if self._with_expert:
            from proxmo_envs.webshop.expert import ShopExpert

            moment.expert = ShopExpert()
        return moment

    def _choose(self, options: object) -> str | int:
        """Return the id or the number of the task that `options` name, or draw an id."""
        chosen = reset_option(options, _OPTIONS)
        if chosen is None:
            return self._ids[int(self.np_random.integers(len(self._ids)))]
        name, value = chosen
        return str(value) if name == "task_id" else int(value)

    def _begin(self, task: str | int) -> Play:
        """Start an episode; where a server has no room for it, the present one makes some."""
        try:
            return self._source.start(task)
        except ShopFullError:
            self.close()
            return self._source.start(task)

    def _act(self, moment: _Moment, action: str) -> tuple[float, bool]:
        moment.pages.append(moment.page)
        moment.actions.append(action)
        moment.action = action
        moment.last = outcome = moment.play.act(action)
        if outcome.score is not None:
            moment.bought = outcome
        moment.page = moment.play.observe(self.observation_mode)
        moment.observation = with_history(moment.page, moment.pages, moment.actions)
        return outcome.reward, outcome.done

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

    def close(self) -> None:
        """End the episode; a server closes its session."""
        self._moment = None
        self._source.release()

"""What the environments of this package share: spaces, checks of arguments, rendering, snapshots.

An environment of one's own need not inherit from it; what counts is the contract in
docs/environments.md.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, ClassVar, Generic, TypeVar

import gymnasium

from proxmo_envs.errors import InvalidActionError, InvalidOptionError, NoEpisodeError, unknown
from proxmo_envs.text_space import TextSpace

# What the value of a reset option has to be: its type, and how a message calls that.
Kinds = Mapping[str, tuple[type | tuple[type, ...], str]]


@dataclass(slots=True, kw_only=True)
class Moment:
    """The state of an episode; subclasses add that of their world."""

    observation: str
    # The last action; None before the first one.
    action: str | None = None
    # Whoever gives `info["expert_action"]`; None without `expert_action=True`.
    expert: Any = None


M = TypeVar("M", bound=Moment)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of an episode's state, for search and branching; restore it as often as you like.

    Attributes:
        env: name of the class that made it.
        moment: the state.
        settings: arguments that an environment must share to restore it.
    """

    env: str
    moment: Moment
    settings: Mapping[str, Any] = field(default_factory=dict)


class TextEnv(gymnasium.Env[str, str], Generic[M]):
    """Base class: subclasses implement `_start`, `_act` and `_info`."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}
    # For the error about an action that is no string.
    action_example: ClassVar[str] = "look"
    # Names of attributes that must be equal for a snapshot to be restored.
    snapshot_settings: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, render_mode: str | None, expert_action: bool) -> None:
        """Make the spaces; raises InvalidOptionError for a wrong argument."""
        modes = self.metadata["render_modes"]
        if render_mode not in (None, *modes):
            raise InvalidOptionError(unknown("render_mode", render_mode, modes))
        check_flag("expert_action", expert_action)
        self.render_mode = render_mode
        self.observation_space = TextSpace()
        self.action_space: TextSpace = TextSpace()
        self._with_expert = expert_action
        self._moment: M | None = None

    def _start(self, options: object) -> M:
        """Start the episode that `options` name, or a drawn one."""
        raise NotImplementedError

    def _act(self, moment: M, action: str) -> tuple[float, bool]:
        """Carry out an action; return the reward and whether the episode ended."""
        raise NotImplementedError

    def _info(self, moment: M) -> dict[str, Any]:
        """Return a new info."""
        raise NotImplementedError

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode: the task in `options`, or one drawn from the split.

        Raises the errors of `proxmo_envs.errors` for options and data that do not fit.
        """
        super().reset(seed=seed)
        self._moment = moment = self._start(options)
        return moment.observation, self._info(moment)

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one action; raises InvalidActionError for anything but a string."""
        if not isinstance(action, str):
            raise InvalidActionError(
                f"an action is a string such as {self.action_example!r}, got "
                f"{type(action).__name__}"
            )
        moment = self._now()
        reward, terminated = self._act(moment, action)
        return moment.observation, reward, terminated, False, self._info(moment)

    def _now(self) -> M:
        if self._moment is None:
            raise NoEpisodeError("the environment has no episode yet: call reset() first")
        return self._moment

    def render(self) -> str | None:
        """Return the last action and the observation that followed (render mode "ansi")."""
        if self.render_mode is None:
            return None
        moment = self._now()
        action = "" if moment.action is None else f"> {moment.action}\n"
        return f"{action}{moment.observation}\n"

    def snapshot(self) -> Snapshot:
        """Return a copy of the present state of the episode.

        Wrappers count the steps, so the count is not part of it: deep-copy the wrapped environment
        for that.
        """
        settings = {name: getattr(self, name) for name in self.snapshot_settings}
        return Snapshot(type(self).__name__, copy.deepcopy(self._now()), settings)

    def restore(self, snapshot: Snapshot) -> tuple[str, dict[str, Any]]:
        """Go back to a snapshot, also one of another environment; return observation and info.

        Raises InvalidOptionError for anything but a snapshot of this class, for one made with
        other settings, and for one without an expert where this environment has one: that expert
        would not have read what the episode has shown so far.
        """
        name = type(self).__name__
        if not isinstance(snapshot, Snapshot) or snapshot.env != name:
            came = type(snapshot)
            of = f" of {snapshot.env}" if isinstance(snapshot, Snapshot) else ""
            raise InvalidOptionError(
                f"restore takes what snapshot() of {name} returned; got a "
                f"{came.__module__}.{came.__qualname__}{of}"
            )
        if self._with_expert and snapshot.moment.expert is None:
            raise InvalidOptionError(
                "the snapshot is of an environment without expert_action=True, this one has it"
            )
        for key, theirs in snapshot.settings.items():
            if theirs != getattr(self, key):
                raise InvalidOptionError(
                    f"the snapshot is of an environment with {key}={theirs!r}, this one has "
                    f"{getattr(self, key)!r}"
                )
        moment: Any = copy.deepcopy(snapshot.moment)
        if not self._with_expert:
            moment.expert = None
        self._moment = moment
        return moment.observation, self._info(moment)


def reset_option(options: object, kinds: Kinds) -> tuple[str, Any] | None:
    """Return name and value of the one option that `reset` was given; None where it was none."""
    if options is None:
        return None
    if not isinstance(options, Mapping):
        raise InvalidOptionError(
            f"reset options are a mapping such as {{'task_id': ID}}, got {options!r:.100}"
        )
    for name in options:
        if name not in kinds:
            raise InvalidOptionError(unknown("reset option", name, kinds))
    if len(options) > 1:
        raise InvalidOptionError(f"reset options: give {' or '.join(kinds)}, not both")
    for name, value in options.items():
        kind, called = kinds[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InvalidOptionError(f"reset option {name} is {called}, got {value!r:.100}")
        return name, value
    return None


def check_names(world: type[gymnasium.Env[Any, Any]], given: Iterable[str]) -> None:
    """Refuse names of arguments that neither an environment nor `gymnasium.make` has."""
    known = {*signature(world).parameters, *signature(gymnasium.make).parameters}
    for name in given:
        if name not in known:
            raise InvalidOptionError(unknown("argument", name, known - {"id", "kwargs"}))


def check_flag(name: str, value: object) -> None:
    """Refuse what is no truth value: the text "no" would count as one that is true."""
    if not isinstance(value, bool):
        raise InvalidOptionError(
            f"{name} is a truth value (in JSON true, false), got {value!r:.100}"
        )

"""Many games of a text environment stepped in one call, without processes.

`gymnasium.make_vec("ALFWorld-v0", num_envs=N)` makes one. A text game costs less than passing its
answer between processes, so N games simply take turns; what is saved against gymnasium's own
`SyncVectorEnv` are the wrappers around every game and the copying of what each says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Tuple
from gymnasium.vector import AutoresetMode, VectorEnv

from proxmo_envs.errors import InvalidActionError, InvalidOptionError

Texts = tuple[str, ...]
Infos = dict[str, Any]


class TextVectorEnv(VectorEnv[Texts, Sequence[str], np.ndarray]):
    """N games side by side; subclasses name the environment class in `env_class`.

    Observations and actions are one string a game. `infos` has for each key of a game's info an
    array (N,) and under `_key` the mask (N,) of the games that said it, as gymnasium's own vector
    environments have. A game that has ended starts anew by gymnasium's autoreset modes:
    "NextStep" (its next action is ignored and answered by the first observation of a new game),
    "SameStep" (the answer is that observation already; the last one and its info are in
    `infos["final_obs"]` and `infos["final_info"]`) or "Disabled" (the caller resets, with
    `options={"reset_mask": mask}`).

    `reset(options=...)` takes one mapping for all games, or a sequence with one for each (None:
    draw a task). `envs` are the games themselves, for `snapshot` and the like; the vector counts
    steps and knows which games have ended: restore an ended one in the mode "Disabled" only, in the
    others its next step starts a new game.
    """

    env_class: type[gymnasium.Env[str, str]]

    def __init__(
        self,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **kwargs: Any,
    ) -> None:
        """Make the games; `kwargs` are those of the environment. Raises what that raises."""
        _check_count("num_envs", num_envs)
        if max_episode_steps is not None:
            _check_count("max_episode_steps", max_episode_steps)
        self.num_envs = num_envs
        self.envs: list[Any] = [self.env_class(**kwargs) for _ in range(num_envs)]
        first = self.envs[0]
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = Tuple([env.observation_space for env in self.envs])
        self.action_space = Tuple([env.action_space for env in self.envs])
        self._limit = float("inf") if max_episode_steps is None else max_episode_steps
        self._steps = [0] * num_envs
        self._ended = np.ones(num_envs, dtype=bool)
        self._observations = [""] * num_envs

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
    ) -> tuple[Texts, Infos]:
        """Start a game in each place, or where `options["reset_mask"]` is True.

        An int as seed gives game i the seed `seed + i`. Raises ValueError where seeds, options or
        mask are not one for each game, InvalidOptionError where they are none, before any game has
        been reset; and what the `reset` of a game raises.
        """
        seeds: Sequence[int | None]
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = _as_list("seed", "a whole number from 0 on", seed)
        for one in seeds:
            if one is not None and not (isinstance(one, int) and one >= 0):
                raise InvalidOptionError(f"a seed is a whole number from 0 on, not {one!r}")
        mask: Any = np.ones(self.num_envs, dtype=bool)
        each: Sequence[Mapping[str, Any] | None]
        if options is None or isinstance(options, Mapping):
            shared = dict(options or {})
            mask = np.asarray(shared.pop("reset_mask", mask))
            each = [shared] * self.num_envs
        else:
            each = _as_list("options", "a mapping", options)
        fits = mask.shape == (self.num_envs,) and len(seeds) == len(each) == self.num_envs
        if mask.dtype != bool or not fits:
            raise ValueError(
                f"one seed, one entry of options and one bool of reset_mask for each of the "
                f"{self.num_envs} games: got {len(seeds)}, {len(each)} and {mask!r}"
            )
        infos: list[Infos] = [{}] * self.num_envs
        for i in np.flatnonzero(mask).tolist():
            infos[i] = self._reset_one(i, seed=seeds[i], options=each[i])
        return tuple(self._observations), _columns(infos)

    def _reset_one(self, i: int, **arguments: Any) -> Infos:
        info: Infos
        self._observations[i], info = self.envs[i].reset(**arguments)
        self._steps[i] = 0
        self._ended[i] = False
        return info

    def step(
        self, actions: Sequence[str]
    ) -> tuple[Texts, np.ndarray, np.ndarray, np.ndarray, Infos]:
        """Carry out one command a game: observations, rewards, terminated, truncated, infos.

        Raises ValueError for another number of actions and InvalidActionError for one that is no
        string, before any game has stepped; NoEpisodeError for a game that was never reset.
        """
        self._check(actions)
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, dtype=bool)
        truncated = np.zeros(self.num_envs, dtype=bool)
        infos: list[Infos] = []
        for i, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            if self._ended[i] and self.autoreset_mode is AutoresetMode.NEXT_STEP:
                infos.append(self._reset_one(i))
                continue
            self._observations[i], rewards[i], terminated[i], cut, info = env.step(action)
            self._steps[i] += 1
            truncated[i] = cut or self._steps[i] >= self._limit
            self._ended[i] = terminated[i] or truncated[i]
            if self._ended[i] and self.autoreset_mode is AutoresetMode.SAME_STEP:
                final = {"final_obs": self._observations[i], "final_info": info}
                info = {**self._reset_one(i), **final}
            infos.append(info)
        return tuple(self._observations), rewards, terminated, truncated, _columns(infos)

    def _check(self, actions: object) -> None:
        """Refuse what a game would refuse, before another one has stepped."""
        # A string is a sequence of strings, too: of a letter for each game.
        if isinstance(actions, str) or not isinstance(actions, Sequence | np.ndarray):
            came = type(actions).__name__
            raise InvalidActionError(f"actions are a sequence, one string a game; got {came}")
        if len(actions) != self.num_envs:
            raise ValueError(
                f"{self.num_envs} games need {self.num_envs} actions, {len(actions)} came"
            )
        for i, action in enumerate(actions):
            ignored = self._ended[i] and self.autoreset_mode is AutoresetMode.NEXT_STEP
            if not (ignored or isinstance(action, str)):
                came = type(action).__name__
                raise InvalidActionError(
                    f"an action is a string such as 'look'; got {came} for game {i}"
                )

    def render(self) -> tuple[Any, ...]:
        """Return what each game renders."""
        return tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Close the games."""
        for env in self.envs:
            env.close()


def _as_list(name: str, single: str, values: object) -> list[Any]:
    """Return one value a game of what came; arrays of numpy become numbers of Python."""
    if isinstance(values, np.ndarray):
        return values.tolist() if values.ndim else [values.item()]
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        came = type(values).__name__
        raise InvalidOptionError(f"{name} is {single}, or a sequence with one a game; got {came}")
    return list(values)


def _check_count(name: str, number: object) -> None:
    if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 1:
        raise InvalidOptionError(f"{name} is a number from 1 on, not {number!r}")


def _columns(infos: Sequence[Infos]) -> Infos:
    """Turn one info a game into one array a key, each with its mask; nested infos alike."""
    columns: Infos = {}
    for key in dict.fromkeys(key for info in infos for key in info):
        mask = np.array([key in info for info in infos])
        values = [info.get(key) for info in infos]
        first = values[int(mask.argmax())]
        if isinstance(first, dict):
            columns[key] = _columns([value or {} for value in values])
        elif isinstance(first, (bool, int, float)):
            columns[key] = np.array([value or 0 for value in values], dtype=type(first))
        else:
            columns[key] = np.empty(len(infos), dtype=object)
            columns[key][:] = values
        columns[f"_{key}"] = mask
    return columns

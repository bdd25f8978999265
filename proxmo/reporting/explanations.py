"""Why the steps of a recorded run got their advantages, as plain data.

    recorded = read_iteration(Path("runs/first"))
    recorded.overview()
    recorded.explain(episode=3, step=7)

A run records what its credit assignment was given and what came out. So the credit is computed
anew, with the run's own method and options, and compared with the record before it is explained.
"""

from __future__ import annotations

import gzip
import inspect
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo import credit
from proxmo.config import Config
from proxmo.config_loading import load_toml
from proxmo.errors import DataError, ProxmoError, UsageError
from proxmo.types import Outcome

# Sums in another order, or by another version of a library, differ by less than this.
_SAME = 1e-5
# Fields of a recorded step that a StepLine takes over.
_RECORDED = ("observation", "action", "step_return", "step_advantage", "advantage")


@dataclass(frozen=True, slots=True)
class StepLine:
    """A recorded step. `episode` is its place in the record of the iteration."""

    episode: int
    step: int
    group: int
    observation: str
    action: str | None
    step_return: float
    step_advantage: float
    advantage: float


@dataclass(frozen=True, slots=True)
class SimilarStep(credit.Neighbour):
    """A state behind a baseline, and the episode and step where it first occurs."""

    episode: int
    step: int


@dataclass(frozen=True, slots=True)
class StepReport(StepLine):
    """The credit of one recorded step, taken apart.

    The advantages are the recorded ones. `baseline` is None and `neighbours` empty where the method
    compares no steps or could not be computed anew (`notes`). `value` is what the critic expected
    of the step, in a run that has one. `by_method` has the advantage other methods would have given
    with their default options, `left_out` why some have none.
    """

    iteration: int
    method: str
    options: dict[str, Any]
    task_id: str
    task: str
    outcome: str
    reward: float
    episode_return: float
    success_rate: float
    group_size: int
    baseline: float | None
    value: float | None
    episode_advantage: float
    modulation: float | None
    omega: float
    neighbours: tuple[SimilarStep, ...]
    by_method: dict[str, float]
    left_out: dict[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group: the episodes of one task that were compared, and their places in the record.

    `episodes`, `wins` and `steps` leave out the `errors` episodes that ended in an error. The
    modulation is ProxMO's weight on the advantage of a won and of a lost episode of the group; None
    where there is no such episode, or the method has no such weight.
    """

    group: int
    task_id: str
    task: str
    episodes: int
    wins: int
    errors: int
    steps: int
    return_mean: float
    modulation_won: float | None
    modulation_lost: float | None
    first_episode: int
    last_episode: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The credit of an iteration: diagnostics by name, groups, steps furthest from their baseline.

    `notes` says what could not be computed anew, or came out otherwise.
    """

    iteration: int
    method: str
    options: dict[str, Any]
    diagnostics: dict[str, float]
    groups: tuple[GroupLine, ...]
    largest: tuple[StepLine, ...]
    notes: tuple[str, ...]


class RecordedIteration:
    """The steps of one iteration and their credit, computed anew.

    Args:
        config: what the run was configured with.
        iteration: number of the iteration, from 1.
        episodes: its episodes as recorded, those that ended in an error among them.
    """

    def __init__(
        self, config: Config, iteration: int, episodes: Iterable[Mapping[str, Any]]
    ) -> None:
        self.method, self.iteration = config.credit.method, iteration
        self.episodes = list(episodes)
        # The caller's rows of the credit: (episode, step) of each, and the recorded step.
        self.places = [
            (number, step)
            for number, episode in enumerate(self.episodes)
            if episode["outcome"] != Outcome.ERROR.value
            for step in range(len(episode["steps"]))
        ]
        self._steps = [self.episodes[number]["steps"][step] for number, step in self.places]
        # Only a run with a critic records what that expected.
        self._has_values = all("value" in step for step in self._steps)
        self._columns = self._credit_columns(config)
        self.options: dict[str, Any] = {
            "gamma": config.credit.gamma,
            "reward_scale": config.credit.reward_scale,
            **config.credit.options,
        }
        self.credit: credit.Credit | None = None
        self.notes = tuple(self._recompute(config))

    def overview(self, largest: int = 10) -> Overview:
        """The iteration at a glance.

        Args:
            largest: how many steps of largest step advantage to list.
        """
        size = np.abs(self._recorded("step_advantage"))
        rows = np.argsort(-size, kind="stable")[:largest].tolist()
        return Overview(
            iteration=self.iteration,
            method=self.method,
            options=self.options,
            diagnostics=dict(self.credit.diagnostics) if self.credit else {},
            groups=tuple(self._groups()),
            largest=tuple(StepLine(**self._line(row)) for row in rows if size[row] > 0),
            notes=self.notes,
        )

    def explain(self, episode: int, step: int, methods: Iterable[str] | None = None) -> StepReport:
        """One step, taken apart.

        Args:
            episode: place of the episode in the record, from 0.
            step: index of the step, from 0.
            methods: names of methods to compare with; None takes all that are registered.

        Raises:
            UsageError: no such episode or step, or one without credit.
        """
        row = self._find(episode, step)
        found = self.credit.explain(row) if self.credit else None
        played, taken = self.episodes[episode], self._steps[row]
        members = self._compared(played["group"])
        by_method, left_out = self._other_methods(row, methods)
        return StepReport(
            **self._line(row),
            iteration=self.iteration,
            method=self.method,
            options=self.options,
            task_id=played["task_id"],
            task=played["task"],
            outcome=played["outcome"],
            reward=taken["reward"],
            episode_return=_return(played),
            success_rate=sum(map(_won, members)) / len(members),
            group_size=len(members),
            baseline=found.baseline if found else None,
            value=taken.get("value"),
            episode_advantage=taken["episode_advantage"],
            modulation=found.modulation if found else None,
            omega=found.omega if found else float(self.options.get("omega", 1.0)),
            neighbours=tuple(map(self._similar, found.neighbours)) if found else (),
            by_method=by_method,
            left_out=left_out,
            notes=self.notes,
        )

    def _recompute(self, config: Config) -> Iterator[str]:
        """Compute the credit with the run's own method; yields how it differs from the record."""
        try:
            self.options = credit.credit_options(config.credit)
            lost = "hidden states of the policy" if credit.needs_policy(self.options) else None
            if credit.needs_values(self.method) and not self._has_values:
                lost = "values of the critic"
            if lost:
                yield f"the {lost} are not recorded: the numbers are those of the record"
                return
            self.credit = self._assign(self.method, self.options)
        except Exception as error:  # a method of the user's own may raise anything
            yield f"cannot be computed anew, the numbers are those of the record: {_reason(error)}"
            return
        recorded = self._recorded("advantage")
        off = float(np.abs(self.credit.advantage - recorded).max(initial=0.0))
        if off > _SAME * (1.0 + float(np.abs(recorded).max(initial=0.0))):
            yield (
                f"computed anew, advantages differ from the recorded ones by up to {off:.2g}: the "
                "run had other options then, or another version of proxmo"
            )

    def _credit_columns(self, config: Config) -> dict[str, Any]:
        """The rows of the credit, as `credit.assign` takes them."""
        played = [self.episodes[number] for number, _ in self.places]
        return {
            "group": [one["group"] for one in played],
            "episode": [number for number, _ in self.places],
            "step": [step for _, step in self.places],
            "reward": self._recorded("reward"),
            "success": [_won(one) for one in played],
            "state": [one["observation"] for one in self._steps],
            "truncated": [one["outcome"] == Outcome.TRUNCATED.value for one in played],
            "action": [one["action"] for one in self._steps],
            "penalty": config.rollout.invalid_penalty * ~self._recorded("valid").astype(bool),
        }

    def _assign(self, method: str, options: Mapping[str, Any]) -> credit.Credit:
        if credit.needs_values(method):
            options = {**options, "value": self._recorded("value")}
        return credit.assign(method, **self._columns, **options)

    def _other_methods(
        self, row: int, methods: Iterable[str] | None
    ) -> tuple[dict[str, float], dict[str, str]]:
        found: dict[str, float] = {}
        left_out: dict[str, str] = {}
        known = {"value"} if self._has_values else set()
        for name in credit.method_names() if methods is None else dict.fromkeys(methods):
            options = credit.method_options(name).items()
            needed = {one for one, default in options if default is inspect.Parameter.empty} - known
            if needed:
                needs = ", ".join(sorted(needed))
                left_out[name] = f"needs {needs}, which this run does not record"
                continue
            try:
                assigned = self._assign(
                    name, {key: self.options[key] for key in ("gamma", "reward_scale")}
                )
                found[name] = float(assigned.advantage[row])
            except Exception as error:  # as above; the other methods can still be compared
                left_out[name] = _reason(error)
        return found, left_out

    def _find(self, episode: int, step: int) -> int:
        if not 0 <= episode < len(self.episodes):
            raise UsageError(
                f"episode {episode} is not in iteration {self.iteration}; expected 0 to "
                f"{len(self.episodes) - 1}"
            )
        played = self.episodes[episode]
        if played["outcome"] == Outcome.ERROR.value:
            raise UsageError(
                f"episode {episode} ended in an error ({played['cause']}), so it got no credit"
            )
        if (episode, step) not in self.places:
            raise UsageError(
                f"episode {episode} has no step {step}; expected 0 to {len(played['steps']) - 1}"
            )
        return self.places.index((episode, step))

    def _recorded(self, name: str) -> NDArray[np.float64]:
        return np.array([step[name] for step in self._steps], np.float64)

    def _line(self, row: int) -> dict[str, Any]:
        """The fields of a StepLine."""
        (episode, step), taken = self.places[row], self._steps[row]
        place = {"episode": episode, "step": step, "group": self.episodes[episode]["group"]}
        return place | {name: taken[name] for name in _RECORDED}

    def _similar(self, one: credit.Neighbour) -> SimilarStep:
        episode, step = self.places[one.row]
        return SimilarStep(**asdict(one), episode=episode, step=step)

    def _compared(self, group: int) -> list[Mapping[str, Any]]:
        """The episodes of a group that got credit."""
        found = (self.episodes[number] for number in dict.fromkeys(one for one, _ in self.places))
        return [episode for episode in found if episode["group"] == group]

    def _groups(self) -> Iterator[GroupLine]:
        numbers: defaultdict[int, list[int]] = defaultdict(list)
        for number, episode in enumerate(self.episodes):
            numbers[episode["group"]].append(number)
        for group, members in sorted(numbers.items()):
            played, compared = [self.episodes[one] for one in members], self._compared(group)
            weights: dict[bool, float] = {}
            if self.credit is not None and self.credit.modulation is not None:
                for (number, _), weight in zip(self.places, self.credit.modulation, strict=True):
                    if number in members:
                        weights[_won(self.episodes[number])] = float(weight)
            yield GroupLine(
                group=group,
                task_id=played[0]["task_id"],
                task=played[0]["task"],
                episodes=len(compared),
                wins=sum(map(_won, compared)),
                errors=sum(one["outcome"] == Outcome.ERROR.value for one in played),
                steps=sum(len(one["steps"]) for one in compared),
                return_mean=sum(map(_return, compared)) / max(len(compared), 1),
                modulation_won=weights.get(True),
                modulation_lost=weights.get(False),
                first_episode=members[0],
                last_episode=members[-1],
            )


def read_iteration(run: Path, iteration: int | None = None) -> RecordedIteration:
    """Read an iteration of a run directory.

    Args:
        run: directory of the run.
        iteration: which one, from 1; None takes the latest.

    Raises:
        UsageError: no run there, or no such iteration.
        DataError: nothing is recorded yet, or the record cannot be read.
    """
    if not (run / "config.toml").is_file() or not (run / "episodes").is_dir():
        raise UsageError(f"{str(run)!r} holds no run: expected config.toml and episodes/ in it")
    found = sorted((run / "episodes").glob("iteration_*.jsonl.gz"))
    paths = {int(path.name.split(".")[0].removeprefix("iteration_")): path for path in found}
    if not paths:
        raise DataError(f"{str(run)!r} has recorded no iteration yet; wait for its first")
    number = max(paths) if iteration is None else iteration
    if number not in paths:
        raise UsageError(
            f"iteration {number} is not recorded in {run}; there are {min(paths)} to {max(paths)}"
        )
    try:
        with gzip.open(paths[number], "rt", encoding="utf-8") as file:
            episodes = [json.loads(line) for line in file]
        return RecordedIteration(load_toml(run / "config.toml"), number, episodes)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{paths[number]} is no record of episodes: {error!r}") from error


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ProxmoError) else repr(error)


def _won(episode: Mapping[str, Any]) -> bool:
    return bool(episode["outcome"] == Outcome.WON.value)


def _return(episode: Mapping[str, Any]) -> float:
    return float(sum(step["reward"] for step in episode["steps"]))

"""Explains the advantages of a recorded run, as plain data.

    recorded = read_iteration(Path("runs/first"))
    recorded.overview()
    recorded.explain(episode=3, step=7)

A run records the inputs and results of its credit assignment. We compute the credit anew, with the
run's own method and options, and compare it with the record before we explain it.
"""

from __future__ import annotations

import gzip
import inspect
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from proxmo import credit
from proxmo.config import Config
from proxmo.config_loading import load_toml
from proxmo.errors import DataError, ProxmoError, UsageError
from proxmo.types import Outcome

# Sums in another order, or by another version of a library, differ by less than this.
_SAME = 1e-5


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
    compares no steps or could not be computed anew (`notes`). `value` is the critic's prediction
    for the step, in a run that has one. `by_method` has the advantage other methods would have
    given with their default options, `left_out` why some have none.
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

    `notes` names numbers that could not be computed anew, or that differ from the record.
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
        # One per step that got credit: the record of the step and of its episode. Only a run with
        # a critic records the value that it expected.
        self._rows = [
            {"value": None, **episode, **step, "episode": number, "step": index}
            for number, episode in enumerate(self.episodes)
            if episode["outcome"] != Outcome.ERROR.value
            for index, step in enumerate(episode["steps"])
        ]
        self._has_values = all(row["value"] is not None for row in self._rows)
        self._columns: dict[str, Any] = {
            "group": self._recorded("group"),
            "episode": self._recorded("episode"),
            "step": self._recorded("step"),
            "reward": self._recorded("reward"),
            "success": [_won(row) for row in self._rows],
            "state": self._recorded("observation"),
            "truncated": [row["outcome"] == Outcome.TRUNCATED.value for row in self._rows],
            "action": self._recorded("action"),
            "penalty": [config.rollout.invalid_penalty * (not row["valid"]) for row in self._rows],
        }
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
        size = np.abs(np.array(self._recorded("step_advantage"), float))
        places = np.argsort(-size, kind="stable")[:largest].tolist()
        rows = [self._rows[place] for place in places if size[place] > 0]
        return Overview(
            iteration=self.iteration,
            method=self.method,
            options=self.options,
            diagnostics=dict(self.credit.diagnostics) if self.credit else {},
            groups=tuple(self._groups()),
            largest=tuple(StepLine(**_fields(StepLine, row)) for row in rows),
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
        place = self._find(episode, step)
        row, found = self._rows[place], self.credit.explain(place) if self.credit else None
        members = self._compared(row["group"])
        by_method, left_out = self._other_methods(place, methods)
        return StepReport(
            **_fields(StepReport, row),
            iteration=self.iteration,
            method=self.method,
            options=self.options,
            episode_return=_return(row),
            success_rate=sum(map(_won, members)) / len(members),
            group_size=len(members),
            baseline=found.baseline if found else None,
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
        recorded = np.array(self._recorded("advantage"), float)
        off = float(np.abs(self.credit.advantage - recorded).max(initial=0.0))
        if off > _SAME * (1.0 + float(np.abs(recorded).max(initial=0.0))):
            yield (
                f"computed anew, advantages differ from the recorded ones by up to {off:.2g}: the "
                "run had other options then, or another version of proxmo"
            )

    def _assign(self, method: str, options: Mapping[str, Any]) -> credit.Credit:
        if credit.needs_values(method):
            options = {**options, "value": self._recorded("value")}
        return credit.assign(method, **self._columns, **options)

    def _other_methods(
        self, place: int, methods: Iterable[str] | None
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
                scale = {key: self.options[key] for key in ("gamma", "reward_scale")}
                found[name] = float(self._assign(name, scale).advantage[place])
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
        if not 0 <= step < len(played["steps"]):
            raise UsageError(
                f"episode {episode} has no step {step}; expected 0 to {len(played['steps']) - 1}"
            )
        return list(zip(self._columns["episode"], self._columns["step"], strict=True)).index(
            (episode, step)
        )

    def _recorded(self, name: str) -> list[Any]:
        return [row[name] for row in self._rows]

    def _similar(self, one: credit.Neighbour) -> SimilarStep:
        first = self._rows[one.row]
        return SimilarStep(**asdict(one), episode=first["episode"], step=first["step"])

    def _compared(self, group: int) -> list[Mapping[str, Any]]:
        """The episodes of a group that got credit."""
        numbers = dict.fromkeys(row["episode"] for row in self._rows if row["group"] == group)
        return [self.episodes[number] for number in numbers]

    def _groups(self) -> Iterator[GroupLine]:
        numbers: defaultdict[int, list[int]] = defaultdict(list)
        for number, episode in enumerate(self.episodes):
            numbers[episode["group"]].append(number)
        for group, members in sorted(numbers.items()):
            played, compared = [self.episodes[one] for one in members], self._compared(group)
            weights: dict[bool, float] = {}
            if self.credit is not None and self.credit.modulation is not None:
                for row, weight in zip(self._rows, self.credit.modulation, strict=True):
                    if row["group"] == group:
                        weights[_won(row)] = float(weight)
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


def _fields(kind: type[StepLine], row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a line or report that are in the record."""
    return {one.name: row[one.name] for one in fields(kind) if one.name in row}


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ProxmoError) else repr(error)


def _won(episode: Mapping[str, Any]) -> bool:
    return bool(episode["outcome"] == Outcome.WON.value)


def _return(episode: Mapping[str, Any]) -> float:
    return float(sum(step["reward"] for step in episode["steps"]))

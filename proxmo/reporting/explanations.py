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
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo import credit
from proxmo.config import Config
from proxmo.config_loading import load_toml
from proxmo.errors import DataError, ProxmoError, UsageError
from proxmo.reporting.explained import GroupLine, Overview, SimilarStep, StepLine, StepReport
from proxmo.training.critic import needs_values
from proxmo.training.prompt_embeddings import needs_policy
from proxmo.training.request import credit_options
from proxmo.types import Outcome

# Sums in another order, or by another version of FAISS, differ by less than this.
_SAME = 1e-5


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
        self.method = config.credit.method
        self.iteration = iteration
        self.episodes = list(episodes)
        # The caller's rows of the credit: (episode, step) of each.
        self.places = [
            (number, step)
            for number, episode in enumerate(self.episodes)
            if episode["outcome"] != Outcome.ERROR.value
            for step in range(len(episode["steps"]))
        ]
        self.options: dict[str, Any] = {"gamma": config.credit.gamma, **config.credit.options}
        self.credit, notes = self._recompute(config)
        self.notes = tuple(notes)

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
            largest=tuple(self._line(row) for row in rows if size[row] > 0),
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
        told = self.credit.explain(row) if self.credit else None
        played, taken = self.episodes[episode], self._step(row)
        members = self._compared(played["group"])
        by_method, left_out = self._other_methods(row, methods)
        return StepReport(
            iteration=self.iteration,
            method=self.method,
            options=self.options,
            episode=episode,
            step=step,
            group=played["group"],
            task_id=played["task_id"],
            task=played["task"],
            outcome=played["outcome"],
            observation=taken["observation"],
            action=taken["action"],
            reward=taken["reward"],
            episode_return=_return(played),
            success_rate=sum(map(_won, members)) / len(members),
            group_size=len(members),
            step_return=taken["step_return"],
            baseline=told.baseline if told else None,
            value=taken.get("value"),
            episode_advantage=taken["episode_advantage"],
            modulation=told.modulation if told else None,
            step_advantage=taken["step_advantage"],
            omega=told.omega if told else float(self.options.get("omega", 1.0)),
            advantage=taken["advantage"],
            neighbours=tuple(map(self._similar, told.neighbours)) if told else (),
            by_method=by_method,
            left_out=left_out,
            notes=self.notes,
        )

    def _recompute(self, config: Config) -> tuple[credit.Credit | None, list[str]]:
        """The credit with the run's own method, and what is not as recorded."""
        columns = self._columns()
        try:
            self.options = credit_options(config)
            lost = "hidden states of the policy" if needs_policy(self.options) else None
            if needs_values(self.method) and not self._has_values():
                lost = "values of the critic"
            if lost:
                return None, [f"the {lost} are not recorded: the numbers are those of the record"]
            found = self._assign(self.method, columns, self.options)
        except Exception as error:  # a method of the user's own may raise anything
            return None, [
                f"cannot be computed anew, the numbers are those of the record: {_reason(error)}"
            ]
        recorded = self._recorded("advantage")
        off = float(np.abs(found.advantage - recorded).max(initial=0.0))
        if off <= _SAME * (1.0 + float(np.abs(recorded).max(initial=0.0))):
            return found, []
        return found, [
            f"computed anew, advantages differ from the recorded ones by up to {off:.2g}: the run "
            "had other options then, or another version of proxmo"
        ]

    def _has_values(self) -> bool:
        """Whether what the critic expected is recorded: only a run that has one does."""
        return all("value" in self._step(row) for row in range(len(self.places)))

    def _columns(self) -> dict[str, Any]:
        """The rows of the credit, as `credit.assign` takes them."""
        played = [self.episodes[number] for number, _ in self.places]
        steps = [self._step(row) for row in range(len(self.places))]
        return {
            "group": [one["group"] for one in played],
            "episode": [number for number, _ in self.places],
            "step": [step for _, step in self.places],
            "reward": np.array([one["reward"] for one in steps], np.float64),
            "success": [_won(one) for one in played],
            "state": [one["observation"] for one in steps],
        }

    def _assign(
        self, method: str, columns: Mapping[str, Any], options: Mapping[str, Any]
    ) -> credit.Credit:
        if needs_values(method):
            options = {**options, "value": self._recorded("value")}
        return credit.assign(method, **columns, **options)

    def _other_methods(
        self, row: int, methods: Iterable[str] | None
    ) -> tuple[dict[str, float], dict[str, str]]:
        found: dict[str, float] = {}
        left_out: dict[str, str] = {}
        columns = self._columns()
        for name in credit.method_names() if methods is None else dict.fromkeys(methods):
            defaults = credit.method_options(name)
            needed = [one for one in defaults if defaults[one] is inspect.Parameter.empty]
            if self._has_values():
                needed = [one for one in needed if one != "value"]
            if needed:
                left_out[name] = f"needs {', '.join(needed)}, which this run does not record"
                continue
            try:
                assigned = self._assign(name, columns, {"gamma": self.options["gamma"]})
                found[name] = float(assigned.advantage[row])
            except Exception as error:  # as above; the other methods can still be told
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

    def _step(self, row: int) -> Mapping[str, Any]:
        episode, step = self.places[row]
        found: Mapping[str, Any] = self.episodes[episode]["steps"][step]
        return found

    def _recorded(self, name: str) -> NDArray[np.float64]:
        return np.array([self._step(row)[name] for row in range(len(self.places))], np.float64)

    def _compared(self, group: int) -> list[Mapping[str, Any]]:
        """The episodes of a group that got credit."""
        found = (self.episodes[number] for number in dict.fromkeys(one for one, _ in self.places))
        return [episode for episode in found if episode["group"] == group]

    def _line(self, row: int) -> StepLine:
        (episode, step), taken = self.places[row], self._step(row)
        return StepLine(
            episode=episode,
            step=step,
            group=self.episodes[episode]["group"],
            observation=taken["observation"],
            action=taken["action"],
            step_return=taken["step_return"],
            step_advantage=taken["step_advantage"],
            advantage=taken["advantage"],
        )

    def _similar(self, one: credit.Neighbour) -> SimilarStep:
        episode, step = self.places[one.row]
        return SimilarStep(
            episode, step, one.similarity, one.weight, one.step_return, one.count, one.text
        )

    def _weights(self, group: int) -> dict[bool, float]:
        """Modulation by success among the episodes of a group."""
        if self.credit is None or self.credit.modulation is None:
            return {}
        return {
            _won(self.episodes[number]): float(self.credit.modulation[row])
            for row, (number, _) in enumerate(self.places)
            if self.episodes[number]["group"] == group
        }

    def _groups(self) -> Iterable[GroupLine]:
        numbers: defaultdict[int, list[int]] = defaultdict(list)
        for number, episode in enumerate(self.episodes):
            numbers[episode["group"]].append(number)
        for group, members in sorted(numbers.items()):
            played = [self.episodes[number] for number in members]
            compared, weights = self._compared(group), self._weights(group)
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

"""Results side by side in the form of the paper's table 1 (arXiv 2602.19225), in percent.

A row is a method with a model: all evaluations and training runs of the two, which must share a
panel and all settings per environment. Several of them, or several seeds, give a mean with its
standard deviation.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from proxmo.config_loading import load_toml
from proxmo.errors import DataError, UsageError
from proxmo.evaluation.results import read_evaluation
from proxmo.evaluation.summary import Evaluation
from proxmo_envs import InvalidOptionError, description_of
from proxmo_envs.creators import creator_of
from proxmo_envs.description import descriptions

BASELINE = "grpo"
# How a player was asked, by the settings of its evaluation, and its result.
_Settings = Mapping[str, Any]
_Measured = tuple[_Settings, Evaluation]
# Mean and standard deviation; None where there is only one value.
Cell = tuple[float, float | None]
# Ends the name of a column that holds the difference of the one before it to the baseline.
DIFFERENCE = " - GRPO"
# Settings of a player that do not say how it was asked; they may differ within a row.
_WHO = {"model", "method", "checkpoint", "base_url"}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table; `cells` maps columns to (mean, standard deviation or None).

    `panels` maps environments to (name, hash) of the panel played; empty in `published` rows.
    """

    model: str
    method: str
    cells: dict[str, Cell]
    panels: dict[str, tuple[str, str]] = field(default_factory=dict)
    unscored: int = 0
    published: bool = False


def measured_rows(paths: Iterable[Path]) -> list[Row]:
    """Reads evaluation directories and training runs, of which the last evaluation counts.

    Raises:
        DataError: a path is neither, or holds no finished evaluation.
        UsageError: a method was evaluated on different panels of one environment, or asked in
            different ways.
    """
    groups: dict[tuple[str, str], list[_Measured]] = {}
    # A run that is named twice is not two runs.
    for path in {path.resolve(): path for path in paths}.values():
        key, settings, evaluation = _read(path)
        if not evaluation.episodes:
            raise DataError(
                f"{path} has no scored episode: all {evaluation.errors} ended in errors"
            )
        groups.setdefault(key, []).append((settings, evaluation))
    return _with_differences([_row(*key, group) for key, group in groups.items()])


def published_rows() -> list[Row]:
    """Reads the figures of the paper, with the columns that our descriptions name."""
    rows = []
    table = (files(__package__) / "published.csv").read_text(encoding="utf-8")
    for line in csv.DictReader(table.splitlines()):
        model, method = line.pop("model"), line.pop("method")
        cells: dict[str, Cell] = {
            column: (float(figure), None) for column, figure in line.items() if figure
        }
        rows.append(Row(model, method, cells, published=True))
    return _with_differences(rows)


def columns(rows: Sequence[Row]) -> list[str]:
    """The columns that hold anything, in the paper's order."""
    used = {column for row in rows for column in row.cells}
    known = [c for one in map(_labels, _environments(rows)) for c in one.columns if c in used]
    return known + sorted(used - set(known))


@dataclass(frozen=True, slots=True)
class _Labels:
    """The columns of an environment; `types` maps columns to task types."""

    types: Mapping[str, str]
    score: str
    success: str

    @property
    def columns(self) -> list[str]:
        """All of them, in the order of the table."""
        return [*self.types, *filter(None, [self.score]), self.success, self.success + DIFFERENCE]


def _labels(env: str) -> _Labels:
    """The columns that the description of an environment names, unless others have that name."""
    taken: set[str] = set()
    for one in descriptions():
        labels = _Labels(one.task_types, one.score_label, one.success_label)
        if one.id == env and not taken & {*labels.columns}:
            return labels
        taken |= {*labels.columns}
    types = {f"{env} {label}": kind for label, kind in description_of(env).task_types.items()}
    return _Labels(types, f"{env} Score", f"{env} Succ.")


def _environments(rows: Sequence[Row]) -> list[str]:
    """The ids of the described environments, then of others that were played."""
    played = (env for row in rows for env in row.panels)
    return list(dict.fromkeys([*(one.id for one in descriptions()), *sorted(played)]))


def notes(rows: Sequence[Row]) -> list[str]:
    """Notes for the reader: the panel behind every number, and episodes that were left out."""
    panels: dict[str, dict[tuple[str, str], list[str]]] = {}
    for row in rows:
        for env, panel in row.panels.items():
            panels.setdefault(env, {}).setdefault(panel, []).append(f"{row.model} {row.method}")
    said = []
    for env, found in panels.items():
        for (name, digest), who in found.items():
            rest = f" ({', '.join(who)})" if len(found) > 1 else ""
            said.append(f"{env}: panel {name}, sha256 {digest}{rest}")
        if len(found) > 1:
            said.append(f"{env}: rows of different panels do not compare")
    said += [
        f"{row.model} {row.method}: {row.unscored} episodes ended in an error and are left out"
        for row in rows
        if row.unscored
    ]
    return said


def _read(path: Path) -> tuple[tuple[str, str], _Settings, Evaluation]:
    """Returns (model, method), how it was asked, and the result; `path` as for `measured_rows`."""
    try:
        if (path / "config.toml").is_file():
            config = load_toml(path / "config.toml")
            text = (path / "evaluations.jsonl").read_text(encoding="utf-8")
            row = json.loads(text.split("\n")[:-1][-1])
            method = config.credit.method if row.pop("iteration") else "warm start"
            return (config.model.name, method), {}, Evaluation.from_json(row)
        player = read_evaluation(path).settings["player"]
        row = json.loads((path / "evaluation.json").read_text(encoding="utf-8"))
        how = {key: value for key, value in player.items() if key not in _WHO}
        return (player["model"], player["method"]), how, Evaluation.from_json(row)
    except (OSError, ValueError, IndexError, KeyError, TypeError) as cause:
        raise DataError(
            f"{path} holds no finished evaluation: expected a directory of `proxmo eval --out`, "
            f"whose command continues it, or a training run ({cause})"
        ) from cause


def _row(model: str, method: str, measured: Sequence[_Measured]) -> Row:
    by_env: dict[str, list[_Measured]] = {}
    for one in measured:
        env_id = one[1].env_id
        # Its module describes it; where that is gone, the columns have general names.
        with suppress(InvalidOptionError):
            creator_of(env_id)
        by_env.setdefault(env_id.rpartition(":")[2], []).append(one)
    cells: dict[str, Cell] = {}
    panels = {}
    for env, runs in by_env.items():
        _check_settings(f"{method} with {model}", env, [settings for settings, _ in runs])
        group = [evaluation for _, evaluation in runs]
        found = {(one.panel, one.panel_hash) for one in group}
        if len({digest for _, digest in found}) > 1:
            named = ", ".join(f"{name} (sha256 {digest[:12]})" for name, digest in sorted(found))
            raise UsageError(
                f"{method} with {model} was evaluated on different panels of {env}: {named}; "
                "a mean over them means nothing: give runs of one panel"
            )
        panels[env] = min(found)
        cells |= _cells(env, group)
    return Row(model, method, cells, panels, sum(one.errors for _, one in measured))


def _check_settings(who: str, env: str, given: Sequence[_Settings]) -> None:
    """Refuses a mean over players that were asked in different ways; training runs have one."""
    for key in sorted({key for settings in given for key in settings}):
        values = sorted({repr(settings[key]) for settings in given if key in settings})
        if len(values) > 1:
            raise UsageError(
                f"{who} was asked in different ways on {env}: {key} {' and '.join(values)}; "
                "a mean over them means nothing: give runs with the same settings"
            )


def _cells(env: str, group: Sequence[Evaluation]) -> dict[str, Cell]:
    labels = _labels(env)
    cells: dict[str, Cell] = {}
    for column, kind in labels.types.items():
        found = [one.by_task_type[kind].success_rate for one in group if kind in one.by_task_type]
        if found:
            cells[column] = _percent(found)
    if labels.score:
        scores = [one.mean_score for one in group]
        cells[labels.score] = _percent(scores, scores)
    rates = [one.success_rate for one in group]
    seeds = [rate for one in group if one.seeds for rate in one.seeds.success_rates.values()]
    # Several runs show the spread between them, a single one that between its seeds.
    cells[labels.success] = _percent(rates, rates if len(rates) > 1 else seeds)
    return cells


def _percent(values: Sequence[float], spread: Sequence[float] = ()) -> Cell:
    return 100 * mean(values), 100 * stdev(spread) if len(spread) > 1 else None


def _with_differences(rows: Sequence[Row]) -> list[Row]:
    """Adds the difference of each row to GRPO with the same model on the same panels."""
    baselines = {row.model: row for row in rows if row.method == BASELINE}
    for row in rows:
        baseline = baselines.get(row.model)
        if baseline is None or baseline is row:
            continue
        for env in _environments(rows):
            column = _labels(env).success
            same = _digest(row, env) == _digest(baseline, env)
            if same and column in row.cells and column in baseline.cells:
                above = row.cells[column][0] - baseline.cells[column][0]
                row.cells[column + DIFFERENCE] = above, None
    return list(rows)


def _digest(row: Row, env: str) -> str:
    return row.panels.get(env, ("", ""))[1]

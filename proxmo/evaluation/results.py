"""Results of an evaluation, one per episode, and the directory that keeps them.

    settings.json         who played what; an evaluation continues only with the same
    panel.toml            the tasks
    results.jsonl         a line per episode: outcome, score, steps, tokens, cost, cause of an error
    transcripts.jsonl.gz  a line per episode: every observation, response and action
    evaluation.json       the numbers that follow, once all is played

The two files of lines grow while episodes end and are put in the order of seeds, tasks and trials
at the end, so that an evaluation that was interrupted leaves the same files as one in one go.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from proxmo.errors import DataError, UsageError
from proxmo.evaluation.panels import Panel, write_panel
from proxmo.files import replace_bytes
from proxmo.policies.usage import Prices
from proxmo.types import Episode, Outcome

SETTINGS, RESULTS, TRANSCRIPTS = "settings.json", "results.jsonl", "transcripts.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Result:
    """How one episode ended: the `trial`-th draw at a task with a seed.

    `tries` counts how often an agent that learns from failures played the task in this trial; steps
    are those of the last of them, tokens and cost those of all, with its notes in between.
    """

    seed: int
    task_id: str
    trial: int
    task_type: str
    outcome: Outcome
    score: float
    steps: int
    invalid_actions: int
    tries: int
    prompt_tokens: int
    response_tokens: int
    cost: float
    error: str | None

    @classmethod
    def of(cls, episode: Episode, seed: int, prices: Prices) -> Result:
        """Counts what an episode held."""
        read, written = episode.prompt_tokens, episode.response_tokens
        return cls(
            seed=seed,
            task_id=episode.task_id,
            trial=episode.member,
            task_type=episode.task_type,
            outcome=episode.outcome,
            score=episode.score,
            steps=len(episode.steps),
            invalid_actions=sum(not step.valid for step in episode.steps),
            tries=episode.trial,
            prompt_tokens=read,
            response_tokens=written,
            cost=prices.cost(read, written),
            error=episode.cause if episode.outcome is Outcome.ERROR else None,
        )

    @property
    def key(self) -> tuple[int, str, int]:
        """Seed, task and trial, which no two results share."""
        return self.seed, self.task_id, self.trial

    @property
    def scored(self) -> bool:
        """Whether it counts: an episode that ended in an error is neither won nor lost."""
        return self.outcome is not Outcome.ERROR

    @property
    def won(self) -> bool:
        """Whether the environment said so."""
        return self.outcome is Outcome.WON


@dataclass(frozen=True, slots=True)
class Recorded:
    """An evaluation as its directory holds it, finished or not."""

    path: Path
    settings: dict[str, Any]
    results: list[Result]


def read_evaluation(path: Path) -> Recorded:
    """Reads the directory of an evaluation.

    Raises:
        DataError: it is none.
    """
    try:
        settings = json.loads((path / SETTINGS).read_text(encoding="utf-8"))
        if not {"panel", "player"} <= set(settings):
            raise ValueError(f"{SETTINGS} does not say who played what")
        # What follows the last newline was being written when the process died.
        lines = (path / RESULTS).read_text(encoding="utf-8").split("\n")[:-1]
        rows = [json.loads(line) for line in lines]
        results = [Result(**{**row, "outcome": Outcome(row["outcome"])}) for row in rows]
    except (OSError, ValueError, TypeError, KeyError) as cause:
        raise DataError(
            f"{path} is not the directory of an evaluation, as `proxmo eval --out DIR` makes it: "
            f"{cause}"
        ) from cause
    return Recorded(path, settings, results)


class EvaluationDirectory:
    """Keeps results as they come and knows which are there already.

    Args:
        path: new, empty, or that of the same evaluation. We then continue it: episodes that are
            missing or ended in an error are to be played.
        panel: the tasks.
        settings: as JSON; they must be equal to continue.

    Raises:
        UsageError: the directory holds something else, or another process writes to it.
        DataError: the directory cannot be written or read.
    """

    def __init__(self, path: Path, panel: Panel, settings: Mapping[str, Any]) -> None:
        self.path = path
        self.panel = panel
        # As JSON gives it back, where tuples are lists.
        self.settings = json.loads(json.dumps(settings))
        self.results: list[Result] = []
        self._lock = FileLock(path / ".lock")

    def __enter__(self) -> EvaluationDirectory:
        """Makes the directory, or reads the results in it."""
        try:
            with ExitStack() as undo:
                if self.path.exists() and (not self.path.is_dir() or self._strange()):
                    raise UsageError(
                        f"{str(self.path)!r} is not empty and holds no evaluation; "
                        "choose another --out"
                    )
                self.path.mkdir(parents=True, exist_ok=True)
                self._lock.acquire(timeout=0)
                undo.callback(self._lock.release)
                if (self.path / SETTINGS).exists():
                    self._continue()
                else:
                    write_panel(self.panel, self.path / "panel.toml")
                    replace_bytes(self.path / RESULTS, b"")
                    replace_bytes(self.path / TRANSCRIPTS, b"")
                    self._write_json(SETTINGS, self.settings)
                undo.pop_all()
        except Timeout as cause:
            raise UsageError(
                f"{str(self.path)!r} is in use by another process; wait for it or choose another "
                "--out"
            ) from cause
        except OSError as cause:
            raise DataError(f"cannot write the directory {str(self.path)!r}: {cause}") from cause
        return self

    def __exit__(self, *_: object) -> None:
        """Releases the directory."""
        self._lock.release()

    def add(self, result: Result, episode: Episode) -> None:
        """Keeps an episode; the line of results comes last and marks it as complete."""
        with (self.path / TRANSCRIPTS).open("ab") as file:
            file.write(gzip.compress(_transcript(result, episode), mtime=0))
        with (self.path / RESULTS).open("ab") as file:
            file.write(_row(result))
        self.results.append(result)

    def finish(self, evaluation: Mapping[str, Any]) -> None:
        """Puts the files in order and writes the numbers of the evaluation."""
        self._rewrite()
        self._write_json("evaluation.json", evaluation)

    def _strange(self) -> bool:
        # The panel is written first; it may have been in the writing when the process died.
        names = {entry.name.removesuffix(".new") for entry in self.path.iterdir()} - {".lock"}
        return bool(names) and not {SETTINGS, "panel.toml"} & names

    def _continue(self) -> None:
        """Reads the results, drops errors, and cuts lines that were half written."""
        recorded = read_evaluation(self.path)
        before = recorded.settings
        both = sorted(before.keys() | self.settings.keys())
        changes = [(key, before.get(key), self.settings.get(key)) for key in both]
        said = [f"{key} was {old!r} and is {new!r}" for key, old, new in changes if old != new]
        if said:
            raise UsageError(
                f"the evaluation in {str(self.path)!r} is another one: {'; '.join(said)}; "
                "choose another --out"
            )
        played = self._transcripts()
        self.results = [r for r in recorded.results if r.scored and r.key in played]
        self._rewrite()

    def _rewrite(self) -> None:
        """Writes the files anew, with the results in order."""
        seeds = {seed: number for number, seed in enumerate(self.settings["seeds"])}
        place = {task_id: number for number, task_id in enumerate(self.panel.tasks)}
        ordered = sorted(self.results, key=lambda r: (seeds[r.seed], place[r.task_id], r.trial))
        lines = self._transcripts()
        text = "".join(lines[result.key] for result in ordered)
        replace_bytes(self.path / TRANSCRIPTS, gzip.compress(text.encode(), mtime=0))
        replace_bytes(self.path / RESULTS, b"".join(map(_row, ordered)))

    def _transcripts(self) -> dict[tuple[int, str, int], str]:
        """Reads the complete lines, the newest of each episode; one half written ends the file."""
        lines = {}
        with gzip.open(self.path / TRANSCRIPTS, "rt", encoding="utf-8") as file:
            try:
                for line in file:
                    row = json.loads(line)
                    lines[row["seed"], row["task_id"], row["trial"]] = line
            except (EOFError, ValueError, zlib.error, gzip.BadGzipFile):
                pass
        return lines

    def _write_json(self, name: str, content: Mapping[str, Any]) -> None:
        text = json.dumps(content, indent=2) + "\n"
        replace_bytes(self.path / name, text.encode())


def _row(result: Result) -> bytes:
    return (json.dumps(dataclasses.asdict(result)) + "\n").encode()


def _transcript(result: Result, episode: Episode) -> bytes:
    kept = ("observation", "response", "action", "valid", "reason", "reward")
    steps = [{name: getattr(step, name) for name in kept} for step in episode.steps]
    row = {name: getattr(result, name) for name in ("seed", "task_id", "trial", "outcome")}
    # ASCII: responses may hold halves of surrogate pairs, which no encoding but this one can carry.
    return (json.dumps({**row, "task": episode.task, "steps": steps}) + "\n").encode()

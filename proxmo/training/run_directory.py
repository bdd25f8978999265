"""A run on disk: what was configured, measured, played and saved; nothing is ever half-written.

config.toml  run.json  metrics.jsonl  evaluations.jsonl  episodes/  checkpoints/  and, where the
embedded model is trained, initial_model/.
"""

from __future__ import annotations

import dataclasses
import gzip
import importlib.metadata
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from proxmo.config import Config
from proxmo.config_loading import dump_toml
from proxmo.errors import CheckpointError, DataError, UsageError
from proxmo.evaluation import Evaluation
from proxmo.files import replace_text
from proxmo.training.checkpoint import STATE_FILE, write_directory
from proxmo.training.metrics_file import MetricsFile
from proxmo.types import Episode, Outcome

if TYPE_CHECKING:
    from proxmo.credit import Credit

PACKAGES = ("proxmo", "torch", "transformers", "tokenizers", "gymnasium", "numpy", "faiss-cpu")


class RunDirectory:
    """Owns the files of one run.

    Args:
        path: where they are.
        config: configuration of the run; written to config.toml.
        resume: whether a run is expected there already.

    Raises:
        UsageError: a new run in a directory that holds something, or a resume without a run.
        DataError: the directory cannot be written.
    """

    def __init__(self, path: Path, config: Config, *, resume: bool) -> None:
        self.path = path
        self.config = config
        used = path.exists() and (not path.is_dir() or any(path.iterdir()))
        if used and not resume:
            raise UsageError(
                f"{str(path)!r} is not empty; choose another --out, or continue it with "
                f"--resume {path}"
            )
        if resume and not (path / "config.toml").is_file():
            raise UsageError(
                f"{str(path)!r} holds no run to resume: expected config.toml and checkpoints/ in it"
            )
        parent = next(p for p in (path, *path.absolute().parents) if p.exists())
        if parent.is_dir() and not os.access(parent, os.W_OK):
            raise DataError(f"cannot write the run directory {str(path)!r}: {parent} is read-only")
        self._resume = resume
        self._lock = FileLock(path / ".lock")
        self.initial = path / "initial_model"
        self.metrics = MetricsFile(path / "metrics.jsonl")

    def create(self) -> None:
        """Makes the directory and writes what the run is; before this no file has changed.

        From here to the end of the `with` block (or of the process) no other process can have the
        directory.
        """
        try:
            (self.path / "episodes").mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            (self.path / "checkpoints").mkdir(exist_ok=True)
            replace_text(self.path / "config.toml", dump_toml(self.config))
            if not self._resume:
                replace_text(
                    self.path / "run.json", json.dumps(self._provenance(), indent=2) + "\n"
                )
        except Timeout as cause:
            raise UsageError(
                f"{str(self.path)!r} is in use by another process; wait for it or choose another "
                "--out"
            ) from cause
        except OSError as cause:
            raise DataError(
                f"cannot write the run directory {str(self.path)!r}: {cause}"
            ) from cause

    def __enter__(self) -> RunDirectory:
        """Nothing is taken yet: `create` does that once it is known what the run starts from."""
        return self

    def __exit__(self, *_: object) -> None:
        """Lets others have the directory."""
        self._lock.release()

    def _provenance(self) -> dict[str, Any]:
        versions = {}
        for name in PACKAGES:
            try:
                versions[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
        return {
            "command": sys.argv,
            "seed": self.config.seed,
            "python": platform.python_version(),
            "machine": platform.platform(),
            "versions": versions,
        }

    def settings(self) -> dict[str, Any]:
        """What a checkpoint remembers about its training, as JSON."""
        return {"config": dataclasses.asdict(self.config)}

    def keep_initial(self, source: Path) -> None:
        """Copies the model the run starts from into the run, once."""
        if not self.initial.exists():
            write_directory(self.initial, lambda partial: _copy_files(source, partial))

    def checkpoint_path(self, iteration: int) -> Path:
        """Where the checkpoint of an iteration is."""
        return self.path / "checkpoints" / f"step_{iteration}"

    def load_state(self, checkpoint: Path, *, shared: bool = False) -> dict[str, Any]:
        """Loads the trainer's state beside a checkpoint's weights.

        With `shared` the file is mapped: processes that each take a piece hold it once together.
        """
        import torch

        try:
            state: dict[str, Any] = torch.load(
                checkpoint / STATE_FILE, map_location="cpu", weights_only=True, mmap=shared
            )
        except (OSError, EOFError, RuntimeError, ValueError, UnpicklingError) as cause:
            raise CheckpointError(
                f"{checkpoint / STATE_FILE} cannot be read, so the run cannot go on: {cause}"
            ) from cause
        return state

    def truncate_after(self, iteration: int) -> None:
        """Forgets the records after an iteration, which a resumed run makes anew; -1: all."""
        with self._writing():
            self._truncate_after(iteration)

    def _truncate_after(self, iteration: int) -> None:
        self.metrics.truncate_after(iteration)
        kept = [row for row in self._evaluation_rows() if row["iteration"] <= iteration]
        replace_text(
            self.path / "evaluations.jsonl", "".join(json.dumps(row) + "\n" for row in kept)
        )
        for path in (self.path / "episodes").glob("iteration_*.jsonl.gz*"):
            number = path.name.removeprefix("iteration_").partition(".")[0]
            if not number.isdigit() or int(number) > iteration:
                path.unlink()

    def record_iteration(
        self,
        iteration: int,
        metrics: dict[str, float],
        episodes: Sequence[Episode],
        credit: Credit,
        values: NDArray[np.float64] | None = None,
    ) -> None:
        """Writes the episodes of an iteration with their credit, then its row of metrics.

        `values` are the critic's (S,), of a run that has one.
        """
        target = self.path / "episodes" / f"iteration_{iteration:06d}.jsonl.gz"
        partial = target.with_name(target.name + ".new")
        with self._writing():
            with gzip.open(partial, "wt", encoding="utf-8") as file:
                for row in _episode_rows(episodes, credit, values):
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            partial.replace(target)
            self.metrics.append(iteration, metrics)

    def record_evaluation(self, iteration: int, evaluation: Evaluation) -> None:
        """Appends an evaluation to evaluations.jsonl."""
        row = {"iteration": iteration, **evaluation.to_json()}
        path = self.path / "evaluations.jsonl"
        with self._writing(), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Says of what fails which run it was, and how it goes on: a full disk names no file."""
        try:
            yield
        except OSError as cause:
            raise DataError(
                f"cannot write into the run directory {str(self.path)!r}: {cause}; make room, then "
                "continue with --resume (what was saved before is intact)"
            ) from cause

    def evaluations(self) -> list[tuple[int, Evaluation]]:
        """All evaluations so far as (iteration, result), in the order they were made."""
        return [
            (row.pop("iteration"), Evaluation.from_json(row)) for row in self._evaluation_rows()
        ]

    def best_iteration(self) -> int | None:
        """The evaluated iteration of highest success, the latest of equals; None before any."""
        scored = [
            (evaluation.success_rate, iteration) for iteration, evaluation in self.evaluations()
        ]
        return max(scored)[1] if scored else None

    def _evaluation_rows(self) -> list[dict[str, Any]]:
        path = self.path / "evaluations.jsonl"
        if not path.exists():
            return []
        # What follows the last newline was being written when the process died.
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


class FollowedRun(RunDirectory):
    """The directory as all processes of a run but the first have it: they write nothing.

    Args:
        path: where it is.
        config: configuration of the run.
    """

    def __init__(self, path: Path, config: Config) -> None:
        self.path = path
        self.config = config
        self.initial = path / "initial_model"
        self._evaluations: list[tuple[int, Evaluation]] = []

    def create(self) -> None:
        """Left to the first process."""

    def __exit__(self, *_: object) -> None:
        """There is nothing to give back."""

    def keep_initial(self, source: Path) -> None:
        """Left to the first process."""

    def truncate_after(self, iteration: int) -> None:
        """Takes note of the evaluations that stay, wherever the first process is in doing so."""
        self._evaluations = [one for one in super().evaluations() if one[0] <= iteration]

    def record_iteration(self, *_: Any, **__: Any) -> None:
        """Left to the first process."""

    def record_evaluation(self, iteration: int, evaluation: Evaluation) -> None:
        """Takes note of an evaluation."""
        self._evaluations.append((iteration, evaluation))

    def evaluations(self) -> list[tuple[int, Evaluation]]:
        """All evaluations so far, as the first process has them."""
        return list(self._evaluations)


def _episode_rows(
    episodes: Sequence[Episode], credit: Credit, values: NDArray[np.float64] | None
) -> list[dict[str, Any]]:
    """One JSON object per episode; the steps carry their credit, in `Batch.from_episodes` order."""
    rows, at = [], 0
    for episode in episodes:
        assigned = episode.outcome is not Outcome.ERROR
        steps = []
        for step in episode.steps:
            entry: dict[str, Any] = {
                "observation": step.observation,
                "response": step.response,
                "action": step.action,
                "valid": step.valid,
                "reason": step.reason,
                "reward": step.reward,
                "prompt_tokens": len(step.prompt_ids),
                "response_tokens": len(step.response_ids),
            }
            if assigned:
                entry["advantage"] = float(credit.advantage[at])
                entry["episode_advantage"] = float(credit.episode_advantage[at])
                entry["step_advantage"] = float(credit.step_advantage[at])
                entry["step_return"] = float(credit.step_return[at])
                if values is not None:
                    entry["value"] = float(values[at])
                at += 1
            steps.append(entry)
        rows.append(
            {
                "group": episode.group,
                "member": episode.member,
                "task_id": episode.task_id,
                "task_type": episode.task_type,
                "task": episode.task,
                "outcome": episode.outcome.value,
                "score": episode.score,
                "cause": episode.cause,
                "steps": steps,
            }
        )
    return rows


def _copy_files(source: Path, target: Path) -> None:
    for path in sorted(source.iterdir()):
        shutil.copy(path, target / path.name)

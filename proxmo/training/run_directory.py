"""A run on disk: configuration, metrics, evaluations, episodes; no file is ever half-written.

config.toml  run.json  metrics.jsonl  evaluations.jsonl  episodes/  checkpoints/  and, if the run
trains the embedded model, initial_model/.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
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
from proxmo.training.metrics_file import IterationFile
from proxmo.types import Episode, Outcome

if TYPE_CHECKING:
    from proxmo.credit import Credit

PACKAGES = ("proxmo", "torch", "transformers", "tokenizers", "gymnasium", "numpy", "faiss-cpu")
# Recorded of each episode and of each of its steps.
EPISODE_FIELDS = ("group", "member", "task_id", "task_type", "task", "outcome", "score", "cause")
STEP_FIELDS = ("observation", "response", "action", "valid", "reason", "reward")


class RunDirectory:
    """Owns the files of one run.

    Args:
        path: the directory.
        config: configuration of the run; written to config.toml.
        resume: whether `path` must already hold a run.
        writes: whether this process writes the files. Of several processes only the main one does;
            the others just remember the evaluations.

    Raises:
        UsageError: a new run in a directory that is not empty, or a resume without a run.
        DataError: the directory cannot be written.
    """

    def __init__(self, path: Path, config: Config, *, resume: bool, writes: bool = True) -> None:
        self.path = path
        self.config = config
        self.initial = path / "initial_model"
        self._resume = resume
        self._writes = writes
        if writes:
            self._check(resume)
        self._lock = FileLock(path / ".lock")
        self.metrics = IterationFile(path / "metrics.jsonl", repair=writes)
        self._evaluation_file = IterationFile(path / "evaluations.jsonl", repair=writes)
        self._evaluations = self._read_evaluations()

    def _check(self, resume: bool) -> None:
        path = self.path
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

    def create(self) -> None:
        """Makes the directory and writes config.toml and run.json; before this no file changes.

        From here to the end of the `with` block (or of the process) no other process can use the
        directory.
        """
        if not self._writes:
            return
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
        """Locks nothing yet: `create` does, once the initial model is known."""
        return self

    def __exit__(self, *_: object) -> None:
        """Releases the directory."""
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
        """The settings that a checkpoint stores, as JSON."""
        return {"config": asdict(self.config)}

    def keep_initial(self, source: Path) -> None:
        """Copies the model the run starts from into the run, once."""
        if self._writes and not self.initial.exists():
            write_directory(self.initial, partial(shutil.copytree, source, dirs_exist_ok=True))

    def checkpoint_path(self, iteration: int) -> Path:
        """The directory of the checkpoint of an iteration."""
        return self.path / "checkpoints" / f"step_{iteration}"

    def load_state(self, checkpoint: Path, *, shared: bool = False) -> dict[str, Any]:
        """Loads the trainer's state beside a checkpoint's weights.

        With `shared` the file is mapped, so that processes that each take a piece hold it once.
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
        """Drops the records after an iteration, which a resumed run makes anew; -1 drops all."""
        # Equal in all processes, whether or not the main one has written the file already.
        self._evaluations = [one for one in self._read_evaluations() if one[0] <= iteration]
        if not self._writes:
            return
        with self._writing():
            self.metrics.truncate_after(iteration)
            self._evaluation_file.truncate_after(iteration)
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

        `values` are the critic's (S,), if the run has a critic.
        """
        if not self._writes:
            return
        target = self.path / "episodes" / f"iteration_{iteration:06d}.jsonl.gz"
        unfinished = target.with_name(target.name + ".new")
        with self._writing():
            with gzip.open(unfinished, "wt", encoding="utf-8") as file:
                for row in _episode_rows(episodes, credit, values):
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            unfinished.replace(target)
            self.metrics.append(iteration, metrics)

    def record_evaluation(self, iteration: int, evaluation: Evaluation) -> None:
        """Appends an evaluation to evaluations.jsonl."""
        self._evaluations.append((iteration, evaluation))
        if self._writes:
            with self._writing():
                self._evaluation_file.append(iteration, evaluation.to_json())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Names the run in an error and says how to continue it: a full disk names no file."""
        try:
            yield
        except OSError as cause:
            raise DataError(
                f"cannot write into the run directory {str(self.path)!r}: {cause}; make room, then "
                "continue with --resume (earlier checkpoints are intact)"
            ) from cause

    def evaluations(self) -> list[tuple[int, Evaluation]]:
        """All evaluations so far as (iteration, result), oldest first."""
        return list(self._evaluations)

    def best_iteration(self) -> int | None:
        """The evaluated iteration of highest success, the latest of equals; None before any."""
        scored = [
            (evaluation.success_rate, iteration) for iteration, evaluation in self._evaluations
        ]
        return max(scored)[1] if scored else None

    def _read_evaluations(self) -> list[tuple[int, Evaluation]]:
        rows = self._evaluation_file.rows()
        return [(row.pop("iteration"), Evaluation.from_json(row)) for row in rows]


def _episode_rows(
    episodes: Sequence[Episode], credit: Credit, values: NDArray[np.float64] | None
) -> Iterator[dict[str, Any]]:
    """One JSON object per episode; the steps carry their credit, in `Batch.from_episodes` order."""
    columns = {
        name: getattr(credit, name)
        for name in ("advantage", "episode_advantage", "step_advantage", "step_return")
    }
    if values is not None:
        columns["value"] = values
    row = 0
    for episode in episodes:
        steps = []
        for step in episode.steps:
            entry: dict[str, Any] = {name: getattr(step, name) for name in STEP_FIELDS}
            entry["prompt_tokens"] = len(step.prompt_ids)
            entry["response_tokens"] = len(step.response_ids)
            if episode.outcome is not Outcome.ERROR:
                entry |= {name: float(column[row]) for name, column in columns.items()}
                row += 1
            steps.append(entry)
        yield {name: getattr(episode, name) for name in EPISODE_FIELDS} | {"steps": steps}

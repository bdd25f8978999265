"""Replays the recorded episodes of a run or an evaluation to see what their agent saw.

A record holds observation, response and action of each step. A prompt needs more, such as the
admissible actions; the environment gives that again if it gets the same actions. Episodes that end
differently the second time are left out and counted.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxmo.agents.base import Decision
from proxmo.config import EnvConfig
from proxmo.config_loading import load_toml
from proxmo.errors import DataError
from proxmo.evaluation.results import SETTINGS, TRANSCRIPTS, read_evaluation
from proxmo.evaluation.runner import EVALUATION
from proxmo.listener import Listener
from proxmo.rollout.environments import EnvPool
from proxmo.rollout.episode import EpisodeRunner
from proxmo.training.rollouts import ROLLOUT
from proxmo.training.tiny import Demonstration
from proxmo.types import Episode, Outcome

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded episode.

    Attributes:
        task_id: its task.
        outcome: how it ended.
        seed: the entropy its environment was reset with.
        steps: (observation, decision) of each step.
    """

    task_id: str
    outcome: Outcome
    seed: tuple[int, ...]
    steps: tuple[tuple[str, Decision], ...]


def recorded_settings(path: Path) -> dict[str, Any]:
    """The configuration keys of the environment that an evaluation's episodes are from."""
    if not (path / SETTINGS).is_file():
        return {}
    settings = read_evaluation(path).settings["env"]
    return {f"env.{key}": value for key, value in settings.items() if value not in (None, {})}


def read_recordings(path: Path) -> list[Recording]:
    """Reads the episodes of a run, of an evaluation, or of one of their files.

    Args:
        path: RUN, the `--out` of an evaluation, or a file of JSON lines, gzipped or not.

    Raises:
        DataError: there are none.
    """
    run_seed = 0
    if (path / "episodes").is_dir():
        files = sorted((path / "episodes").glob("iteration_*.jsonl.gz"))
        run_seed = load_toml(path / "config.toml").seed
    else:
        files = [path / TRANSCRIPTS if path.is_dir() else path]
    found = [one for file in files for one in _read_file(file, run_seed)]
    if not found:
        raise DataError(
            f"no recorded episodes in {str(path)!r}: expected a run directory, the --out of "
            "`proxmo eval`, or one of their files (episodes/*.jsonl.gz, transcripts.jsonl.gz)"
        )
    return found


def replay(
    recordings: Sequence[Recording], env: EnvConfig, listener: Listener | None = None
) -> list[list[Demonstration]]:
    """Replays episodes and returns their valid steps, without episodes that go differently.

    Raises:
        DataError: all of them do.
    """
    listener = listener or Listener()
    found: list[list[Demonstration]] = []
    causes: Counter[str] = Counter()
    with closing(EnvPool(env)) as pool:
        runner = EpisodeRunner(pool)
        for number, recording in enumerate(recordings, 1):
            steps = _replay(runner, recording)
            if isinstance(steps, str):
                causes[steps] += 1
            else:
                found.append(steps)
            listener.phase("replaying", done=number, total=len(recordings))
    if causes:
        cause, _ = causes.most_common(1)[0]
        text = (
            f"{sum(causes.values())} of {len(recordings)} recorded episodes cannot be played again "
            f"in {env.id} ({cause})"
        )
        if not found:
            raise DataError(f"{text}; were they recorded with other --env, --data or env.kwargs?")
        logger.warning("%s; they are left out", text)
    return found


def _replay(runner: EpisodeRunner, recording: Recording) -> list[Demonstration] | str:
    """The valid steps of an episode, or the reason why it cannot be replayed."""
    live = runner.start(0, 0, recording.task_id, 1, recording.seed)
    found: list[Demonstration] = []
    ended = live if isinstance(live, Episode) else None
    for observation, decision in recording.steps:
        if isinstance(live, Episode) or ended is not None:
            return (ended and ended.cause) or "it ends before its last step"
        if live.observation != observation:
            return "another observation"
        if decision.valid and decision.action is not None:
            view = live.situation(None).view
            found.append(Demonstration(view, decision.action, decision.response))
        ended = runner.advance(live, decision)
    if ended is None or ended.outcome is not recording.outcome:
        return "another outcome"
    return found


def _read_file(file: Path, run_seed: int) -> Iterator[Recording]:
    """The episodes of one file; a line that a killed process left unfinished is skipped."""
    number = file.name.removeprefix("iteration_").partition(".")[0]
    # As `Rollouts` and `evaluate` seed the environments.
    seed = (run_seed, ROLLOUT, int(number) - 1) if number.isdigit() else None
    try:
        opened = gzip.open if file.suffix == ".gz" else open
        with opened(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):
                    row = json.loads(line)
                    yield _recording(row, seed or (row.get("seed", 0), EVALUATION))
    except EOFError:
        return
    except (OSError, ValueError, KeyError, TypeError) as cause:
        raise DataError(
            f"{file} cannot be read as recorded episodes: {type(cause).__name__}: {cause}; "
            "expected JSON lines as `proxmo train` and `proxmo eval --out` write them"
        ) from cause


def _recording(row: Mapping[str, Any], seed: tuple[int, ...]) -> Recording:
    steps = tuple(
        (s["observation"], Decision(s["action"], valid=s["valid"], response=s["response"]))
        for s in row["steps"]
    )
    return Recording(row["task_id"], Outcome(row["outcome"]), seed, steps)

"""Two processes do what one does: the same updates, whole runs, and none is left behind."""

from __future__ import annotations

import gzip
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proxmo.checkpoints import list_checkpoints
from proxmo.distributed import SINGLE, check_devices
from proxmo.errors import TrainingError, UsageError
from proxmo.policies.batching import shared_micro_batches
from proxmo.rollout.collector import Collector
from proxmo.training.launcher import Processes
from proxmo.training.loop import Trainer
from proxmo.training.metrics_file import read_rows
from proxmo.training.run_directory import RunDirectory
from tests.fakes import rng, save_tiny_model
from tests.proxmo import together
from tests.proxmo.together import OBJECTIVES, learner, outcome, run_config, update

torch = pytest.importorskip("torch")

FORMS = ("data", "fsdp")


def in_two_processes(repository: Path, out: Path, *scenarios: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.proxmo.together", out, *scenarios],
        capture_output=True,
        text=True,
        cwd=repository,
        timeout=900,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def results(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes leave behind, and the first update of a single one for them to go on."""
    out = tmp_path_factory.mktemp("together")
    save_tiny_model(out / "model")
    trained = learner("everything")
    torch.save(outcome(trained, update(trained, 0)), out / "single.pt")
    in_two_processes(repository, out, "learn", "go_on", "half", "train", "stop", "engine")
    return out


def load(path: Path) -> Any:
    return torch.load(path, weights_only=True)


def assert_equal_weights(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, weight in one.items():
        assert torch.allclose(weight, other[name], atol=1e-5, rtol=0), name


def assert_same(ours: Any, theirs: Any) -> None:
    """The losses and the weights of an update, within rounding."""
    assert_equal_weights(ours["weights"], theirs["weights"])
    for name, value in ours["metrics"].items():
        assert theirs["metrics"][name] == pytest.approx(value, abs=1e-5), name


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_two_processes_make_the_updates_of_one(objective: str, form: str, results: Path):
    alone = learner(objective)
    for number in range(2):
        found = outcome(alone, update(alone, number))
        for rank in range(2):
            assert_same(found, load(results / f"{objective}-{form}-{number}-{rank}.pt"))
    start = together.weights(together.tiny_model())
    assert max(float((found["weights"][n] - start[n]).abs().max()) for n in start) > 1e-4


@pytest.mark.parametrize("form", FORMS)
def test_what_two_processes_save_one_goes_on_from(form: str, results: Path):
    first = load(results / f"everything-{form}-0-0.pt")
    model = together.tiny_model()
    model.load_state_dict(first["weights"], strict=False)
    alone = learner("everything", model=model)
    alone.load_state(first["state"])
    found = outcome(alone, update(alone, 1))
    assert_same(found, load(results / f"everything-{form}-1-0.pt"))


@pytest.mark.parametrize("form", FORMS)
def test_what_one_process_saves_two_go_on_from(form: str, results: Path):
    alone = learner("everything")
    for number in range(2):
        found = outcome(alone, update(alone, number))
    for rank in range(2):
        assert_same(found, load(results / f"resumed-{form}-{rank}.pt"))


def test_pieces_of_a_bfloat16_model_are_trained_in_float32_and_saved_whole(results: Path):
    first, second = (load(results / f"half-{number}-0.pt") for number in range(2))
    alone = learner("one step", model=together.tiny_model().to(torch.bfloat16))
    alone.whole.load_state_dict(first["weights"], strict=False)
    alone.load_state(first["state"])
    metrics = update(alone, 1)
    assert {w.dtype for w in second["weights"].values()} == {torch.bfloat16}
    assert metrics["loss/policy"] == pytest.approx(second["metrics"]["loss/policy"], abs=1e-2)
    # In bfloat16 the gradients of one and of two differ by about a hundredth, steps of Adam by
    # less than the step itself.
    for ours, theirs in zip(alone.state()["copies"], second["state"]["copies"], strict=True):
        assert theirs.dtype == torch.float32
        assert (ours - theirs).abs().max() < 1e-3
    lost = [c - c.bfloat16().float() for c in second["state"]["copies"]]
    assert max(float(one.abs().max()) for one in lost) > 0


@pytest.mark.slow
def test_adapters_are_trained_alike_in_one_process_and_in_two(repository: Path, tmp_path: Path):
    pytest.importorskip("peft")
    in_two_processes(repository, tmp_path, "adapt")
    together.adapt(SINGLE, tmp_path, forms=("data",))
    alone = load(tmp_path / "adapters-data-0.pt")
    assert_same(alone, load(tmp_path / "adapters-data-1.pt"))
    assert_same(alone, load(tmp_path / "adapters-fsdp-1.pt"))
    saved = load(tmp_path / "adapters-fsdp-0.pt")["state"]["adapters"]
    assert_equal_weights(alone["state"]["adapters"], saved)


def metrics_of(path: Path) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in row.items() if not k.startswith(("time/", "speed/"))}
        for row in read_rows(path / "metrics.jsonl")
    ]


def episodes_of(path: Path) -> list[Any]:
    played = []
    for file in sorted((path / "episodes").iterdir()):
        with gzip.open(file, "rt") as lines:
            played.append([json.loads(line) for line in lines])
    return played


@pytest.mark.parametrize("form", FORMS)
def test_a_run_of_two_processes_is_that_of_one_whose_decisions_have_seeds_of_their_own(
    form: str, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    original = Collector.play

    def own_seeds(self: Collector, *arguments: Any, **options: Any) -> Any:
        return original(self, *arguments, **{**options, "own_seeds": True})

    monkeypatch.setattr(Collector, "play", own_seeds)
    config = run_config(results / "model")
    run = Trainer(config, out=tmp_path / "alone").run()
    ours, theirs = metrics_of(tmp_path / "alone"), metrics_of(results / form)
    assert [row["iteration"] for row in theirs] == [1, 2, 3]
    for one, other in zip(ours, theirs, strict=True):
        assert other == pytest.approx(one, abs=1e-4)
    played = episodes_of(tmp_path / "alone"), episodes_of(results / form)
    for one, other in zip(*played, strict=True):
        assert [(e["group"], e["member"]) for e in other] == [
            (group, member) for group in range(3) for member in range(4)
        ]
        assert [(e["task_id"], [s["action"] for s in e["steps"]]) for e in one] == [
            (e["task_id"], [s["action"] for s in e["steps"]]) for e in other
        ]
    last = list_checkpoints(results / form)[-1][1]
    for name in ("model.safetensors", "proxmo.json", "trainer_state.pt", "tokenizer.json"):
        assert (last / name).is_file() == (run.checkpoint / name).is_file()
    from safetensors.torch import load_file

    assert_equal_weights(
        load_file(run.checkpoint / "model.safetensors"), load_file(last / "model.safetensors")
    )
    evaluations = [(path / "evaluations.jsonl").read_text() for path in (run.path, results / form)]
    assert evaluations[0] == evaluations[1]


def test_engines_with_weights_of_their_own_get_those_of_every_update(results: Path):
    for one, other in zip(
        metrics_of(results / "fsdp"), metrics_of(results / "engine"), strict=True
    ):
        assert other == pytest.approx(one, abs=1e-4)


def test_a_run_goes_on_with_another_number_of_processes(results: Path, tmp_path: Path):
    shutil.copytree(results / "fsdp", tmp_path / "run")
    config = run_config(results / "model", iterations=4)
    run = Trainer(config, out=tmp_path / "run", resume=True).run()
    assert (run.iterations_done, run.finished) == (4, True)
    assert [row["iteration"] for row in metrics_of(run.path)] == [1, 2, 3, 4]


def test_a_stop_that_one_process_is_asked_for_is_that_of_all(results: Path):
    assert [number for number, _ in list_checkpoints(results / "stopped")] == [0]


def test_processes_get_equally_many_batches_that_count_every_row_once():
    lengths = rng().integers(1, 30, size=23)
    samples = [((1,) * int(n), (2,) * int(n)) for n in lengths]
    for size in (1, 2, 3, 5):
        parts = [
            shared_micro_batches(samples, range(23), token_budget=100, rank=rank, size=size)
            for rank in range(size)
        ]
        assert len({len(part) for part in parts}) == 1
        counted = [i for part in parts for rows, counts in part if counts for i in rows]
        assert sorted(counted) == list(range(23))
    lonely = [
        shared_micro_batches(samples, [3], token_budget=100, rank=rank, size=2) for rank in (0, 1)
    ]
    assert lonely == [[([3], True)], [([3], False)]]
    assert shared_micro_batches(samples, [], token_budget=100, rank=1, size=2) == []


def test_one_process_alone_exchanges_nothing():
    assert (SINGLE.is_main, SINGLE.owns(7)) == (True, True)
    assert (SINGLE.all_gather("x"), SINGLE.broadcast("x"), SINGLE.any(False)) == (["x"], "x", False)
    assert SINGLE.all_reduce({"a": 0.1}) == {"a": 0.1}


def test_a_follower_writes_nothing_and_knows_the_evaluations_that_stay(results: Path):
    path = results / "data"
    before = {p: p.stat().st_mtime_ns for p in path.rglob("*")}
    config = run_config(results / "model")
    with RunDirectory(path, config, resume=True, writes=False) as followed:
        followed.create()
        followed.truncate_after(2)
        assert [iteration for iteration, _ in followed.evaluations()] == [0]
        followed.record_evaluation(3, followed.evaluations()[0][1])
        assert [iteration for iteration, _ in followed.evaluations()] == [0, 3]
    assert {p: p.stat().st_mtime_ns for p in path.rglob("*")} == before


@pytest.mark.parametrize(
    ("device", "gpus", "expected"),
    [("cpu", 8, False), ("auto", 0, False), ("auto", 2, True), ("cuda", 4, True)],
)
def test_every_process_has_a_gpu_where_there_are_any(
    device: str, gpus: int, expected: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert check_devices(device, 2) is expected


@pytest.mark.parametrize(
    ("device", "gpus", "text"),
    [
        ("auto", 1, "2 processes need a GPU each, and torch sees 1"),
        ("cuda", 0, "torch sees 0; lower --nproc"),
        ("cuda:1", 2, "'cuda:1', but 2 processes take one GPU each"),
    ],
)
def test_too_few_gpus_are_told(device: str, gpus: int, text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(UsageError, match=text):
        check_devices(device, 2)


def dies(directory: Path) -> None:
    """What a process does whose memory runs out, while the other waits for it."""
    from proxmo.distributed import process_group

    with process_group("cpu") as processes:
        (directory / str(processes.rank)).touch()
        processes.all_gather(None)
        if processes.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        processes.all_gather(None)


def test_one_that_dies_ends_all_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    # torch's loggers have a handler of their own.
    monkeypatch.setattr(
        logging.getLogger("torch.multiprocessing.spawn"), "handlers", [caplog.handler]
    )
    with (
        pytest.raises(TrainingError, match=r"process 2 of 2 has failed: Signal 9 \(SIGKILL\)"),
        Processes(2, partial(dies, tmp_path)) as processes,
    ):
        processes.wait()
    assert {p.name for p in tmp_path.iterdir()} == {"0", "1"}
    assert "Terminating process" not in caplog.text  # the error says it
    for pid in processes._context.pids().values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(
    ("message", "error", "text"),
    [
        ("UnknownNameError: unknown method", UsageError, r"^unknown method \(process 2 of 4\)$"),
        ("RolloutError: no episode", TrainingError, r"^no episode \(process 2 of 4\)$"),
        ("KeyError: 'x'", TrainingError, "process 2 of 4 has failed: KeyError: 'x'.*is in"),
    ],
)
def test_the_error_of_a_process_is_that_of_the_run(message: str, error: type[Exception], text: str):
    processes = Processes(4, dict)
    processes._logs = "/tmp/logs"
    failure: Any = SimpleNamespace(local_rank=1, message={"message": message})
    found = processes._error(failure)
    assert type(found) is error
    with pytest.raises(error, match=text):
        raise found

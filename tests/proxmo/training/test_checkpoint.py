"""Checkpoints survive kills and full disks, and are ordinary Hugging Face directories."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxmo.checkpoints import latest_checkpoint, list_checkpoints, read_checkpoint
from proxmo.errors import CheckpointError
from proxmo.policies.transformers import load_model
from proxmo.training.checkpoint import (
    STATE_FILE,
    prune_checkpoints,
    save_checkpoint,
    write_directory,
)
from tests.fakes import tiny_model, tiny_tokenizer

torch = pytest.importorskip("torch")


def save(run: Path, iteration: int, model: Any = None, **changes: Any) -> Path:
    parts = {
        "model": model or tiny_model(),
        "tokenizer": tiny_tokenizer(),
        "settings": {"config": {"seed": 1}},
        "state": {"optimizer": {"step": iteration}},
        **changes,
    }
    return save_checkpoint(run / "checkpoints", iteration, **parts)


def empty_checkpoint(run: Path, iteration: int) -> Path:
    path = run / "checkpoints" / f"step_{iteration}"
    path.mkdir(parents=True)
    (path / "proxmo.json").write_text(json.dumps({"iteration": iteration}))
    return path


def hidden(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").glob(".*"))


def test_a_checkpoint_holds_weights_tokenizer_settings_and_state(tmp_path: Path):
    path = save(tmp_path, 3)
    assert path == tmp_path / "checkpoints" / "step_3"
    found = read_checkpoint(path)
    assert (found.path, found.iteration) == (path, 3)
    assert found.settings["config"] == {"seed": 1}
    assert torch.load(path / STATE_FILE, weights_only=True) == {"optimizer": {"step": 3}}
    assert hidden(tmp_path) == []


def test_a_checkpoint_opens_without_this_package(tmp_path: Path):
    path = save(tmp_path, 1)
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('proxmo', 'proxmo_envs', 'proxmo_cli'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import torch\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        f"model = AutoModelForCausalLM.from_pretrained({str(path)!r})\n"
        f"tokenizer = AutoTokenizer.from_pretrained({str(path)!r})\n"
        "messages = [{'role': 'user', 'content': 'now 12'}]\n"
        "ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True)['input_ids']\n"
        "print(ids, float(model(input_ids=torch.tensor([ids])).logits.double().sum()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    ids = tiny_tokenizer()("<user>now 12<end><agent>")["input_ids"]
    logits = tiny_model()(input_ids=torch.tensor([ids])).logits.double().sum().item()
    printed, _, total = done.stdout.strip().rpartition(" ")
    assert json.loads(printed) == ids
    assert float(total) == pytest.approx(logits, rel=1e-5)


def test_the_latest_checkpoint_is_the_whole_one_of_the_highest_iteration(tmp_path: Path):
    assert latest_checkpoint(tmp_path) is None
    for iteration in (2, 10, 9):
        empty_checkpoint(tmp_path, iteration)
    folder = tmp_path / "checkpoints"
    for name in (".partial-step_15-1", ".partial-old-step_16-1", "step_x", "step_17.bak"):
        (folder / name).mkdir()
        (folder / name / "proxmo.json").write_text('{"iteration": 19}')
    (folder / "step_18").mkdir()
    (folder / "step_19").write_text("a file")
    assert read_checkpoint(tmp_path).iteration == 10
    assert [number for number, _ in list_checkpoints(tmp_path)] == [2, 9, 10]


def test_a_save_replaces_what_is_there_whole_or_half(tmp_path: Path):
    broken = tmp_path / "checkpoints" / "step_4"
    broken.mkdir(parents=True)
    (broken / "model.safetensors").write_text("half")
    for generation in (1, 2):
        path = save(tmp_path, 4, state={"generation": generation})
        assert torch.load(path / STATE_FILE, weights_only=True) == {"generation": generation}
        assert (path / "model.safetensors").stat().st_size > 10_000
    assert hidden(tmp_path) == []


def test_of_two_directories_made_at_once_the_first_stays(tmp_path: Path):
    target = tmp_path / "cache" / "model"

    def slower(path: Path) -> None:
        (path / "by").write_text("second")
        # Meanwhile another process has finished the same.
        target.mkdir()
        (target / "by").write_text("first")

    assert write_directory(target, slower) == target
    assert (target / "by").read_text() == "first"
    assert [path.name for path in target.parent.iterdir()] == ["model"]


class PlainError(Exception):
    """safetensors and tokenizers raise direct children of Exception."""


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), PlainError("No space left on device")],
    ids=["OSError", "other"],
)
@pytest.mark.parametrize("part", ["model", "tokenizer"])
def test_a_failing_writer_is_one_error_and_leaves_the_earlier_checkpoint(
    error: Exception, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    save(tmp_path, 1)
    before = {p.name: p.read_bytes() for p in (tmp_path / "checkpoints/step_1").iterdir()}
    failing = {"model": tiny_model(), "tokenizer": tiny_tokenizer()}[part]

    def fail(path: Path, **_: Any) -> None:
        (Path(path) / "half").write_text("written")
        raise error

    monkeypatch.setattr(failing, "save_pretrained", fail)
    for iteration in (1, 2):
        with pytest.raises(CheckpointError, match="No space left on device.*free some space"):
            save(tmp_path, iteration, **{part: failing})
    latest = latest_checkpoint(tmp_path)
    assert latest is not None and latest.iteration == 1
    assert {p.name: p.read_bytes() for p in latest.path.iterdir()} == before
    assert hidden(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 kB."""
    path = tmp_path / "small"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(path)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a file system of its own: {mounted.stderr.decode().strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk_is_one_error_wherever_it_strikes(small_disk: Path):
    save(small_disk, 1)
    ballast = small_disk / "ballast"
    failures = 0
    # One checkpoint takes about 110 kB; the disk is filled so that the second fails ever earlier.
    for kilobytes in (190, 215, 240, 270):
        ballast.write_bytes(b"x" * 1024 * kilobytes)
        with pytest.raises(CheckpointError, match="cannot save.*earlier checkpoints are intact"):
            save(small_disk, 2)
        failures += 1
        latest = latest_checkpoint(small_disk)
        assert latest is not None and latest.iteration == 1
        assert hidden(small_disk) == []
    assert failures == 4
    ballast.unlink()
    assert save(small_disk, 2).is_dir()


# Children are forked from one process that has loaded torch already: each is killed while saving.
# The parent reads with safetensors alone, as a process with threads must not fork.
KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from safetensors.torch import load_file
from proxmo.checkpoints import latest_checkpoint
from proxmo.training.checkpoint import prune_checkpoints, save_checkpoint
from tests.fakes import tiny_model, tiny_tokenizer

run, draw, parent = Path(sys.argv[1]), random.Random(4), os.getpid()
model, tokenizer = tiny_model().requires_grad_(False), tiny_tokenizer()

def save_while_watched(iteration):
    while os.getppid() == parent:
        iteration += 1
        for weight in model.parameters():
            weight.fill_(iteration)
        save_checkpoint(run / "checkpoints", iteration, model=model, tokenizer=tokenizer,
                        settings={}, state={"iteration": iteration})
        prune_checkpoints(run, keep=1)

reached, partial, deadline = 0, 0, time.monotonic() + 150
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        save_while_watched(reached)
        os._exit(0)
    # At least one save; then somewhere in a later one.
    while not (latest := latest_checkpoint(run)) or latest.iteration == reached:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    partial += any((run / "checkpoints").glob(".partial-*"))
    latest = latest_checkpoint(run)
    weights = load_file(latest.path / "model.safetensors").values()
    values = {float(v) for w in weights for v in (w.min(), w.max())}
    state = torch.load(latest.path / "trainer_state.pt", weights_only=True)
    assert values == {float(latest.iteration)}, (values, latest)
    assert state == {"iteration": latest.iteration}
    assert latest.iteration > reached
    reached = latest.iteration
print(reached, partial)
"""


@pytest.mark.slow
def test_kills_at_random_moments_leave_the_latest_checkpoint_whole(
    tmp_path: Path, repository: Path
):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), "12"],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=repository,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    reached, partial = map(int, done.stdout.split())
    assert reached >= 12
    # Some kills did hit a checkpoint that was half written.
    assert partial >= 3
    model, _ = load_model(str(tmp_path / "checkpoints" / f"step_{reached}"), device="cpu")
    assert {w.unique().item() for w in model.parameters()} == {float(reached)}


def test_the_newest_checkpoints_and_the_protected_one_are_kept(tmp_path: Path):
    for iteration in range(1, 8):
        empty_checkpoint(tmp_path, iteration)
    (tmp_path / "checkpoints" / ".partial-step_8-99").mkdir()
    prune_checkpoints(tmp_path, keep=2, protect=3)
    assert [number for number, _ in list_checkpoints(tmp_path)] == [3, 6, 7]
    prune_checkpoints(tmp_path, keep=0, protect=99)  # the newest always stays
    assert [number for number, _ in list_checkpoints(tmp_path)] == [7]
    assert hidden(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("nothing", None, "does not exist"),
        ("checkpoints/notes.txt", "", "no complete checkpoint yet"),
        ("some.txt", "", "is not a proxmo checkpoint"),
        ("proxmo.json", "not json", "is not a proxmo checkpoint"),
        ("proxmo.json", "[]", "is not a proxmo checkpoint"),
        ("proxmo.json", '{"iteration": "x"}', "is not a proxmo checkpoint"),
    ],
)
def test_what_is_not_a_checkpoint_is_a_checkpoint_error(
    name: str, content: str | None, text: str, tmp_path: Path
):
    path = tmp_path / "run"
    if content is not None:
        (path / name).parent.mkdir(parents=True)
        (path / name).write_text(content)
    with pytest.raises(CheckpointError, match=text):
        read_checkpoint(path)

"""`proxmo sft`: episodes in, checkpoint out, one line for what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proxmo.config_loading import load_toml
from tests.fakes import COUNTER, save_tiny_model

pytest.importorskip("torch")
SMALL = ("--set", "prompt.style=terse", "--set", "prompt.max_prompt_tokens=200") + (
    *("--set", "sampling.max_new_tokens=10", "--device", "cpu"),
)


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(save_tiny_model(tmp_path / "model"))


def test_the_expert_is_imitated_and_the_result_is_told_as_json(proxmo, model: str):
    done = proxmo(
        *("sft", "--env", COUNTER, "--model", model, "--episodes", "4", "--noise", "0"),
        *("--epochs", "2", "--batch-size", "4", "--seed", "3", "--out", "out", "--json", *SMALL),
    )
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert (result["path"], result["episodes"], result["samples"]) == ("out", 4, 4)
    assert (result["optimizer_steps"], result["before"]) == (2, None)
    assert "imitating" in done.err
    assert load_toml(Path("out/sft.toml")).seed == 3


def test_the_episodes_of_an_evaluation_say_themselves_which_world_they_are_from(proxmo, model: str):
    recorded = ("--policy", "expert", "--env", COUNTER, "--episodes", "3", "--out", "played")
    assert proxmo("eval", *recorded).code == 0
    done = proxmo("sft", "--from", "played", "--model", model, "--out", "out", *SMALL)
    assert done.code == 0, done.err
    assert "3 episodes, 3 steps" in done.out
    assert "evaluate with: proxmo eval --checkpoint out" in done.out
    evaluated = proxmo("eval", "--checkpoint", "out", "--episodes", "2", "--json")
    assert json.loads(evaluated.out)["env_id"] == COUNTER
    trained = proxmo("train", "--preset", "out/sft.toml", "--dry-run")
    assert trained.code == 0 and str(Path("out").absolute()) in trained.out


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--from", "nowhere"), 2, "does not exist"),
        (("--env", "Conter-v0"), 2, "unknown environment"),
        (("--env", COUNTER, "--out", "model"), 2, "'model' is not empty"),
        (("--env", COUNTER, "--model", "no/such/model"), 1, "'no/such/model' does not exist"),
        (("--from", "lost.jsonl", "--env", COUNTER), 1, "none of the 1 recorded episodes"),
        (("--from", "broken.jsonl", "--env", COUNTER), 1, "cannot be read as recorded episodes"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    proxmo, model: str, arguments: tuple[str, ...], code: int, text: str
):
    Path("lost.jsonl").write_text('{"task_id": "train-0", "outcome": "lost", "steps": []}\n')
    Path("broken.jsonl").write_text('{"task_id": "train-0"}\n')
    done = proxmo("sft", "--model", model, *arguments, *SMALL)
    assert (done.code, done.out) == (code, "")
    assert text in done.err.splitlines()[-1]

"""examples/rl_loop.py is short, runs, and changes the policy in the direction it says."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from proxmo.config import Config, EnvConfig, OptimConfig, PromptConfig, RolloutConfig
from proxmo.types import Step
from tests.fakes import COUNTER, save_tiny_model, tiny_model


@pytest.fixture(scope="module")
def example(repository: Path) -> dict:
    """What the script defines."""
    return runpy.run_path(str(repository / "examples" / "rl_loop.py"))


def test_every_example_is_shorter_than_60_lines_of_code(repository: Path):
    for path in (repository / "examples").glob("*.py"):
        lines = [line for line in path.read_text().splitlines() if line.strip()]
        assert len(lines) < 60, path


def test_the_loop_plays_trains_and_prints_the_success_of_each_iteration(
    example: dict, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    config = Config(
        env=EnvConfig(id=COUNTER),
        prompt=PromptConfig("terse", 1, 256),
        rollout=RolloutConfig(tasks=2, group_size=4),
        optim=OptimConfig(iterations=2, lr=1e-3),
    )
    example["train"](config, str(save_tiny_model(tmp_path)))
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["iteration 1", "iteration 2"]


def test_a_positive_advantage_makes_the_response_likelier(example: dict):
    model = tiny_model()
    step = Step(0, "", (1, 6, 7), (8, 9), (-2.0, -3.0), "", None, True, "ok", 0.0, 0)
    before = _logprob(model, step)
    step = replace(step, logprobs=tuple(before))
    example["loss"](model, step, 1.5).backward()
    torch.optim.SGD(model.parameters(), lr=0.01).step()
    assert np.sum(_logprob(model, step)) > np.sum(before)


def _logprob(model: torch.nn.Module, step: Step) -> list[float]:
    with torch.no_grad():
        logits = model(torch.tensor([step.prompt_ids + step.response_ids])).logits[0]
    found = logits.log_softmax(-1)[len(step.prompt_ids) - 1 : -1]
    return [float(row[token]) for row, token in zip(found, step.response_ids, strict=True)]

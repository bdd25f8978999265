"""What a dry run says about model, device, memory and tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxmo.config import Config, EnvConfig, ModelConfig, RolloutConfig
from proxmo.config_loading import resolve
from proxmo.errors import UsageError
from proxmo.training import plan as module
from proxmo.training.plan import plan
from tests.fakes import COUNTER, save_tiny_model

RECIPE = "alfworld-qwen2.5-1.5b"


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DRIVER", Path("/nowhere"))


def line(lines: list[str], start: str) -> str:
    return next(one for one in lines if one.startswith(start))


def test_a_recipe_is_planned_for_a_gpu_without_having_one():
    lines = plan(resolve([RECIPE]), play=False)
    assert "1,543,714,304 parameters; 2,560 of 32,768 tokens" in line(lines, "model")
    assert "no GPU here" in line(lines, "device")
    assert "weights 3.1 GB, reference 3.1 GB, float32 copies 6.2 GB" in line(lines, "memory")
    assert "beside vLLM's 32.0 GB (0.4 of 80.0 GB)" in lines[3]
    assert "do not fit" not in " ".join(lines)
    assert "at most 16 M per iteration" in line(lines, "tokens")


def test_what_does_not_fit_is_said_with_the_ways_out():
    large = resolve(["webshop-qwen2.5-7b"])
    assert any("do not fit into 80.0 GB" in one for one in plan(large, play=False))
    assert not any("do not fit" in one for one in plan(large, play=False, nproc=8))


def test_the_bound_on_tokens_takes_the_step_limit_a_world_is_registered_with():
    world = EnvConfig(id=COUNTER)  # 5 steps
    assert "episodes of 5 steps" in line(plan(Config(env=world), play=True), "tokens")
    assert "no step limit" in line(plan(Config(env=EnvConfig(id="Nowhere")), play=False), "tokens")


def test_an_unknown_model_is_not_guessed_at(tmp_path: Path):
    lines = plan(Config(model=ModelConfig(name="some-org/some-model")), play=False)
    assert "not known here" in lines[0]
    assert not any(one.startswith("memory") for one in lines)


def test_prompts_longer_than_the_context_are_refused(tmp_path: Path):
    small = Config(model=ModelConfig(name=str(save_tiny_model(tmp_path))))
    with pytest.raises(UsageError, match="exceed the context of .*512; lower prompt"):
        plan(small, play=False)


def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="'cuda:63', but torch sees"):
        plan(Config(model=ModelConfig(name="tiny", device="cuda:63")), play=False)


def test_a_server_elsewhere_takes_nothing_here():
    server = RolloutConfig(engine="vllm-server", engine_url="http://somewhere:8000")
    lines = plan(Config(rollout=server), play=False)
    assert any("while sampling, the sampler's not counted" in one for one in lines)


def test_played_tasks_say_what_an_iteration_may_cost():
    lines = plan(resolve([], {"env.id": "ALFWorld-v0"}), play=True)
    both = [one for one in lines if "for an agent that plays like" in one]
    assert len(both) == 2 and "the expert one" in both[0] and "the random one" in both[1]

"""A sampler with weights of its own: it gets every update, and a run stops when it does not."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proxmo.config import Config, OptimConfig, RolloutConfig
from proxmo.config_loading import resolve
from proxmo.errors import RolloutError, TrainingError, UsageError
from proxmo.policies.base import Response
from proxmo.policies.engines import EngineRequest
from proxmo.policies.transformers import TransformersPolicy, load_model
from proxmo.training import sampler as sampler_module
from tests.fakes import counter_config
from tests.proxmo.training.test_loop import FULL, assert_same_run, model, rows, run, stopped_at

torch = pytest.importorskip("torch")
__all__ = ["model"]


class Elsewhere(TransformersPolicy):
    """An engine with a copy of the weights, as vLLM has; `forgetful` ignores what it is given."""

    def __init__(self, source: str, *, forgetful: bool = False) -> None:
        super().__init__(*load_model(source, device="cpu"))
        self.forgetful = forgetful
        self.calls: list[str] = []

    def load_weights(self, directory: Path, version: int) -> None:
        self.calls.append("load")
        if not self.forgetful:
            self.model = load_model_weights(self.model, directory)
        self.weight_version = version

    def generate(self, *args: Any, **options: Any) -> list[Response]:
        self.calls.append("generate")
        return super().generate(*args, **options)

    def sleep(self) -> None:
        self.calls.append("sleep")

    def wake(self) -> None:
        self.calls.append("wake")

    def close(self) -> None:
        self.calls.append("close")


def start(request: EngineRequest) -> Elsewhere:
    return Elsewhere(request.source)


class OnTheirOwn(Elsewhere):
    """The same, asked by each episode for itself."""

    concurrent = True


class Stamps(Elsewhere):
    """Takes the weights, but its responses claim to be of the first ones."""

    def load_weights(self, directory: Path, version: int) -> None:
        super().load_weights(directory, 0)


def load_model_weights(model: Any, directory: Path) -> Any:
    from safetensors.torch import load_file

    model.load_state_dict(load_file(directory / "model.safetensors"), strict=False)
    model.tie_weights()
    return model


def halve(model: Any) -> None:
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(0.5)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts an engine in vLLM's place; returns the ones that were started."""
    started: list[Any] = []

    def use(kind: type[Elsewhere], **options: Any) -> list[Any]:
        def start(config: Config, model: Any, tokenizer: Any, source: str) -> Any:
            started.append(kind(source, **options))
            return started[-1]

        monkeypatch.setattr(sampler_module, "_start_engine", start)
        return started

    return use


def with_engine(model: Path, **rollout: Any) -> Config:
    config = counter_config(model, **FULL)
    return replace(config, rollout=replace(config.rollout, engine="vllm", **rollout))


def test_a_run_is_the_same_whoever_holds_the_weights(engine: Any, model: Path, tmp_path: Path):
    run(counter_config(model, **FULL), tmp_path / "here")
    engine(Elsewhere)
    run(with_engine(model), tmp_path / "there")
    assert_same_run(tmp_path / "here", tmp_path / "there")
    assert all(row["rollout/sync_gap"] < 1e-5 for row in rows(tmp_path / "there"))


OWN_ENGINE = """
from proxmo.policies.transformers import TransformersPolicy, load_model

class Engine(TransformersPolicy):
    def load_weights(self, directory, version):
        self.model = load_model(str(self.saved(directory)), device="cpu")[0]
        self.weight_version = version

    def saved(self, directory):
        self.tokenizer.save_pretrained(directory)
        return directory

    def sleep(self): pass
    def wake(self): pass
    def close(self): print("closed")

def start(request):
    return Engine(*load_model(request.source, device=request.device))
"""


def test_an_engine_of_ones_own_is_one_file_on_the_python_path(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    (tmp_path / "own_engine.py").write_text(OWN_ENGINE)
    monkeypatch.syspath_prepend(tmp_path)
    config = resolve(["smoke"], {"model.name": str(model)}, ["rollout.engine=own_engine:start"])
    assert config.rollout.engine == "own_engine:start"
    config = counter_config(model, **FULL)
    run(config, tmp_path / "here")
    own = replace(config, rollout=replace(config.rollout, engine="own_engine:start"))
    run(own, tmp_path / "there")
    assert_same_run(tmp_path / "here", tmp_path / "there")
    assert "closed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("engine", "text"),
    [("no_engine:start", "cannot import 'no_engine'"), ("json:start", "unknown rollout engine")],
)
def test_an_engine_that_is_not_there_is_refused_before_anything_is_loaded(
    engine: str, text: str, model: Path, tmp_path: Path
):
    config = counter_config(model)
    with pytest.raises(UsageError, match=text):
        run(replace(config, rollout=replace(config.rollout, engine=engine)), tmp_path / "run")


def test_the_engine_rests_while_the_trainer_works_and_is_closed_at_the_end(
    engine: Any, model: Path, tmp_path: Path
):
    started = engine(Elsewhere)
    config = with_engine(model)
    run(replace(config, optim=replace(config.optim, iterations=2)), tmp_path / "run")
    order = [call for call in started[0].calls if call != "generate"]
    assert order == ["sleep", "wake", "load"] * 2 + ["close"]


def test_a_model_that_is_broken_from_the_start_is_told_as_that(model: Path, tmp_path: Path):
    from safetensors.torch import load_file, save_file

    broken = Path(shutil.copytree(model, tmp_path / "broken"))
    weights = load_file(broken / "model.safetensors")
    weights["model.norm.weight"][0] = float("nan")
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(TrainingError, match="not finite before any update"):
        run(counter_config(broken), tmp_path / "run")


def test_a_wide_tolerance_lets_a_gap_pass_and_it_is_logged(
    engine: Any, model: Path, tmp_path: Path
):
    engine(Elsewhere, forgetful=True)
    run(with_engine(model, sync_tolerance=50.0), tmp_path / "run")
    assert rows(tmp_path / "run")[-1]["rollout/sync_gap"] > 1e-3


class Other(Elsewhere):
    """Starts with weights of its own."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        halve(self.model)


class Dies(Elsewhere):
    """Fails after the first update."""

    def generate(self, prompts: Sequence[Sequence[int]], **options: Any) -> list[Response]:
        if self.weight_version:
            return [Response((), (), "", "error", 1, error="engine core died") for _ in prompts]
        return super().generate(prompts, **options)


@pytest.mark.parametrize(
    ("kind", "options", "text"),
    [
        (Elsewhere, {"forgetful": True}, "after update 1 the sampler's log-probabilities differ"),
        (Other, {}, "after update 0 the sampler's log-probabilities differ"),
        (Stamps, {}, "sampled 1 updates ago, but rollout.lag allows 0"),
        (Dies, {}, "does not answer when compared: engine core died"),
    ],
    ids=["old weights", "other weights", "old stamps", "dead"],
)
def test_an_engine_that_does_not_sample_the_trained_policy_stops_the_run_and_is_closed(
    kind: Any, options: Any, text: str, engine: Any, model: Path, tmp_path: Path
):
    started = engine(kind, **options)
    with pytest.raises(RolloutError, match=text):
        run(with_engine(model), tmp_path / "run")
    assert started[0].calls[-1] == "close"


def test_episodes_of_the_next_iteration_are_played_beside_the_training_one_update_behind(
    engine: Any, model: Path, tmp_path: Path
):
    started = engine(OnTheirOwn)
    config = with_engine(model, lag=1)
    run(replace(config, optim=replace(config.optim, old_logprobs="recomputed")), tmp_path / "run")
    lags = [row["rollout/weight_lag_updates"] for row in rows(tmp_path / "run")]
    # The second is begun before the first update, and so on.
    assert lags == [0, 1, 1, 1, 1, 1]
    gaps = [row["loss/sampler_gap"] for row in rows(tmp_path / "run")]
    assert gaps[0] < 1e-5 < 1e-3 < min(gaps[1:])
    assert "sleep" not in started[0].calls


def test_a_run_one_update_behind_can_be_stopped_and_goes_on(
    engine: Any, model: Path, tmp_path: Path
):
    engine(OnTheirOwn)
    config = with_engine(model, lag=1)
    stopped_at(3, config, tmp_path / "run")
    finished = run(config, tmp_path / "run", resume=True)
    assert finished.finished
    lags = [row["rollout/weight_lag_updates"] for row in rows(tmp_path / "run")]
    assert lags == [0, 1, 1, 0, 1, 1]


def test_a_server_gets_the_weights_at_the_start_and_at_each_that_follows(
    engine: Any, model: Path, tmp_path: Path
):
    class Used(Elsewhere):
        """Holds the weights that some other run has left in it."""

        shared = True

        def __init__(self, source: str) -> None:
            super().__init__(source)
            halve(self.model)

    config = counter_config(model, **FULL)
    run(config, tmp_path / "here")
    started = engine(Used)
    server = replace(config.rollout, engine="vllm-server", engine_url="http://127.0.0.1:1")
    config = replace(config, rollout=server)
    stopped_at(3, config, tmp_path / "there")
    run(config, tmp_path / "there", resume=True)
    assert_same_run(tmp_path / "here", tmp_path / "there")
    assert [one.calls[0] for one in started] == ["load", "load"]


def test_an_update_that_breaks_the_weights_is_not_taken_for_a_fault_of_the_sampler(
    model: Path, tmp_path: Path
):
    config = counter_config(model, optim=OptimConfig(iterations=2, lr=1e30, kl_coef=0.0))
    with pytest.raises(TrainingError, match="after update 1 .* not finite: .* lower optim.lr"):
        run(config, tmp_path / "run")


def test_groups_without_variance_make_way_for_fresh_tasks(model: Path, tmp_path: Path):
    config = counter_config(model, **FULL)
    rollout = RolloutConfig(tasks=4, group_size=2, resample=2)
    config = replace(config, rollout=rollout, optim=OptimConfig(iterations=3, lr=0.0))
    run(config, tmp_path / "run")
    plain = replace(config, rollout=replace(rollout, resample=0))
    run(plain, tmp_path / "plain")
    found, without = rows(tmp_path / "run"), rows(tmp_path / "plain")
    assert sum(row["rollout/resampled_groups"] for row in found) > 0
    flat = "credit/zero_variance_groups"
    assert sum(row[flat] for row in found) < sum(row[flat] for row in without)
    # What was sampled for groups that made way is work that was not used.
    for row in found:
        assert (row["rollout/efficiency"] < 1.0) == (row["rollout/resampled_groups"] > 0)
    assert all(math.isclose(row["rollout/efficiency"], 1.0) for row in without)

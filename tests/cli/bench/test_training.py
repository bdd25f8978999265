"""The training benchmark plays the same episodes in both loops and counts what it says."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from proxmo.config import Config, EnvConfig, OptimConfig, RolloutConfig
from proxmo.errors import UsageError
from proxmo_cli.bench.training import beside_trl, memory_growth, rollout_efficiency
from tests.fakes import COUNTER, counter_config, save_tiny_model

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    plain = counter_config(save_tiny_model(tmp_path_factory.mktemp("model")))
    world = EnvConfig(id=COUNTER, kwargs={"free": False})
    return replace(plain, env=world, optim=OptimConfig(iterations=3, lr=1e-3))


def test_a_loop_that_waits_for_the_slowest_generates_more_for_the_same_episodes(config: Config):
    many = RolloutConfig(tasks=5, group_size=16)
    ours, common = rollout_efficiency(replace(config, env=EnvConfig(id=COUNTER), rollout=many))
    assert ours.generated == ours.useful == common.useful > 0
    assert common.generated > common.useful
    assert ours.episodes == common.episodes == 80


def test_our_loop_is_timed_alone_where_there_is_no_trl(config: Config):
    found = beside_trl(config, None, repeats=1)
    assert (found.theirs, found.ratios) == (None, ())
    assert found.ours.tokens > 0 and found.ours.rate > 0


def test_an_interpreter_that_cannot_train_is_named_with_what_it_needs(config: Config):
    with pytest.raises(UsageError, match="'/no/python' cannot be started"):
        beside_trl(config, "/no/python", repeats=1)
    with pytest.raises(UsageError, match="cannot train with TRL.*pip install trl"):
        beside_trl(config, "/bin/false", repeats=1)


@pytest.mark.slow
@pytest.mark.skipif("PROXMO_TRL_PYTHON" not in os.environ, reason="no interpreter with TRL named")
def test_trl_trains_on_the_same_prompts(config: Config):
    found = beside_trl(config, os.environ["PROXMO_TRL_PYTHON"], repeats=1)
    assert found.theirs is not None
    # Responses differ by chance; the prompts, which are most of it, do not.
    assert found.theirs.tokens == pytest.approx(found.ours.tokens, rel=0.1)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_the_memory_is_watched_after_a_warm_up(config: Config):
    found = memory_growth(config, 3)
    assert found.iterations == 3
    assert found.before > 10_000_000 and found.after > 10_000_000
    assert abs(found.slope) < 20_000_000

"""What is wrong with a request is found without computing anything."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import gymnasium
import pytest

from proxmo.config import Config, CreditConfig, EnvConfig, EvalConfig, ModelConfig
from proxmo.credit import credit_options
from proxmo.errors import ConfigError, UnknownNameError, UsageError
from proxmo.training.request import check_request
from proxmo_envs import ProxmoEnvError
from tests.fakes import COUNTER, CounterEnv


@pytest.mark.parametrize(
    ("sections", "error", "text"),
    [
        ({"env": EnvConfig(id="ALFWorl-v0")}, UsageError, "did you mean ALFWorld-v0"),
        ({"env": EnvConfig(id="no_module:World-v0")}, UsageError, "unknown environment"),
        ({"env": EnvConfig(kwargs={"size": 3})}, UsageError, "cannot be made with"),
        ({"env": EnvConfig(data="/no/such/place")}, ProxmoEnvError, "/no/such/place"),
        ({"env": EnvConfig(split="trane")}, ProxmoEnvError, "did you mean train"),
        ({"env": EnvConfig(COUNTER, kwargs={"tasks": 0})}, UsageError, "'train' of .* no tasks"),
        ({"eval": EvalConfig(split="valid")}, UnknownNameError, "did you mean valid_"),
        ({"credit": CreditConfig(method="gigppo")}, UnknownNameError, "did you mean gigpo"),
        ({"credit": CreditConfig(options={"taw": 1})}, ConfigError, "did you mean tau"),
        ({"credit": CreditConfig("gae", options={"value": 1})}, ConfigError, "from the critic"),
        ({"credit": CreditConfig(options={"tau": "warm"})}, ConfigError, "expected a valid number"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_a_request_that_cannot_be_met_is_refused(
    sections: dict[str, Any], error: type[Exception], text: str
):
    with pytest.raises(error, match=text):
        check_request(Config(**sections))


@pytest.mark.parametrize("method", ["proxmo", "gigpo", "grpo"])
def test_a_request_that_can_be_met_passes(method: str):
    check_request(Config(credit=CreditConfig(method=method)))
    check_request(Config(env=EnvConfig(id=COUNTER), credit=CreditConfig(method=method)))


def test_a_method_gets_the_discount_and_the_step_weight_where_it_has_one():
    config = CreditConfig(method="proxmo", gamma=0.5, omega=0.25, options={"tau": 0.2})
    expected = {"gamma": 0.5, "reward_scale": 1.0, "omega": 0.25, "tau": 0.2}
    assert credit_options(config) == expected
    scaled = CreditConfig(method="grpo", omega=0.25, reward_scale=10.0)
    assert credit_options(scaled) == {"gamma": 0.95, "reward_scale": 10.0}


def test_asking_imports_neither_torch_nor_transformers():
    code = (
        "import sys, json\n"
        "from proxmo.config import Config\n"
        "from proxmo.training.request import check_request\n"
        "check_request(Config())\n"
        "print(json.dumps([m for m in ('torch', 'transformers') if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) == []


class NoExpert(CounterEnv):
    """Takes no argument `expert_action`."""

    def __init__(self, split: str = "train", data: str | None = None) -> None:
        super().__init__(split=split, data=data)


def test_the_embedded_model_needs_an_expert_and_another_model_does_not():
    gymnasium.register("WithoutExpert-v0", entry_point=NoExpert, max_episode_steps=5)
    try:
        config = Config(env=EnvConfig(id="WithoutExpert-v0"))
        with pytest.raises(UsageError, match="v0 has no expert, which the embedded model"):
            check_request(config)
        check_request(dataclasses.replace(config, model=ModelConfig(name="some/model")))
    finally:
        del gymnasium.registry["WithoutExpert-v0"]


def test_a_split_that_a_described_environment_does_not_have_names_its_key():
    config = Config(env=EnvConfig(id="WebShop-v0"), eval=EvalConfig(split="valid_unseen"))
    with pytest.raises(
        UnknownNameError, match=r"eval\.split of WebShop-v0 'valid_unseen'; did you mean validation"
    ):
        check_request(config)

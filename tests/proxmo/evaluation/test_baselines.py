"""Models that we did not train, and checkpoints asked in another way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proxmo.agents.baselines import AgentSettings
from proxmo.agents.language import LanguageAgent
from proxmo.agents.reflexion import ReflexionAgent
from proxmo.config import EnvConfig
from proxmo.errors import UnknownNameError, UsageError
from proxmo.evaluation import evaluate, make_panel
from proxmo.evaluation.baselines import checkpoint_with_agent, model_player
from proxmo.training.checkpoint import save_checkpoint
from proxmo.training.run_directory import RunDirectory
from tests.fakes import COUNTER, counter_config, save_tiny_model, tiny_model, tiny_tokenizer

# Its tokenizer knows few letters: what a prompt for it says comes out as <unk>, one per letter.
QUICK = AgentSettings(style="terse", max_new_tokens=4)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny_model(tmp_path_factory.mktemp("model")))


def test_a_model_plays_a_panel_and_its_settings_say_how_it_was_asked(model: str, tmp_path: Path):
    player = model_player(model, COUNTER, QUICK, device="cpu")
    assert (player.model, player.method) == (model, "direct")
    panel = make_panel(EnvConfig(id=COUNTER), ["train"], episodes=3)
    found = evaluate(player, panel, out=tmp_path / "run")
    assert (found.episodes, found.errors) == (3, 0)
    kept = json.loads((tmp_path / "run" / "settings.json").read_text())["player"]
    # The model reads 512 tokens in all.
    assert (kept["style"], kept["prompt_tokens"], kept["max_new_tokens"]) == ("terse", 508, 4)


def test_prompts_have_the_budget_the_agent_needs_where_the_context_allows(model: str):
    def budget(**settings: object) -> int:
        player = model_player(
            model, "tests.fakes:WebShop-v0", AgentSettings(**settings), device="cpu"
        )
        return int(player.settings["prompt_tokens"])

    assert budget(max_new_tokens=12) == 500
    assert budget(max_new_tokens=12, prompt_tokens=100) == 100
    with pytest.raises(UsageError, match="--prompt-tokens"):
        budget(max_new_tokens=12, prompt_tokens=501)


def test_every_agent_plays_on_a_local_model(model: str):
    panel = make_panel(EnvConfig(id=COUNTER), ["train"], episodes=2)
    for agent, kind in (("react", LanguageAgent), ("reflexion", ReflexionAgent)):
        settings = AgentSettings(agent=agent, max_new_tokens=4, tries=2)
        player = model_player(model, COUNTER, settings, device="cpu")
        assert isinstance(player.agent, kind) and player.method == agent
        assert evaluate(player, panel).planned == 2
    with pytest.raises(UnknownNameError):
        model_player(model, COUNTER, AgentSettings(agent="plan"), device="cpu")


def test_a_checkpoint_asked_by_another_agent_keeps_what_is_not_changed(tmp_path: Path):
    config = counter_config("some/model")
    path = save_checkpoint(
        tmp_path / "checkpoints",
        4,
        model=tiny_model(),
        tokenizer=tiny_tokenizer(),
        settings=RunDirectory(tmp_path / "new", config, resume=False).settings(),
        state=None,
    )
    player, found = checkpoint_with_agent(path, {"agent": "react"}, device="cpu")
    assert found == config
    # "react" alone is the untrained model, which `proxmo table` keeps apart.
    assert (player.model, player.method) == ("some/model", "grpo (react)")
    assert player.settings["trained_by"] == "grpo"
    assert player.settings["max_new_tokens"] == config.sampling.max_new_tokens
    assert player.settings["temperature"] == config.eval.temperature
    greedy, _ = checkpoint_with_agent(path, {"agent": "direct", "temperature": 0.0}, device="cpu")
    assert (greedy.settings["temperature"], greedy.settings["style"]) == (0.0, "terse")

"""Environments of the user's own, as docs/environments.md defines them, in every command."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.fakes import save_tiny_model

PAGE = Path(__file__).parents[2] / "docs" / "environments.md"
TRAINING = (
    *("--set", "prompt.style=terse", "--set", "rollout.tasks=2", "--set", "rollout.group_size=2"),
    *("--set", "sampling.max_new_tokens=4", "--set", "eval.episodes=2", "--iterations", "1"),
    *("--set", "prompt.max_prompt_tokens=400", "--method", "grpo", "--device", "cpu"),
    *("--out", "run"),
)


@pytest.fixture(autouse=True)
def modules(proxmo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes the modules of the page into the working directory, as its reader does."""
    from proxmo_envs.description import _DESCRIPTIONS

    names = []
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        name = code.splitlines()[0].removeprefix("# ").removesuffix(".py")
        (tmp_path / f"{name}.py").write_text(code)
        names.append(name)
    monkeypatch.syspath_prepend(tmp_path)
    yield names
    for name in names:
        sys.modules.pop(name, None)
    for env_id in ("Doors-v0", "Guess-v0"):
        gymnasium.registry.pop(env_id, None)
        _DESCRIPTIONS.pop(env_id, None)


def test_the_doctor_tells_defaults_and_abilities_of_a_plain_environment(proxmo):
    done = proxmo("doctor", "--env", "doors:Doors-v0", "--json")
    assert done.code == 0, done.out
    found = json.loads(done.out)
    texts = "\n".join(f"{one['name']}: {one['text']}" for one in found)
    assert "success: success is info['is_success']" in texts
    assert "tasks are seeds" in texts and "the first observation serves as the task" in texts
    assert "expert: no: needs an argument `expert_action`" in texts


def test_a_plain_environment_is_evaluated_by_what_it_says_of_success(proxmo):
    Path("wind.py").write_text(
        "from proxmo.agents.base import Decision\n"
        "class Agent:\n"
        "    def act(self, situations, *, seed):\n"
        "        word = lambda s: s.view.observation.split()[5].rstrip('.')\n"
        "        return [Decision(word(s)) for s in situations]\n"
    )
    command = ("eval", "--env", "doors:Doors-v0", "--episodes", "20", "--json", "--policy")
    done = proxmo(*command, "wind:Agent")
    sys.modules.pop("wind")
    assert done.code == 0, done.err
    assert json.loads(done.out)["success_rate"] == json.loads(done.out)["mean_score"] == 1.0
    assert done.err.count("success is info['is_success']") <= 1
    for policy, missing in (("random", "admissible actions"), ("expert", "has no expert")):
        refused = proxmo(*command, policy)
        assert refused.code == 2 and missing in refused.err


def test_a_plain_environment_is_played(proxmo, type_in):
    type_in("?\nleft\n")
    done = proxmo("play", "--env", "doors:Doors-v0", "--task", "seed-0003")
    assert done.code == 0, done.err
    assert "seed-0003" in done.err and "lists no commands" in done.out
    assert re.search(r"(won|over) after 1 steps, score [01]$", done.out.strip())
    done = proxmo("play", "--env", "doors:Doors-v0", "--data", "here")
    assert done.code == 2 and "takes no argument `data`" in done.error_line


def test_play_says_that_a_plain_environment_has_no_expert(proxmo):
    done = proxmo("play", "--env", "doors:Doors-v0", "--expert")
    assert done.code == 2 and "has no expert" in done.error_line


ODD = """
import gymnasium
class Odd(gymnasium.Env):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return "room", {"admissible_actions": ["go"], "won": False}
    def step(self, action):
        STEP
gymnasium.register("Odd-v0", entry_point=Odd)
"""


@pytest.fixture
def odd(tmp_path: Path) -> Any:
    """Writes the module of an environment whose step is given."""

    def write(step: str) -> str:
        (tmp_path / "odd.py").write_text(ODD.replace("STEP", step))
        return "odd:Odd-v0"

    yield write
    sys.modules.pop("odd", None)
    gymnasium.registry.pop("Odd-v0", None)


def test_an_environment_without_an_end_is_refused_before_a_run(proxmo, odd):
    env = odd("return 'room', 0.0, False, False, {'won': False}")
    done = proxmo("eval", "--env", env, "--policy", "random", "--episodes", "1")
    assert done.code == 2 and "max_episode_steps" in done.err
    assert "env.max_steps" in done.err


def test_without_a_scored_episode_there_is_no_mean_score(proxmo, odd):
    env = odd("raise SystemExit(3)")
    done = proxmo("eval", "--env", env, "--policy", "random", "--episodes", "2")
    assert re.search(r"mean score +-\n", done.out), done.out
    assert "SystemExit: 3" in done.out + done.err
    done = proxmo("doctor", "--env", env)
    assert done.code == 1 and "SystemExit in an episode" in done.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "split"), [("doors:Doors-v0", "valid_unseen"), ("guess:Guess-v0", "test")]
)
def test_an_environment_of_ones_own_is_trained(proxmo, tmp_path: Path, env: str, split: str):
    model = save_tiny_model(tmp_path / "model")
    choice = ("--env", env, "--model", str(model), "--set", f"eval.split={split}")
    done = proxmo("train", *choice, *TRAINING)
    assert done.code == 0, done.err
    assert (tmp_path / "run" / "checkpoints" / "step_1").is_dir()


def test_a_described_world_has_panels_columns_and_an_expert(proxmo):
    assert proxmo("doctor", "--env", "guess:Guess-v0").code == 0
    listed = json.loads(proxmo("panels", "--env", "guess:Guess-v0", "--json").out)
    assert [(one["name"], one["tasks"]) for one in listed] == [
        ("guess:guess-test", 20),
        ("guess:guess-10", 10),
    ]
    command = ("eval", "--policy", "expert", "--json")
    done = proxmo(*command, "--panel", "guess:guess-test", "--out", "out")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["env_id"], found["split"], found["success_rate"]) == ("guess:Guess-v0", "test", 1)
    assert set(found["by_task_type"]) == {"small", "large"}
    # Without a panel the split is the one of the description.
    assert json.loads(proxmo(*command, "--env", "guess:Guess-v0").out)["tasks"] == 20
    head = proxmo("table", "out").out.splitlines()[0].split()
    assert head == ["model", "method", "Small", "Large", "Found", "panel"]


def test_a_described_world_is_played_with_its_expert(proxmo, type_in):
    type_in("10\n:quit\n")
    done = proxmo("play", "--env", "guess:Guess-v0", "--expert", "--seed", "0")
    assert done.code == 0, done.err
    assert "expert: 10" in done.out


def test_an_agent_of_ones_own_plays(proxmo):
    done = proxmo("eval", "--policy", "first:First", "--env", "guess:Guess-v0", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["success_rate"] == 1 / 20


@pytest.mark.parametrize(
    ("policy", "part"),
    [
        ("first:Last", "unknown policy in first 'Last'; known: Decision, First"),
        ("nothing:First", "nothing:First"),
        ("json:dumps", "json:dumps"),
    ],
)
def test_what_is_no_agent_is_one_clear_error(proxmo, policy: str, part: str):
    done = proxmo("eval", "--policy", policy, "--env", "guess:Guess-v0")
    assert done.code == 2 and part in done.err

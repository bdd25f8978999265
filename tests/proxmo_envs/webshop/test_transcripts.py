"""The environment beside the recordings: history modes, and what a well-known wrapper showed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from proxmo_envs.webshop.env import WebShopEnv
from tests.webshop_server.recorded import data, lines, transcripts


@pytest.mark.parametrize("config", ["fict_history", "fict_histact"])
def test_earlier_pages_and_actions_come_first_as_recorded(config: str, shared: Path) -> None:
    sessions = list(transcripts(shared, config))
    recorded = sessions[0]["env_kwargs"]
    memory = {name: recorded[name] for name in ("num_prev_obs", "num_prev_actions")}
    env = WebShopEnv(data(shared, config), "test", profile="original", goals="human", **memory)
    for episode in sessions:
        observation, _ = env.reset(options={"goal_index": episode["goal_index"]})
        assert observation == episode["reset"]["returned_obs"]
        for step in episode["steps"]:
            observation = env.step(step["action"])[0]
            recorded = step["obs"]["text"] if step["returned_equals_text_obs"] else None
            assert observation == step.get("returned_obs", recorded), (episode["id"], step["i"])


def project(reply: str) -> str:
    """Read the action as the wrapper does."""
    reply = reply.lower()
    start, end = reply.find("<action>"), reply.find("</action>")
    return reply[-20:] if min(start, end) < 0 else reply[start + len("<action>") : end].strip()


def anchor(observation: str, task: str) -> str:
    """Cut the observation as the wrapper does: what follows the task, each part in quotes."""
    parts = observation.split(" [SEP] ")
    if task not in parts:
        return observation
    return " [SEP] ".join(f"'{part}'" for part in parts[parts.index(task) + 1 :])


def listed(prompt: str) -> list[str]:
    """Read the admissible actions out of a prompt."""
    return re.findall(r"^'(.*)',$", prompt, flags=re.MULTILINE)


def test_the_wrapper_of_verl_agent_would_show_the_same(shared: Path) -> None:
    directory = data(shared, "real")
    env = WebShopEnv(
        directory, "test", profile="original", title_nouns=directory / "title_nouns.json"
    )
    goals: Any = env._source.shop.goals  # type: ignore[attr-defined]
    numbers = {goal.instruction: number for number, goal in enumerate(goals)}
    checked = 0
    for episode in lines(shared / "webshop" / "transcripts" / "verlagent.jsonl.gz"):
        # The wrapper shuffles the goals anew; the same texts have other numbers there.
        task = episode["goal"]["instruction_text"]
        observation, info = env.reset(options={"goal_index": numbers[task]})
        assert anchor(observation, task) == episode["reset"]["anchor"]
        assert info["admissible_actions"] == listed(episode["reset"]["prompt"])
        for step in episode["steps"]:
            observation, reward, terminated, _, info = env.step(project(step["model_text"]))
            where = (episode["id"], step["model_text"])
            assert anchor(observation, task) == step["anchor"], where
            assert terminated == step["done"], where
            if terminated:
                # It scales the reward, and has begun the next episode by now.
                assert info["score"] == reward == step["info"]["task_score"], where
                assert info["won"] == step["info"]["won"] == (step["reward"] == 10), where
                break
            assert info["admissible_actions"] == listed(step["prompt"]), where
            checked += 1
    assert checked > 50

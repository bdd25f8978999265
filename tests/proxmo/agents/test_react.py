"""ReAct: its examples happen word for word in our engines, its prompts hold the whole past."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import gymnasium
import pytest

import proxmo_envs
from proxmo.agents.layouts import LAYOUTS
from proxmo.agents.parser import ParseReason, parse_action, spoken_thought
from proxmo.agents.prompts import Cut, PromptBuilder, Turn, View
from proxmo.agents.react import WHOLE_EPISODE, react_layout
from proxmo.config import PromptConfig

# The games and the catalogue of the examples, kept: what a generator makes of an id may change.
KEPT = Path(__file__).parent / "examples"
SPLITS = {"ALFWorld-v0": ["train"], "WebShop-v0": ["train", "validation"]}
ROOM = ("look", "go to desk 1", "take mug 1 from shelf 1")
VIEW = View(
    task="put a mug in desk.",
    history=(
        Turn("A room.", "go to shelf 1", "Thought: The shelf,\nI think.\nAction: go to shelf 1"),
        Turn("You arrive at shelf 1.", "", "I am lost."),
    ),
    step=2,
    observation="You see a mug 1.\nIt is red.",
    admissible=(*ROOM, "help"),
)


def examples(world: str) -> list[dict[str, list[str]]]:
    """Task, observations and actions of each example."""
    package, _, name = proxmo_envs.description_of(world).examples.partition(":")
    text = (files(package) / name).read_text(encoding="utf-8")
    fields = ("Task", "Observation", "Thought", "Action")
    return [
        {name: re.findall(rf"^{name}: (.*)$", one, re.MULTILINE) for name in fields}
        for one in text.split("\n\n")
    ]


@pytest.mark.parametrize(
    ("world", "data", "count"),
    [("ALFWorld-v0", KEPT / "alfworld.packed", 3), ("WebShop-v0", KEPT / "webshop", 2)],
)
def test_every_example_is_an_episode_that_wins_word_for_word(world: str, data: Path, count: int):
    tidy = react_layout(world).tidy
    envs = [(gymnasium.make(world, data=str(data), split=split), split) for split in SPLITS[world]]
    found = examples(world)
    assert len(found) == count
    for one in found:
        (task,) = one["Task"]
        env, seen, info = start(envs, data, task)
        observations = [seen]
        for action in one["Action"]:
            offered = [re.sub("<.*>", "", entry) for entry in info["admissible_actions"]]
            assert action in offered or re.sub(r"\[.*\]", "[]", action) in offered
            seen, *_, info = env.step(action)
            observations.append(seen)
        assert [tidy(seen, task) for seen in observations] == one["Observation"]
        assert info["won"]
        assert len(one["Thought"]) == len(one["Action"])
    for env, _ in envs:
        env.close()


def start(envs: list[tuple[gymnasium.Env, str]], data: Path, task: str) -> tuple:
    """Begins the task with this name, wherever it is."""
    for env, split in envs:
        for task_id in env.unwrapped.task_set(split, str(data)).ids:
            seen, info = env.reset(options={"task_id": task_id})
            if info["task"] == task:
                return env, seen, info
    raise AssertionError(f"no task {task!r}")


def test_the_prompt_holds_rules_examples_the_whole_past_and_what_is_possible():
    config = PromptConfig(style="react", history=WHOLE_EPISODE, max_prompt_tokens=4000)
    text = PromptBuilder(config, None, react_layout("ALFWorld-v0")).build(VIEW).text
    assert text.endswith(
        "Now it is your turn.\n\n"
        "Task: put a mug in desk.\n"
        "Observation: A room.\nThought: The shelf, I think.\nAction: go to shelf 1\n"
        "Observation: You arrive at shelf 1.\nThought: I am lost.\n"
        "Action: (none: the reply held no action)\n"
        "Observation: You see a mug 1. It is red.\n\n"
        "Possible actions:\n" + "\n".join(ROOM) + "\n\nWrite your next thought and action."
    )
    assert text.count("Task: ") == 4


def test_an_unknown_world_is_asked_without_examples_and_notes_stand_before_the_task():
    config = PromptConfig(style="react", history=WHOLE_EPISODE, max_prompt_tokens=4000)
    builder = PromptBuilder(config, None, react_layout("Counter-v0"))
    plain = builder.build(VIEW).text
    assert "went well" not in plain and plain.count("Task: ") == 1
    noted = builder.build(replace(VIEW, memory=("Look at the desk.", "Open it."))).text
    assert "- Look at the desk.\n- Open it.\n\nTask: put a mug" in noted


def test_over_the_budget_the_oldest_steps_are_left_out_and_the_prompt_says_so():
    turns = tuple(Turn(f"Seen {i}.", "look", "Thought: hm\nAction: look") for i in range(40))
    view = replace(VIEW, history=turns, step=40)
    config = PromptConfig(style="react", history=WHOLE_EPISODE, max_prompt_tokens=300)
    prompt = PromptBuilder(config, None, react_layout("Counter-v0")).build(view)
    assert prompt.cuts == (Cut.HISTORY,)
    (left_out,) = re.findall(r"the first (\d+) steps are left out", prompt.text)
    assert f"Seen {int(left_out) - 1}." not in prompt.text
    assert f"Seen {left_out}." in prompt.text and "Seen 39." in prompt.text
    assert len(prompt.text.encode()) <= 4 * 300


@pytest.mark.parametrize(
    ("response", "action", "reason"),
    [
        ("Thought: why not\nAction: look", "look", ParseReason.OK),
        ("  Action:   look  ", "look", ParseReason.OK),
        ("<think>Action: go</think>Thought: x\nAction: look", "look", ParseReason.OK),
        # What comes after the action is the world's part, and not the model's to say.
        ("Action: look\nObservation: a mug\nThought: y\nAction: go", "look", ParseReason.OK),
        ("Thought: x\nAction: fly", "fly", ParseReason.NOT_ADMISSIBLE),
        ("Thought: x\nAction: look\nThought: y\nAction: go", None, ParseReason.SEVERAL_ACTIONS),
        ("Observation: a mug\nAction: look", None, ParseReason.NO_ACTION),
        ("Thought: I do Action: look", None, ParseReason.NO_ACTION),
        ("action: look", None, ParseReason.NO_ACTION),
        ("Action:\nlook", None, ParseReason.NO_ACTION),
        ("look", None, ParseReason.NO_ACTION),
        ("", None, ParseReason.NO_ACTION),
        ("<think>Action: look", None, ParseReason.MALFORMED),
    ],
)
def test_a_response_is_one_line_of_action(response: str, action: str | None, reason: ParseReason):
    parsed = parse_action(response, ROOM, style="react")
    assert (parsed.action, parsed.reason) == (action, reason)
    assert parsed.valid is (reason is ParseReason.OK)


@pytest.mark.parametrize(
    ("response", "action"),
    [
        ("Action: look", None),
        ("Thought: it goes on and", None),
        ("<think>and on", None),
        ("Action: look\n", "look"),
        ("Action: look\nThought: and", "look"),
        ("Action: look\nObservation: you", "look"),
    ],
)
def test_a_response_cut_by_length_counts_when_its_action_line_had_ended(
    response: str, action: str | None
):
    parsed = parse_action(response, ROOM, finish_reason="length", style="react")
    assert parsed.action == action
    assert parsed.reason is (ParseReason.OK if action else ParseReason.CUT_BY_LENGTH)


def test_a_thought_is_what_comes_before_the_action_in_one_line():
    assert spoken_thought("<think>t</think>\nThought: a\n b\nAction: look\nmore") == "a b"
    assert spoken_thought("Action: look") == ""
    assert spoken_thought("") == ""


def test_the_layout_offers_what_the_direct_agent_is_offered():
    assert react_layout("ALFWorld-v0").hidden == LAYOUTS["think"].hidden

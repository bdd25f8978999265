"""ReAct (arXiv 2210.03629): a thought before every action, the whole past in sight, examples.

Our protocol, the same for every model: one response is one thought and one action, which costs one
step; the past is shown whole, thoughts included, as far as the token budget reaches; the possible
actions are those the other agents see too. The examples are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from proxmo.agents.base import Turn, View
from proxmo.agents.layouts import PromptLayout
from proxmo.agents.parser import BLANK, spoken_thought
from proxmo_envs import description_of

# Past steps a prompt may show; no world lets an episode last that long.
WHOLE_EPISODE = 1_000

_RULES = """\
You act in a text world, one action at a time. Each of your replies is a thought and one action:

Thought: what you make of the situation and what comes next
Action: the action, and nothing else in this line

The world then answers with an observation. Write only your own next thought and action.{rule}"""
_RULE = " The action has to be one of the possible actions, copied word for word."
_BLANK_RULE = " Replace what stands in < > by your own words."
_EXAMPLES = "Episodes that went well:\n\n{examples}\n\nNow it is your turn."
_MEMORY = "You have tried this task before and failed. What you told yourself afterwards:\n{notes}"
_LEFT_OUT = "(the first {number} steps are left out)"
_POSSIBLE = "Possible actions:\n{actions}"
_REQUEST = "Write your next thought and action."
_NO_ACTION = "(none: the reply held no action)"


@cache
def react_layout(env_id: str) -> PromptLayout:
    """The layout with the examples that the description of an environment names, if any."""
    package, _, name = description_of(env_id).examples.partition(":")
    examples = (files(package) / name).read_text(encoding="utf-8").strip() if name else ""
    return PromptLayout(
        lambda view: _react_text(view, examples), hidden=frozenset({"help"}), one_line=True
    )


def _react_text(view: View, examples: str) -> str:
    rule = _RULE if view.admissible else ""
    if any(BLANK.search(action) for action in view.admissible):
        rule += _BLANK_RULE
    parts = [_RULES.format(rule=rule)]
    if examples:
        parts.append(_EXAMPLES.format(examples=examples))
    if view.memory:
        parts.append(memory_text(view.memory))
    parts.append(transcript(view))
    if view.admissible:
        parts.append(_POSSIBLE.format(actions="\n".join(view.admissible)))
    parts.append(_REQUEST)
    return "\n\n".join(parts)


def memory_text(notes: Sequence[str]) -> str:
    """Writes what the agent told itself after earlier trials; "" when there was none."""
    return _MEMORY.format(notes="\n".join(f"- {note}" for note in notes)) if notes else ""


def transcript(view: View) -> str:
    """Writes task, thoughts, actions and observations up to the present one."""
    lines = [f"Task: {view.task}"]
    left_out = view.step - len(view.history)
    if left_out:
        lines.append(_LEFT_OUT.format(number=left_out))
    lines += [_written(turn) for turn in view.history]
    return "\n".join([*lines, f"Observation: {view.observation}"])


def _written(turn: Turn) -> str:
    lines = [f"Observation: {turn.observation}"]
    thought = spoken_thought(turn.response)
    if thought:
        lines.append(f"Thought: {thought}")
    return "\n".join([*lines, f"Action: {turn.action or _NO_ACTION}"])

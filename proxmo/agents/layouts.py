"""The words of a prompt: one layout per style, all of its text in this file.

A layout turns a view, already cut to its budget, into the user's message. Observations are cleaned
first: a repeated task costs tokens at every step and says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from proxmo.agents.base import Turn, View
from proxmo.agents.parser import BLANK

_THINK = """\
You act in a text world, one action at a time.

Your task: {task}
{past}
Now you choose action {number}. You see:
{observation}
{possible}
First reason about the situation inside <think> and </think>. \
Then write exactly one action inside <action> and </action>.{rule}"""

_THINK_PAST = """
You have taken {step} action(s). The last {shown}, oldest first:
{turns}
"""
_THINK_TURN = "[{number}] You saw: {observation}\n[{number}] You did: {action}"
_THINK_POSSIBLE = "\nPossible actions:\n{actions}\n"
_THINK_RULE = " It has to be one of the possible actions, copied word for word."
_THINK_BLANK_RULE = " Replace what stands in < > by your own words."
_THINK_NO_ACTION = "(nothing: the reply held no action)"

# A line that is only decoration, such as "-= Welcome to TextWorld, ALFRED! =-".
_BANNER = re.compile(r"^[ \t]*-=.*=-[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PromptLayout:
    """How one style writes a view; `hidden` actions (None: all) are not offered, but accepted."""

    render: Callable[[View], str]
    hidden: frozenset[str] | None
    one_line: bool

    def tidy(self, observation: str, task: str) -> str:
        """Cleans an observation; the result is one line, or lines with no empty ones between."""
        text = clean_observation(observation, task)
        if self.one_line:
            # One token instead of three, and no letters beside those of the page.
            return " ".join(text.replace("[SEP]", "|").split())
        return re.sub(r"\s*\n\s*", "\n", text).strip()


def think_text(view: View) -> str:
    """Writes the prompt that asks for `<think>...</think><action>...</action>`."""
    past, possible, rule = "", "", ""
    first = view.step - len(view.history) + 1
    if view.history:
        turns = "\n".join(_think_turn(first + i, turn) for i, turn in enumerate(view.history))
        past = _THINK_PAST.format(step=view.step, shown=len(view.history), turns=turns)
    if view.admissible:
        possible = _THINK_POSSIBLE.format(actions="\n".join(view.admissible))
        blanks = any(BLANK.search(action) for action in view.admissible)
        rule = _THINK_RULE + (_THINK_BLANK_RULE if blanks else "")
    return _THINK.format(
        task=view.task,
        past=past,
        number=view.step + 1,
        observation=view.observation,
        possible=possible,
        rule=rule,
    )


def _think_turn(number: int, turn: Turn) -> str:
    action = turn.action or _THINK_NO_ACTION
    return _THINK_TURN.format(number=number, observation=turn.observation, action=action)


def terse_text(view: View) -> str:
    """Writes the end of a transcript, the list to copy the action from, and the task.

        >go to shelf 1
        You arrive at shelf 1. On the shelf 1, you see a mug 1.
        >take mug 1 from shelf 1
        now: You pick up the mug 1 from the shelf 1.
        can:
        go to bed 1
        go to desk 1
        task: put a mug in desk.

    An action is followed by what it led to, so the observation before the oldest remembered action
    is left out. The task stands last, always as far from the response: a small model finds it
    there with less training. In front of every action stands a newline or ">", never a blank:
    byte-level tokenizers then split it into the very tokens of the response, and a model that has
    learned to copy can copy it.
    """
    results = [turn.observation for turn in view.history[1:]] + [f"now: {view.observation}"]
    if view.history:
        past = [f">{turn.action}\n{seen}" for turn, seen in zip(view.history, results, strict=True)]
    else:
        past = results
    possible = ["can:", *view.admissible] if view.admissible else []
    return "\n".join([*past, *possible, f"task: {view.task}"])


LAYOUTS = {
    "think": PromptLayout(think_text, hidden=frozenset({"help"}), one_line=False),
    # `examine` stays: one line each names the place the agent is at and the thing it holds.
    "terse": PromptLayout(
        terse_text, hidden=frozenset({"help", "look", "inventory"}), one_line=True
    ),
    # For environments whose observations show the actions: half of a page would be said twice.
    "bare": PromptLayout(terse_text, hidden=None, one_line=True),
}


def clean_observation(observation: str, task: str) -> str:
    """Leaves out banners and the announcement of the task.

    The announcement is the task with the words that lead to it by a colon ("Your task is to: ..."),
    or a line (or a part between `[SEP]` marks) that holds nothing but the task. A task that is
    mentioned in running text stays.
    """
    text = _BANNER.sub("", observation) if "-=" in observation else observation
    task = task.strip()
    if task and task in text:
        text = _announcement(task).sub(_keep_parts_apart, text)
    return text


@lru_cache(maxsize=1024)
def _announcement(task: str) -> re.Pattern[str]:
    led_to = r"[^\n:.!?\]]*:\s*(?:\[SEP\]\s*)?" + re.escape(task) + r"(?!\w)\.?"
    alone = r"(?:^|(?<=\n)|(?<=\[SEP\]))[ \t]*" + re.escape(task) + r"[ \t]*(?=$|\n|\[SEP\])"
    return re.compile(rf"(?:{led_to}|{alone})(?P<mark>\s*\[SEP\])?")


def _keep_parts_apart(match: re.Match[str]) -> str:
    # The mark after the announcement goes with it; the one before it still parts its neighbours.
    return "" if match["mark"] else " "


def shown_actions(admissible: Sequence[str], layout: PromptLayout) -> tuple[str, ...]:
    """Leaves out actions that the layout does not offer."""
    if layout.hidden is None:
        return ()
    return tuple(action for action in admissible if action not in layout.hidden)

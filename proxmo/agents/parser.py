"""Reads the action out of a response: strict and total, so that no other text is executed.

Rules, style "think" (tags are lower-case and matched exactly):

1. Thinking is what stands between `<think>` and the next `</think>`; it is ignored, tags inside it
   included. It may be absent: the action is what counts. A `</think>` before any `<think>` closes
   thinking that the prompt opened, as the chat templates of reasoning models do. Any other unpaired
   think tag makes the response malformed.
2. Outside the thinking there is exactly one `<action>...</action>`; other text around it is
   ignored. The action is what stands between the tags, stripped.
3. A response that was cut by the length limit counts if its only action block was complete by then.

Style "react": thinking in tags is ignored as above, and so is everything from a line on that begins
with "Observation:", because that is the environment's part and not the model's. In what is left,
exactly one line begins with "Action:", and the rest of that line is the action. In a response that
was cut by the length limit, the line has to be ended.

Styles "terse" and "bare": the whole response, stripped, is the action; it is one line, and the
model has to end it by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from proxmo.errors import UnknownNameError

_THINKING = re.compile(r"<think>.*?</think>", re.DOTALL)
_BLOCK = re.compile(r"<action>(.*?)</action>", re.DOTALL)
_ANY_TAG = re.compile(r"</?(?:think|action)>")
_ACTION_LINE = re.compile(r"^[ \t]*Action:(.*)$", re.MULTILINE)
_OBSERVATION_LINE = re.compile(r"^[ \t]*Observation:", re.MULTILINE)
# A blank that an agent fills in: `search[<your query>]` offers a search for anything.
BLANK = re.compile(r"<[A-Za-z][^<>]*>")


class ParseReason(str, Enum):
    """Why a response is, or is not, a valid action."""

    OK = "ok"
    NO_ACTION = "no_action"
    SEVERAL_ACTIONS = "several_actions"
    MALFORMED = "malformed"
    NOT_ADMISSIBLE = "not_admissible"
    CUT_BY_LENGTH = "cut_by_length"


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """The action to execute (None: there is none) and whether it is one the environment offered."""

    action: str | None
    valid: bool
    reason: ParseReason


def parse_action(
    text: str,
    admissible: Collection[str] | None,
    *,
    finish_reason: str = "stop",
    style: str = "think",
) -> ParsedAction:
    """Reads the action out of a response by the rules above.

    Args:
        text: The response without special tokens.
        admissible: The actions on offer; None or empty when they are not known, and then every
            well-formed action is valid. `<...>` inside an entry is a blank that any text fills.
        finish_reason: "length" when the response was cut; anything else counts as ended by the
            model.
        style: "think", "terse", "bare" or "react", as in `PromptConfig.style`.

    Returns:
        `action` is set for the reasons OK and NOT_ADMISSIBLE only: an action that is not on offer
        is executed, because the model learns from the environment's answer ("Nothing happens."),
        but it is not valid.

    Raises:
        UnknownNameError: `style` is not a style. No response raises.
    """
    if style not in _READERS:
        raise UnknownNameError("prompt style", style, _READERS)
    found = _READERS[style](text, finish_reason == "length")
    if isinstance(found, ParseReason):
        return ParsedAction(None, False, found)
    if admissible and not _is_admissible(found, admissible):
        return ParsedAction(found, False, ParseReason.NOT_ADMISSIBLE)
    return ParsedAction(found, True, ParseReason.OK)


def _from_line(text: str, cut: bool) -> str | ParseReason:
    action = text.strip()
    if cut:
        return ParseReason.CUT_BY_LENGTH
    if not action:
        return ParseReason.NO_ACTION
    return ParseReason.SEVERAL_ACTIONS if "\n" in action else action


def _from_tags(text: str, cut: bool) -> str | ParseReason:
    spoken = outside_thinking(text)
    actions = _BLOCK.findall(spoken)
    # Tags that belong to no block, or stand inside one: what was meant cannot be told.
    stray = _ANY_TAG.search(_BLOCK.sub(" ", spoken)) or any(map(_ANY_TAG.search, actions))
    if stray:
        return ParseReason.CUT_BY_LENGTH if cut else ParseReason.MALFORMED
    if len(actions) > 1:
        return ParseReason.SEVERAL_ACTIONS
    if actions and (action := actions[0].strip()):
        return action
    return ParseReason.CUT_BY_LENGTH if cut else ParseReason.NO_ACTION


def _from_thought_and_action(text: str, cut: bool) -> str | ParseReason:
    own, *worlds = _OBSERVATION_LINE.split(outside_thinking(text), maxsplit=1)
    if _ANY_TAG.search(own):
        return ParseReason.CUT_BY_LENGTH if cut else ParseReason.MALFORMED
    actions = list(_ACTION_LINE.finditer(own))
    if len(actions) > 1:
        return ParseReason.SEVERAL_ACTIONS
    open_ended = cut and not worlds
    if not actions or (open_ended and actions[0].end() == len(own)):
        return ParseReason.CUT_BY_LENGTH if open_ended else ParseReason.NO_ACTION
    return actions[0][1].strip() or ParseReason.NO_ACTION


_READERS: dict[str, Callable[[str, bool], str | ParseReason]] = {
    "think": _from_tags,
    "terse": _from_line,
    "bare": _from_line,
    "react": _from_thought_and_action,
}


def spoken_thought(text: str) -> str:
    """Returns the thought of a response in style "react", in one line; "" when there is none."""
    own = _OBSERVATION_LINE.split(outside_thinking(text), maxsplit=1)[0]
    before = _ACTION_LINE.split(own, maxsplit=1)[0]
    return " ".join(before.split()).removeprefix("Thought:").strip()


def outside_thinking(text: str) -> str:
    """Returns the response without what stands between think tags."""
    opened, closed = text.find("<think>"), text.find("</think>")
    if closed >= 0 and (opened < 0 or closed < opened):
        text = text[closed + len("</think>") :]
    return _THINKING.sub(" ", text)


def _is_admissible(action: str, admissible: Collection[str]) -> bool:
    return action in admissible or any(
        _fills(action, entry) for entry in admissible if BLANK.search(entry)
    )


def _fills(action: str, entry: str) -> bool:
    pattern = ".+".join(re.escape(part) for part in BLANK.split(entry))
    return re.fullmatch(pattern, action) is not None

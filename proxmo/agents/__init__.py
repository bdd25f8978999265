"""Agents turn observations into actions: prompts with a history window, the response parser."""

from proxmo.agents.base import Turn, View
from proxmo.agents.parser import ParsedAction, ParseReason, parse_action
from proxmo.agents.prompts import Cut, Prompt, PromptBuilder

__all__ = [
    "Cut",
    "ParseReason",
    "ParsedAction",
    "Prompt",
    "PromptBuilder",
    "Turn",
    "View",
    "parse_action",
]

"""What turns an observation into an action: prompts with a history window, the response parser."""

from proxmo.agents.parser import ParsedAction, ParseReason, parse_action
from proxmo.agents.prompts import Cut, Prompt, PromptBuilder, Turn, View

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

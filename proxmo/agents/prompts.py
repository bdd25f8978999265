"""Turns a view into the token ids of a prompt within a budget; cuts are visible and reported."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from proxmo.agents.base import Turn, View
from proxmo.agents.chat import ChatTemplate
from proxmo.agents.layouts import LAYOUTS, PromptLayout, shown_actions
from proxmo.config import PromptConfig
from proxmo.errors import UnknownNameError

# Stands where the middle of an observation was.
GAP = " [\u2026] "
# Bytes of English text per token, where there is no tokenizer to count with.
_BYTES_PER_TOKEN = 4
# No cut splits these: "drawer 12" must not become "drawer 1"; other scripts are cut anywhere.
_UNIT = re.compile(r"\s*(?:[0-9A-Za-z]{1,40}|\S)")


class Cut(str, Enum):
    """A part that a prompt lost to its budget; OVER_BUDGET: too long with nothing left to cut."""

    HISTORY = "history"
    OBSERVATION = "observation"
    OVER_BUDGET = "over_budget"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as text and as the token ids the policy gets; no ids without a tokenizer."""

    ids: list[int]
    text: str
    cuts: tuple[Cut, ...] = ()


class PromptBuilder:
    """Writes prompts in one style for one tokenizer."""

    def __init__(
        self, config: PromptConfig, tokenizer: Any | None, layout: PromptLayout | None = None
    ) -> None:
        """Tries the chat template.

        Args:
            config: Style, history window and token budget.
            tokenizer: A transformers tokenizer; without a chat template the prompt is the message.
                None for a policy behind an API: the prompt is the message, its length in tokens
                is estimated.
            layout: The words of the prompt; None takes those of `config.style`.

        Raises:
            UnknownNameError: `config.style` is not a style.
        """
        if layout is None and config.style not in LAYOUTS:
            raise UnknownNameError("prompt style", config.style, LAYOUTS)
        self._layout = layout or LAYOUTS[config.style]
        self._window = config.history
        self._budget = config.max_prompt_tokens
        self._template = None if tokenizer is None else ChatTemplate(tokenizer)

    def build(self, view: View) -> Prompt:
        """Returns the prompt of a view; never raises, whatever the texts hold.

        Over the budget, whole turns of the history go first, the oldest before the others, then the
        middle of the observation. The task and the admissible actions are never cut.
        """
        view = self._shown(view)
        prompt = self._write(view)
        if self._fits(prompt):
            return prompt
        turns = tuple(view.history)
        cuts: tuple[Cut, ...] = ()
        if turns:
            cuts = (Cut.HISTORY,)
            fitting = self._largest(
                len(turns) - 1,
                lambda kept: replace(view, history=turns[len(turns) - kept :]),
            )
            if fitting:
                return replace(fitting, cuts=cuts)
            view = replace(view, history=())
        units = _UNIT.findall(view.observation)
        if units:
            cuts += (Cut.OBSERVATION,)
            fitting = self._largest(
                len(units) - 1, lambda kept: replace(view, observation=_without_middle(units, kept))
            )
            if fitting:
                return replace(fitting, cuts=cuts)
            view = replace(view, observation=GAP.strip())
        return replace(self._write(view), cuts=(*cuts, Cut.OVER_BUDGET))

    def _shown(self, view: View) -> View:
        """The view as the style shows it: last turns, clean observations, offered actions."""
        layout, task = self._layout, view.task.strip()
        recent = view.history[max(0, len(view.history) - self._window) :]
        return View(
            task=task,
            history=tuple(
                Turn(layout.tidy(t.observation, task), t.action.strip(), t.response) for t in recent
            ),
            step=view.step,
            observation=layout.tidy(view.observation, task),
            admissible=shown_actions(view.admissible, layout),
            memory=view.memory,
        )

    def _write(self, view: View) -> Prompt:
        message = self._layout.render(view).strip()
        if self._template is None:
            # A lone surrogate cannot be sent.
            return Prompt([], message.encode("utf-8", "replace").decode("utf-8"))
        text = self._template.render(message)
        return Prompt(self._template.encode(text), text)

    def _fits(self, prompt: Prompt) -> bool:
        if self._template is None:
            return len(prompt.text.encode()) <= self._budget * _BYTES_PER_TOKEN
        return len(prompt.ids) <= self._budget

    def _largest(self, most: int, smaller: Callable[[int], View]) -> Prompt | None:
        """Bisects for the largest k in 0..most whose `smaller(k)` fits; None: not even k = 0."""
        fitting = bisect_left(
            range(most + 1), True, key=lambda k: not self._fits(self._write(smaller(k)))
        )
        return self._write(smaller(fitting - 1)) if fitting else None


def _without_middle(units: list[str], kept: int) -> str:
    head = (kept + 1) // 2
    return ("".join(units[:head]) + GAP + "".join(units[len(units) - (kept - head) :])).strip()

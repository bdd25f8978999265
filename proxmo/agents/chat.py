"""The chat template of a tokenizer, rendered once instead of once per prompt.

A rollout builds thousands of prompts per iteration and a template is a program; for a single user
message nearly all templates put fixed text around it. Whether this one does is checked when the
frame is made; one that does more is run each time. The text is then tokenised in one piece, so the
ids are those of `apply_chat_template`.
"""

from __future__ import annotations

import logging
from typing import Any

from proxmo.errors import DataError

logger = logging.getLogger(__name__)

_MARK = "proxmo-content-mark"
_PROBE = 'task: 1 "quoted" it\'s {x} {{y}} <think>a</think>\n\nlook & listen <b> caf\u00e9 \u6f22'


class ChatFrame:
    """Turns the user's message into token ids that end where the response begins."""

    def __init__(self, tokenizer: Any) -> None:
        """Renders the template of a transformers tokenizer, if it has one.

        Raises:
            DataError: the template refuses the message of a user.
        """
        self._tokenizer = tokenizer
        self._has_template = bool(tokenizer.chat_template)
        if not self._has_template:
            logger.warning(
                "the tokenizer has no chat template: prompts are plain text, as for a base model"
            )
        try:
            self._around = self._fixed_text()
        except Exception as cause:  # a template is a program, which raises what it likes
            raise DataError(
                f"the tokenizer's chat template cannot be applied to a user's message: {cause}; "
                "choose an instruction-tuned model, or mend its chat_template.jinja"
            ) from cause

    def render(self, content: str) -> str:
        """Returns the whole prompt as text; `content` has no blanks at its ends."""
        # A lone surrogate, which JSON can carry, has no UTF-8 form and no token.
        content = content.encode("utf-8", "replace").decode("utf-8")
        if self._around is None:
            return self._apply(content)
        before, after = self._around
        return before + content + after

    def encode(self, text: str) -> list[int]:
        """Returns the token ids of a rendered prompt, which holds its special tokens already."""
        encoded = self._tokenizer(text, add_special_tokens=not self._has_template, verbose=False)
        return list(encoded["input_ids"])

    def _fixed_text(self) -> tuple[str, str] | None:
        if not self._has_template:
            return "", "\n"  # a base model: the response starts on a new line
        parts = self._apply(_MARK).split(_MARK)
        if len(parts) != 2 or self._apply(_PROBE) != parts[0] + _PROBE + parts[1]:
            return None
        return parts[0], parts[1]

    def _apply(self, content: str) -> str:
        messages = [{"role": "user", "content": content}]
        return str(
            self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, tokenize=False
            )
        )

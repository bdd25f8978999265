"""The chat template of a tokenizer: from the user's message to the token ids of a prompt."""

from __future__ import annotations

import logging
from typing import Any

from proxmo.errors import DataError

logger = logging.getLogger(__name__)


class ChatTemplate:
    """Turns the user's message into token ids that end where the response begins."""

    def __init__(self, tokenizer: Any) -> None:
        """Tries the template of a transformers tokenizer, if it has one.

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
            self.render("hello")
        except Exception as cause:  # a template is a program, which raises what it likes
            raise DataError(
                f"the tokenizer's chat template cannot be applied to a user's message: {cause}; "
                "choose an instruction-tuned model, or mend its chat_template.jinja"
            ) from cause

    def render(self, content: str) -> str:
        """Returns the whole prompt as text."""
        # A lone surrogate, which JSON can carry, has no UTF-8 form and no token.
        content = content.encode("utf-8", "replace").decode("utf-8")
        if not self._has_template:
            return f"{content}\n"  # a base model: the response starts on a new line
        messages = [{"role": "user", "content": content}]
        return str(
            self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, tokenize=False
            )
        )

    def encode(self, text: str) -> list[int]:
        """Returns the token ids of a rendered prompt, which holds its special tokens already."""
        encoded = self._tokenizer(text, add_special_tokens=not self._has_template, verbose=False)
        return list(encoded["input_ids"])

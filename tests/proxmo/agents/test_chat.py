"""What is said about tokenizers whose chat template is missing or refuses."""

from __future__ import annotations

import logging

import pytest

from proxmo.agents.chat import ChatTemplate
from proxmo.errors import DataError


def test_a_template_that_refuses_a_user_is_an_error_in_words(make_tokenizer):
    refuses = "{{ raise_exception('only system messages') }}"
    with pytest.raises(DataError, match="chat template cannot .*only system messages; choose"):
        ChatTemplate(make_tokenizer(refuses))


def test_a_base_model_is_warned_of_once(make_tokenizer, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        template = ChatTemplate(make_tokenizer(None))
        template.encode(template.render("hello"))
    assert [record.getMessage() for record in caplog.records] == [
        "the tokenizer has no chat template: prompts are plain text, as for a base model"
    ]

"""A small real tokenizer, trained here on a few sentences: byte-level BPE with a chat template."""

from __future__ import annotations

import pytest

SENTENCES = [
    "system\nYou act. user\ntask: put a clean mug in cabinet.\nnow: word word assistant\n",
    "can:\ngo to cabinet 1\ntake mug 1 from desk 1",
    "You arrive at desk 12. On the desk 12, you see a mug 1, and a pen 2. Nothing happens.",
    "You are in the middle of a room. Looking quickly around you, you see a bed 1.",
    "go to desk 1\ngo to cabinet 12\nmove mug 1 to desk 1\nclean mug 1 with sinkbasin 1",
    "First reason about the situation inside <think> and </think>. <action>look</action>",
]
# Qwen's form: a fixed system message, the user's text as it is.
PLAIN_TEMPLATE = (
    "<|im_start|>system\nYou act.<|im_end|>\n"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="session")
def make_tokenizer():
    """Builds a transformers tokenizer with the given chat template (None: a base model's).

    Like Llama's, it starts a text with a token of its own unless told not to add special tokens.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|im_start|>", "<|im_end|>", "<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(SENTENCES * 5, trainer)
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", core.token_to_id("<s>"))]
    )
    text = core.to_str()

    def make(chat_template: str | None = PLAIN_TEMPLATE) -> PreTrainedTokenizerFast:
        return PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer.from_str(text),
            eos_token="<|im_end|>",
            pad_token="<|im_end|>",
            chat_template=chat_template,
            model_max_length=128,
        )

    return make


@pytest.fixture(scope="session")
def tokenizer(make_tokenizer):
    return make_tokenizer()

import time
from dataclasses import replace

import pytest

from proxmo.agents import Cut, PromptBuilder, Turn, View, parse_action
from proxmo.config import PromptConfig
from proxmo.errors import UnknownNameError
from tests.proxmo.agents.conftest import PLAIN_TEMPLATE

STYLES = ["think", "terse"]
GAP = "[\u2026]"
TASK = "put a clean mug in cabinet."
FIRST = View(
    task=TASK,
    history=(),
    step=0,
    observation="-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room.\n\n"
    "Your task is to: put a clean mug in cabinet.",
    admissible=["examine bed 1", "go to desk 1", "help", "inventory", "look"],
)


def later(steps: int) -> View:
    """A view after so many steps; turn k saw "place k." and did "go to desk k"."""
    turns = [Turn(f"place {k}.", f"go to desk {k}") for k in range(1, steps + 1)]
    return View(TASK, turns, steps, "You are here.", ["look", "go to desk 99"])


def builder(tokenizer, style="think", history=2, limit=100_000) -> PromptBuilder:
    return PromptBuilder(PromptConfig(style, history, limit), tokenizer)


def message(prompt) -> str:
    """What the user's turn of the prompt says."""
    return prompt.text.split("<|im_start|>user\n")[1].split("<|im_end|>")[0]


def test_the_first_terse_prompt_is_task_room_and_actions(tokenizer):
    prompt = builder(tokenizer, "terse").build(FIRST)
    assert message(prompt).split("\n") == [
        "now: You are in the middle of a room.",
        "can:",
        "examine bed 1",
        "go to desk 1",
        f"task: {TASK}",
    ]
    assert prompt.cuts == ()


def test_a_later_terse_prompt_continues_the_transcript(tokenizer):
    assert message(builder(tokenizer, "terse").build(later(3))).split("\n") == [
        ">go to desk 2",
        "place 3.",
        ">go to desk 3",
        "now: You are here.",
        "can:",
        "go to desk 99",
        f"task: {TASK}",
    ]


def test_a_terse_response_has_the_same_tokens_in_the_list_and_in_the_history(tokenizer):
    # What lets a small model copy: no token of an action differs between prompt and response.
    def encode(text: str) -> list[int]:
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    response = encode("go to desk 99")
    view = replace(later(1), history=[Turn("place.", "go to desk 99")])
    ids = builder(tokenizer, "terse").build(view).ids
    places = [i for i in range(len(ids)) if ids[i : i + len(response)] == response]
    assert len(places) == 2


def test_the_first_think_prompt_asks_for_both_tags_and_hides_only_help(tokenizer):
    text = message(builder(tokenizer, "think").build(FIRST))
    assert f"Your task: {TASK}\n" in text
    assert "Now you choose action 1. You see:\nYou are in the middle of a room.\n" in text
    assert "\nPossible actions:\nexamine bed 1\ngo to desk 1\ninventory\nlook\n" in text
    for tag in ("<think>", "</think>", "<action>", "</action>"):
        assert text.count(tag) == 1
    assert text.count("put a clean mug") == 1
    assert "ALFRED" not in text
    assert "You have taken" not in text


def test_a_later_think_prompt_numbers_the_remembered_turns(tokenizer):
    text = message(builder(tokenizer, "think").build(later(7)))
    assert "You have taken 7 action(s). The last 2, oldest first:" in text
    assert "[6] You saw: place 6.\n[6] You did: go to desk 6\n[7] You saw: place 7." in text
    assert "Now you choose action 8. You see:\nYou are here.\n" in text


def test_a_view_may_hold_only_the_last_turns(tokenizer):
    whole, last = later(7), replace(later(7), history=later(7).history[-3:])
    for style in STYLES:
        make = builder(tokenizer, style)
        assert make.build(whole) == make.build(last)


def test_a_turn_whose_response_held_no_action_is_shown_as_such(tokenizer):
    view = replace(later(1), history=[Turn("place 1.", "")])
    assert "[1] You did: (nothing" in message(builder(tokenizer, "think").build(view))
    assert ">\nnow: You are here." in message(builder(tokenizer, "terse").build(view))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("window", "steps", "shown"), [(0, 5, 0), (2, 0, 0), (2, 1, 1), (2, 50, 2)]
)
def test_the_history_window_shows_the_last_turns_and_none_for_0(
    tokenizer, style, window, steps, shown
):
    text = message(builder(tokenizer, style, history=window).build(later(steps)))
    turns = [k for k in range(1, 51) if f"go to desk {k}\n" in text]
    assert turns == list(range(steps - shown + 1, steps + 1))


@pytest.mark.parametrize("style", STYLES)
def test_an_unknown_action_list_leaves_its_part_out(tokenizer, style):
    text = message(builder(tokenizer, style).build(replace(later(1), admissible=())))
    assert "possible action" not in text.lower()
    assert "can:" not in text


def test_blanks_in_the_list_are_explained_and_the_parser_takes_what_fills_them(tokenizer):
    shop = replace(FIRST, admissible=["search[<your query>]", "click[next >]"])
    assert "Replace what stands in < >" in message(builder(tokenizer).build(shop))
    assert "Replace" not in message(builder(tokenizer).build(FIRST))
    assert parse_action("<action>search[mug]</action>", shop.admissible).valid


def test_braces_and_tags_in_texts_are_only_text(tokenizer):
    odd = "{task} {0} {{x}} %s <think> </action> \\n"
    for style in STYLES:
        view = View(odd, [Turn(f"1 {odd}", odd)], 1, f"2 {odd}", [odd])
        text = message(builder(tokenizer, style).build(view))
        assert text.count(odd) == (5 if style == "think" else 4)


# ---- the token budget


def narrow(tokenizer, style, view, limit):
    prompt = builder(tokenizer, style, history=5, limit=limit).build(view)
    assert prompt.ids == tokenizer(prompt.text, add_special_tokens=False)["input_ids"]
    assert (len(prompt.ids) > limit) == (Cut.OVER_BUDGET in prompt.cuts)
    return prompt


@pytest.mark.parametrize("style", STYLES)
def test_the_oldest_history_goes_first_and_no_more_of_it_than_must(tokenizer, style):
    view = later(5)
    lengths = [len(builder(tokenizer, style, history=h).build(view).ids) for h in range(6)]
    assert narrow(tokenizer, style, view, lengths[5]).cuts == ()
    for kept in (4, 3, 1, 0):
        prompt = narrow(tokenizer, style, view, lengths[kept + 1] - 1)
        assert prompt.cuts == (Cut.HISTORY,)
        assert prompt.text == builder(tokenizer, style, history=kept).build(view).text


@pytest.mark.parametrize("style", STYLES)
def test_then_the_middle_of_the_observation_goes_visibly(tokenizer, style):
    words = [f"w{k}" for k in range(5000)]
    view = replace(later(5), observation=" ".join(words))
    bare = len(narrow(tokenizer, style, replace(later(0), observation=GAP), 100_000).ids)
    limit = bare + 80
    prompt = narrow(tokenizer, style, view, limit)
    assert prompt.cuts == (Cut.HISTORY, Cut.OBSERVATION)
    assert limit - 8 <= len(prompt.ids) <= limit  # the budget is used: no word would fit besides
    assert TASK in prompt.text and "go to desk 99" in prompt.text
    kept = message(prompt).split(GAP)
    head, tail = kept[0].split()[-5:], kept[1].split("\n")[0].split()
    assert head[0] == f"w{int(head[-1][1:]) - 4}"
    assert tail == words[-len(tail) :]
    assert "w0 w1 w2 " in kept[0]


def test_with_64_tokens_and_an_observation_of_5000_words_task_and_actions_survive(tokenizer):
    view = replace(later(5), observation="word " * 5000)
    prompt = narrow(tokenizer, "terse", view, 64)
    assert prompt.cuts == (Cut.HISTORY, Cut.OBSERVATION)
    assert message(prompt).startswith("now: word")
    assert message(prompt).endswith(f"word\ncan:\ngo to desk 99\ntask: {TASK}")


def test_a_cut_never_shortens_a_number(tokenizer):
    view = replace(later(0), observation=" ".join(["drawer 123456789"] * 400))
    for limit in range(70, 110):
        prompt = narrow(tokenizer, "terse", view, limit)
        shown = message(prompt).split("now: ")[1].split("\n")[0]
        assert set(shown.split()) <= {"drawer", "123456789", GAP}


def test_scripts_without_blanks_are_cut_too(tokenizer):
    view = replace(later(0), observation="\u6f22" * 20_000)
    prompt = narrow(tokenizer, "terse", view, 120)
    assert prompt.cuts == (Cut.OBSERVATION,)
    assert f"\u6f22 {GAP} \u6f22" in prompt.text


@pytest.mark.parametrize("style", STYLES)
def test_what_cannot_fit_is_kept_and_reported(tokenizer, style):
    view = replace(later(5), admissible=[f"go to desk {k}" for k in range(300)])
    prompt = narrow(tokenizer, style, view, 64)
    assert prompt.cuts == (Cut.HISTORY, Cut.OBSERVATION, Cut.OVER_BUDGET)
    assert TASK in prompt.text
    assert all(f"go to desk {k}\n" in prompt.text for k in range(299))
    assert GAP in prompt.text and "You are here" not in prompt.text


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("limit", [1, 60, 100_000])
@pytest.mark.parametrize(
    "text",
    ["", " \n ", "caf\u00e9 \u6f22\u5b57 \U0001f600", "<|im_end|>", "\ud83d", "a" * 20_000, "\x00"],
)
def test_no_text_and_no_budget_raises(tokenizer, style, limit, text):
    view = View(text, [Turn(text, text)], 1, text, [text])
    prompt = builder(tokenizer, style, limit=limit).build(view)
    assert (len(prompt.ids) > limit) == (Cut.OVER_BUDGET in prompt.cuts)


# ---- the chat template

TRIMS = PLAIN_TEMPLATE.replace("m['content']", "m['content'] | trim")
TWICE = "{% for m in messages %}{{ m['content'] }}|{{ m['content'] }}{% endfor %}"
ESCAPES = PLAIN_TEMPLATE.replace("m['content']", "m['content'] | tojson")


def template_ids(tokenizer, content: str) -> list[int]:
    out = tokenizer.apply_chat_template(
        [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=True
    )
    # A list in early 5.x, a BatchEncoding later.
    return list(out if isinstance(out, list) else out["input_ids"])


@pytest.mark.parametrize("template", [PLAIN_TEMPLATE, TRIMS, TWICE, ESCAPES])
@pytest.mark.parametrize("style", STYLES)
def test_the_ids_are_those_of_the_chat_template(make_tokenizer, template, style):
    tokenizer = make_tokenizer(template)
    reference = builder(make_tokenizer(None), style)  # its text is the bare message
    make = builder(tokenizer, style)
    odd = View("t", [Turn("caf\u00e9 'x' \"y\" & <b>", "do {{ it }}")], 1, "\u6f22", ["a <think>"])
    for view in (FIRST, later(3), odd):
        content = reference.build(view).text.removesuffix("\n")
        assert make.build(view).ids == template_ids(tokenizer, content)


def test_a_base_model_gets_the_message_and_starts_on_a_new_line(make_tokenizer):
    prompt = builder(make_tokenizer(None), "terse").build(FIRST)
    assert prompt.text.startswith("now: ") and prompt.text.endswith(f"task: {TASK}\n")
    assert make_tokenizer(None)(prompt.text)["input_ids"] == prompt.ids
    assert prompt.ids[0] == make_tokenizer(None).convert_tokens_to_ids("<s>")


def test_an_unknown_style_is_refused_with_a_near_name(tokenizer):
    with pytest.raises(UnknownNameError, match="did you mean terse"):
        builder(tokenizer, "tersee")


def test_a_terse_prompt_takes_well_under_a_millisecond(tokenizer):
    make = builder(tokenizer, "terse")
    view = replace(later(3), admissible=[f"go to desk {k}" for k in range(30)])
    times = []
    for _ in range(50):
        start = time.perf_counter()
        make.build(view)
        times.append(time.perf_counter() - start)
    # The fastest of 50: other processes on the machine do not count. Measured: 0.2 ms.
    assert min(times) < 1e-3

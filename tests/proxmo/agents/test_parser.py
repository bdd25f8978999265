import numpy as np
import pytest

from proxmo.agents import ParseReason, parse_action
from proxmo.errors import UnknownNameError

ROOM = ["look", "go to desk 1", "move mug 1 to desk 1"]
SHOP = ["search[<your query>]", "click[< prev]", "click[next >]"]
OK, NOT_ADMISSIBLE = ParseReason.OK, ParseReason.NOT_ADMISSIBLE
CJK, EMOJI, LONE_SURROGATE = "\u6f22\u5b57", "\U0001f600", "\ud800"


def parsed(text: str, admissible=ROOM, finish_reason: str = "stop", style: str = "think"):
    found = parse_action(text, admissible, finish_reason=finish_reason, style=style)
    assert found.valid is (found.reason is OK)
    return found.action, found.reason


@pytest.mark.parametrize(
    ("response", "action"),
    [
        ("<think>To the desk.</think>\n<action> go to desk 1\n</action>", "go to desk 1"),
        ("I go. <action>look</action> Done.", "look"),
        ("<think><action>look</action></think><action>go to desk 1</action>", "go to desk 1"),
        ("<think>a</think><think><action>x</action></think><action>look</action>", "look"),
        # Thinking that the prompt opened is ignored up to its end.
        ("maybe <action>look</action>?</think>\n<action>go to desk 1</action>", "go to desk 1"),
        ("a</think><think>b</think><action>look</action>", "look"),
    ],
)
def test_the_one_block_outside_the_thinking_is_the_action(response, action):
    assert parsed(response) == (action, OK)


NO_ACTION = [
    "I will go to desk 1",
    "go to desk 1",
    "",
    "   \n",
    "<action></action>",
    "<action> \n </action>",
    "<think><action>look</action></think>",
    "<think>nothing to do</think>",
    "<ACTION>look</ACTION>",
    "<action >look</action >",
]
SEVERAL_ACTIONS = [
    "<action>a</action><action>b</action>",
    "<action>a</action><action>a</action>",
    "<think>x</think><action>look</action>\nYou see a mug.\n" * 3,
]
MALFORMED = [
    "</action>x<action>",
    "<action>look",
    "look</action>",
    "<action>look<action>",
    "<action>go <action>look</action>",
    "<action>look</action></action>",
    "<action><think>so</action>",
    "<think>so <action>look</action>",
    "<think>a</think></think><action>look</action>",
    "<think>a<think>b</think>c</think><action>look</action>",
    "<act<think></think>ion>look</action>",
]


@pytest.mark.parametrize(
    ("response", "reason"),
    [(response, ParseReason.NO_ACTION) for response in NO_ACTION]
    + [(response, ParseReason.SEVERAL_ACTIONS) for response in SEVERAL_ACTIONS]
    + [(response, ParseReason.MALFORMED) for response in MALFORMED],
)
def test_a_response_that_is_not_one_clear_action_executes_nothing(response, reason):
    assert parsed(response) == (None, reason)


@pytest.mark.parametrize(
    "response",
    [
        *("", "I should", "<think>I should", "<think>so</think><action>go to", "<think>a</think>"),
        "<action>look</action><action>go",
    ],
)
def test_a_response_cut_before_its_action_is_clear_says_so(response):
    assert parsed(response, finish_reason="length") == (None, ParseReason.CUT_BY_LENGTH)


def test_a_response_cut_after_its_only_action_counts():
    assert parsed("<action>look</action> and the", finish_reason="length") == ("look", OK)


@pytest.mark.parametrize(
    "action",
    [
        *("Look", "look.", "go  to desk 1", "go to desk", "go to desk 11"),
        *("fly to moon", "put mug 1 in/on desk 1"),
    ],
)
def test_an_action_that_is_not_offered_to_the_letter_is_executed_but_not_valid(action):
    assert parsed(f"<think>..</think><action>{action}</action>") == (action, NOT_ADMISSIBLE)
    assert parsed(action, style="terse") == (action, NOT_ADMISSIBLE)


@pytest.mark.parametrize("unknown", [None, [], ()])
def test_without_a_list_every_well_formed_action_is_valid(unknown):
    assert parsed("<action>fly to moon</action>", unknown) == ("fly to moon", OK)
    assert parsed("fly to moon", unknown, style="terse") == ("fly to moon", OK)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("search[red (xl) shoes]", OK),
        ("click[< prev]", OK),
        ("search[]", NOT_ADMISSIBLE),
        ("click[shoes]", NOT_ADMISSIBLE),
    ],
)
def test_a_blank_in_an_entry_takes_any_text(action, reason):
    assert parsed(f"<action>{action}</action>", SHOP) == (action, reason)
    # A bare response is read as a terse one.
    assert parsed(action, SHOP, style="bare") == (action, reason)


@pytest.mark.parametrize("noise", [CJK, EMOJI, LONE_SURROGATE, "\u00e9\u2028\u00a0", "\x00\x0b"])
def test_unicode_never_matters(noise):
    response = f"<think>{noise}</think>{noise}<action>go to desk 1</action>{noise}"
    assert parsed(response) == ("go to desk 1", OK)
    assert parsed(f"<action>say {noise}!</action>", ()) == (f"say {noise}!", OK)
    assert parsed(f"say {noise}!", [f"say {noise}!"], style="terse") == (f"say {noise}!", OK)


@pytest.mark.parametrize(
    ("response", "finish", "action", "reason"),
    [
        (" go to desk 1\n", "stop", "go to desk 1", OK),
        ("<action>look</action>", "stop", "<action>look</action>", NOT_ADMISSIBLE),
        ("", "stop", None, ParseReason.NO_ACTION),
        (" \n ", "stop", None, ParseReason.NO_ACTION),
        ("look\ngo to desk 1", "stop", None, ParseReason.SEVERAL_ACTIONS),
        ("look", "length", None, ParseReason.CUT_BY_LENGTH),
    ],
)
def test_a_terse_response_is_one_line_that_ends_by_itself(response, finish, action, reason):
    assert parsed(response, ROOM, finish, "terse") == (action, reason)


def test_an_unknown_style_is_refused_with_a_near_name():
    with pytest.raises(UnknownNameError, match="did you mean think"):
        parse_action("look", ROOM, style="thnk")


def test_any_text_gets_an_answer_and_only_two_reasons_carry_an_action():
    rng = np.random.default_rng(0)
    pieces = ["<think>", "</think>", "<action>", "</action>", "look", " ", "\n", "<", CJK]
    seen = set()
    for _ in range(3000):
        response = "".join(rng.choice(pieces, size=rng.integers(9)))
        for style in ("think", "terse"):
            for finish in ("stop", "length"):
                action, reason = parsed(response, ["look"], finish, style)
                assert (action is not None) == (reason in (OK, NOT_ADMISSIBLE))
                assert (action == "look") == (reason is OK)
                seen.add(reason)
    assert seen == set(ParseReason)

import numpy as np
import pytest

from proxmo.agents import ParsedAction, ParseReason, parse_action
from proxmo.errors import UnknownNameError

ROOM = ["look", "go to desk 1", "move mug 1 to desk 1"]
OK = ParseReason.OK
CJK, EMOJI, LONE_SURROGATE = "\u6f22\u5b57", "\U0001f600", "\ud800"


def think(text: str, admissible=(), finish_reason: str = "stop") -> tuple[str | None, ParseReason]:
    parsed = parse_action(text, admissible, finish_reason=finish_reason)
    assert parsed.valid is (parsed.reason is OK)
    return parsed.action, parsed.reason


def terse(text: str, admissible=(), finish_reason: str = "stop") -> tuple[str | None, ParseReason]:
    parsed = parse_action(text, admissible, finish_reason=finish_reason, style="terse")
    assert parsed.valid is (parsed.reason is OK)
    return parsed.action, parsed.reason


def test_one_block_after_the_thinking_is_the_action():
    reply = "<think>The mug belongs on the desk.</think>\n<action> go to desk 1\n</action>"
    assert parse_action(reply, ROOM) == ParsedAction("go to desk 1", True, OK)


def test_thinking_may_be_absent_and_text_around_the_block_does_not_matter():
    assert think("I go. <action>look</action> Done.", ROOM) == ("look", OK)


@pytest.mark.parametrize(
    "reply",
    [
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
    ],
)
def test_a_reply_without_an_action_block_executes_nothing(reply):
    assert think(reply, ROOM) == (None, ParseReason.NO_ACTION)


def test_a_block_inside_the_thinking_is_ignored():
    reply = "<think><action>look</action></think><action>go to desk 1</action>"
    assert think(reply, ROOM) == ("go to desk 1", OK)


def test_every_thinking_block_is_ignored():
    reply = "<think>a</think><think><action>look</action></think><action>go to desk 1</action>"
    assert think(reply, ROOM) == ("go to desk 1", OK)


def test_two_blocks_are_refused_even_when_they_agree():
    assert think("<action>a</action><action>b</action>") == (None, ParseReason.SEVERAL_ACTIONS)
    assert think("<action>a</action><action>a</action>") == (None, ParseReason.SEVERAL_ACTIONS)


def test_a_whole_imagined_dialogue_is_refused():
    turns = "<think>x</think><action>look</action>\nYou see a mug.\n"
    assert think(turns * 3, ROOM) == (None, ParseReason.SEVERAL_ACTIONS)


@pytest.mark.parametrize(
    "reply",
    [
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
    ],
)
def test_unpaired_tags_are_malformed(reply):
    assert think(reply, ROOM) == (None, ParseReason.MALFORMED)


def test_thinking_that_the_prompt_opened_is_ignored_up_to_its_end():
    reply = "maybe <action>look</action>?</think>\n<action>go to desk 1</action>"
    assert think(reply, ROOM) == ("go to desk 1", OK)
    assert think("a</think><think>b</think><action>look</action>", ROOM) == ("look", OK)


@pytest.mark.parametrize(
    "reply",
    ["", "I should", "<think>I should", "<think>so</think><action>go to", "<think>a</think>"],
)
def test_a_reply_cut_before_its_action_says_so(reply):
    assert think(reply, ROOM, "length") == (None, ParseReason.CUT_BY_LENGTH)


def test_a_reply_cut_after_its_only_action_counts():
    assert think("<action>look</action> and the", ROOM, "length") == ("look", OK)


def test_a_reply_cut_inside_a_second_block_executes_nothing():
    reply = "<action>look</action><action>go"
    assert think(reply, ROOM, "length") == (None, ParseReason.CUT_BY_LENGTH)


def test_what_is_not_on_offer_is_executed_but_not_valid():
    reply = "<think>..</think><action>fly to moon</action>"
    assert parse_action(reply, ROOM) == ParsedAction(
        "fly to moon", False, ParseReason.NOT_ADMISSIBLE
    )
    old_grammar = "<action>put mug 1 in/on desk 1</action>"
    assert think(old_grammar, ROOM) == ("put mug 1 in/on desk 1", ParseReason.NOT_ADMISSIBLE)


@pytest.mark.parametrize(
    "action", ["Look", "look.", "go  to desk 1", "go to desk", "go to desk 11"]
)
def test_admissible_means_equal_to_the_letter(action):
    assert think(f"<action>{action}</action>", ROOM) == (action, ParseReason.NOT_ADMISSIBLE)


@pytest.mark.parametrize("unknown", [None, [], ()])
def test_without_a_list_every_well_formed_action_is_valid(unknown):
    assert think("<action>fly to moon</action>", unknown) == ("fly to moon", OK)
    assert terse("fly to moon", unknown) == ("fly to moon", OK)


def test_a_blank_in_an_entry_takes_any_text():
    shop = ["search[<your query>]", "click[< prev]", "click[next >]"]
    assert think("<action>search[red (xl) shoes]</action>", shop) == ("search[red (xl) shoes]", OK)
    assert think("<action>click[< prev]</action>", shop) == ("click[< prev]", OK)
    assert think("<action>search[]</action>", shop) == ("search[]", ParseReason.NOT_ADMISSIBLE)
    assert think("<action>click[shoes]</action>", shop)[1] is ParseReason.NOT_ADMISSIBLE


@pytest.mark.parametrize("noise", [CJK, EMOJI, LONE_SURROGATE, "\u00e9\u2028\u00a0", "\x00\x0b"])
def test_unicode_never_matters(noise):
    reply = f"<think>{noise}</think>{noise}<action>go to desk 1</action>{noise}"
    assert think(reply, ROOM) == ("go to desk 1", OK)
    assert think(f"<action>say {noise}!</action>") == (f"say {noise}!", OK)
    assert terse(f"say {noise}!", [f"say {noise}!"]) == (f"say {noise}!", OK)


def test_a_terse_reply_is_the_action():
    assert terse(" go to desk 1\n", ROOM) == ("go to desk 1", OK)
    assert terse("fly to moon", ROOM) == ("fly to moon", ParseReason.NOT_ADMISSIBLE)
    assert terse("<action>look</action>", ROOM)[1] is ParseReason.NOT_ADMISSIBLE


def test_a_terse_reply_is_one_line_that_ends_by_itself():
    assert terse("", ROOM) == (None, ParseReason.NO_ACTION)
    assert terse(" \n ", ROOM) == (None, ParseReason.NO_ACTION)
    assert terse("look\ngo to desk 1", ROOM) == (None, ParseReason.SEVERAL_ACTIONS)
    assert terse("look", ROOM, "length") == (None, ParseReason.CUT_BY_LENGTH)


def test_a_bare_reply_is_read_as_a_terse_one():
    shop = ["search[<your query>]", "click[red]"]
    found = parse_action("search[red pot]", shop, style="bare")
    assert (found.action, found.valid) == ("search[red pot]", True)
    assert not parse_action("click[blue]", shop, style="bare").valid


def test_an_unknown_style_is_refused_with_a_near_name():
    with pytest.raises(UnknownNameError, match="did you mean think"):
        parse_action("look", ROOM, style="thnk")


def test_any_text_gets_an_answer_and_only_two_reasons_carry_an_action():
    rng = np.random.default_rng(0)
    pieces = ["<think>", "</think>", "<action>", "</action>", "look", " ", "\n", "<", CJK]
    seen = set()
    for _ in range(3000):
        reply = "".join(rng.choice(pieces, size=rng.integers(9)))
        for style in ("think", "terse"):
            for finish in ("stop", "length"):
                parsed = parse_action(reply, ["look"], finish_reason=finish, style=style)
                executes = parsed.reason in (OK, ParseReason.NOT_ADMISSIBLE)
                assert (parsed.action is not None) == executes
                assert parsed.valid == (parsed.action == "look" and parsed.reason is OK)
                seen.add(parsed.reason)
    assert seen == set(ParseReason)

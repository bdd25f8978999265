"""The API policy against a stub server: what is retried, what is not, and how it is counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest

from proxmo.errors import ApiError, UsageError
from proxmo.policies.api_failures import retry_after
from proxmo.policies.base import ChatPolicy, Reply
from proxmo.policies.openai import ApiLimits, OpenAIPolicy
from proxmo.policies.usage import Prices, Usage
from tests.fakes import Answer, StubApi, stub_api

pytest.importorskip("openai", reason="needs the extra api")

QUICK: dict[str, Any] = {"attempts": 3, "backoff_s": 0.001, "timeout_s": 60.0}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@contextmanager
def asked_at(
    answer: Callable[[str, int], Answer | str], prices: Prices | None = None, **limits: Any
) -> Iterator[tuple[OpenAIPolicy, StubApi]]:
    with (
        stub_api(answer) as api,
        OpenAIPolicy(
            "m", base_url=api.base_url, limits=ApiLimits(**{**QUICK, **limits}), prices=prices
        ) as policy,
    ):
        yield policy, api


def say(policy: OpenAIPolicy, *messages: str) -> list[Reply]:
    return policy.reply(messages or ("hi",), temperature=0.4, max_new_tokens=7, seed=(0,))


def test_replies_come_in_the_order_of_their_messages_whatever_the_order_they_end_in():
    def slow_first(message: str, _: int) -> Answer:
        return Answer(message.upper(), delay_s=0.1 if message == "a" else 0.0)

    with asked_at(slow_first) as (policy, api):
        assert isinstance(policy, ChatPolicy)
        replies = say(policy, "a", "b", "c")
        assert [(r.text, r.finish_reason, r.error) for r in replies] == [
            (text, "stop", None) for text in ("A", "B", "C")
        ]
        (sent,) = [one for one in api.requests if one["messages"][0]["content"] == "b"]
        assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("m", 0.4, 7)


def test_no_more_requests_are_in_flight_than_there_are_workers():
    with asked_at(lambda *_: Answer("x", delay_s=0.03), workers=3) as (policy, api):
        say(policy, *"abcdefgh")
        assert api.most_in_flight == 3


def test_the_rate_spaces_the_requests():
    with asked_at(lambda *_: "x", rate=1200) as (policy, api):
        say(policy, *"abcde")
        assert api.times[-1] - api.times[0] >= 4 * 0.05 * 0.9


def test_tokens_and_cost_are_those_the_server_counts():
    with asked_at(lambda *_: "three words here", Prices(2.0, 10.0)) as (policy, _):
        say(policy, "one two", "one")
        cost = (3 * 2.0 + 6 * 10.0) / 1e6
        assert policy.usage == Usage(
            requests=2, prompt_tokens=3, completion_tokens=6, cost=pytest.approx(cost)
        )


@pytest.mark.parametrize("usage", ["null", '{"prompt_tokens": 9, "completion_tokens": null}'])
def test_a_reply_without_counts_is_counted_as_such(usage: str):
    reply = '{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": %s}'
    body = (reply % usage).encode()
    with asked_at(lambda *_: Answer(body=body)) as (policy, _):
        assert say(policy)[0].text == "x"
        assert policy.usage == Usage(requests=1, uncounted=1)


@pytest.mark.parametrize(
    "trouble",
    [
        Answer(status=500),
        Answer(status=429),
        Answer(status=408),
        Answer(body=b'{"choices": [{"mess'),
        Answer("fine", breaks_off=True),
        Answer(body=b"[1, 2]"),
        Answer(body=b"[" * 100_000),
        Answer(body=b'{"choices": []}'),
        Answer(body=b"<html>sorry</html>", headers={"Content-Type": "text/html"}),
        Answer(""),
        Answer(None),
    ],
    ids=lambda a: f"{a.status}-{(a.body or a.text or b'')[:20]}{' broken off' * a.breaks_off}",
)
def test_what_may_pass_is_tried_again_and_then_ends_that_reply_only(trouble: Answer):
    def broken_for_b(message: str, _: int) -> Answer | str:
        return trouble if message == "b" else "fine"

    with asked_at(broken_for_b) as (policy, api):
        good, bad = say(policy, "a", "b")
        assert (good.text, good.error) == ("fine", None)
        assert bad.error and "asked 3 times" in bad.error
        assert sorted(api.prompts) == ["a", "b", "b", "b"]
        usage = policy.usage
        assert (usage.requests, usage.retries, usage.failures) == (4, 2, 1)


def test_an_error_that_comes_with_status_200_is_told():
    answer = Answer(body=b'{"error": {"message": "provider down"}}')
    with asked_at(lambda *_: answer) as (policy, _):
        assert "provider down" in (say(policy)[0].error or "")


def test_a_server_whose_replies_all_break_off_is_no_wrong_address():
    with asked_at(lambda *_: Answer("fine", breaks_off=True)) as (policy, _):
        error = say(policy)[0].error or ""
        assert "no connection: RemoteProtocolError" in error
        assert policy.usage.failures == 1


def test_one_failure_is_forgotten_after_a_success():
    with asked_at(lambda _, n: Answer(status=503) if n == 1 else "ok") as (policy, _):
        assert say(policy)[0].text == "ok"
        usage = policy.usage
        assert (usage.requests, usage.retries, usage.failures) == (2, 1, 0)


def test_the_pause_a_server_asks_for_holds_all_requests_back():
    def busy_once(message: str, number: int) -> Answer | str:
        return Answer(status=429, headers={"Retry-After": "0.4"}) if number == 1 else "ok"

    with asked_at(busy_once, workers=1) as (policy, api):
        assert [r.text for r in say(policy, "a", "b")] == ["ok", "ok"]
        assert len(api.times) == 3
        assert api.times[1] - api.times[0] >= 0.39


def test_a_pause_of_an_hour_is_not_waited_for():
    answer = Answer(status=429, headers={"Retry-After": "3600"})
    with asked_at(lambda *_: answer) as (policy, api):
        before = time.monotonic()
        assert "429" in (say(policy)[0].error or "")
        assert time.monotonic() - before < 60
        assert len(api.requests) == 1


def test_retry_after_is_seconds_or_a_date():
    soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=30), usegmt=True)
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after": soon}) == pytest.approx(30, abs=2)
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    for nothing in ("soon", "nan", "-3", ""):
        assert retry_after({"retry-after": nothing}) is None
    assert retry_after({}) is None


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(status=401), "OPENAI_API_KEY"),
        (Answer(status=402), "no balance left"),
        (Answer(status=403), "access was denied"),
        (Answer(status=404), "base URL"),
        (
            Answer(status=429, body=b'{"error": {"message": "pay", "code": "insufficient_quota"}}'),
            "quota",
        ),
    ],
    ids=["401", "402", "403", "404", "quota"],
)
def test_what_never_passes_ends_everything_at_the_first_answer(answer: Answer, says: str):
    with asked_at(lambda *_: answer, workers=1) as (policy, api):
        with pytest.raises(ApiError, match=says) as raised:
            say(policy, *"abcdef")
        assert "\n" not in str(raised.value)
        with pytest.raises(ApiError, match=says):
            say(policy)
        assert len(api.requests) == 1


def test_a_bad_request_is_not_repeated():
    with asked_at(lambda *_: Answer(status=400)) as (policy, api):
        assert "status 400: " in (say(policy)[0].error or "")
        assert len(api.requests) == 1


@pytest.mark.parametrize("trickle", [True, False])
def test_a_reply_that_does_not_end_in_time_is_given_up(trickle: bool):
    slow = Answer("x", trickle_s=0.1) if trickle else Answer("x", delay_s=30.0)
    with asked_at(lambda *_: slow, timeout_s=0.2, attempts=2) as (policy, api):
        before = time.monotonic()
        assert "in time (asked 2 times)" in (say(policy)[0].error or "")
        assert time.monotonic() - before < 10
        assert len(api.requests) == 2


def test_a_reply_cut_by_length_says_so_even_when_nothing_of_it_is_left():
    with asked_at(lambda *_: Answer("", finish_reason="length")) as (policy, _):
        (reply,) = say(policy)
        assert (reply.text, reply.finish_reason, reply.error) == ("", "length", None)


def test_where_nobody_has_ever_answered_the_address_is_wrong():
    with stub_api(lambda *_: "x") as api:
        url = api.base_url
    with (
        OpenAIPolicy("m", base_url=url, limits=ApiLimits(**QUICK)) as policy,
        pytest.raises(ApiError, match="nobody answers at http://127"),
    ):
        say(policy)


def test_a_server_elsewhere_needs_a_key(monkeypatch: pytest.MonkeyPatch):
    for url in (None, "https://api.example.com/v1"):
        with pytest.raises(UsageError, match="OPENAI_API_KEY"):
            OpenAIPolicy("m", base_url=url)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with asked_at(lambda *_: "x") as (policy, api):
        say(policy)
        assert api.keys == ["Bearer secret"]
    with pytest.raises(UsageError, match="base URL"):
        OpenAIPolicy("m", base_url="localhost:8000")


def test_what_is_abandoned_ends_at_once():
    with asked_at(lambda *_: Answer("x", delay_s=30.0)) as (policy, api):
        before = time.monotonic()
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(say, policy)
            while not api.requests:
                time.sleep(0.01)
            policy.abandon()
            with pytest.raises(CancelledError):
                asked.result()
        assert time.monotonic() - before < 20


def test_a_server_that_has_answered_once_is_not_taken_for_a_wrong_address():
    last = Answer(status=500, headers={"Connection": "close"})
    with stub_api(lambda *_: last) as api:
        policy = OpenAIPolicy("m", base_url=api.base_url, limits=ApiLimits(**QUICK))
        assert "status 500" in (say(policy)[0].error or "")
    with policy:
        assert "no connection" in (say(policy)[0].error or "")

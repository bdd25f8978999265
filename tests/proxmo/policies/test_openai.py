"""The API policy against a stub server: what is retried, what is not, and how it is counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from proxmo.errors import ApiError, UsageError
from proxmo.policies.base import ChatPolicy, Response
from proxmo.policies.openai import ApiLimits, OpenAIPolicy
from proxmo.policies.usage import Prices, Usage
from tests.fakes import Answer, StubApi, stub_api

pytest.importorskip("openai", reason="needs the extra api")

QUICK: dict[str, Any] = {"attempts": 3, "timeout_s": 60.0}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)


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


def say(policy: OpenAIPolicy, *messages: str) -> list[Response]:
    return policy.respond(messages or ("hi",), temperature=0.4, max_new_tokens=7, seed=(0,))


def test_responses_come_in_the_order_of_their_messages_whatever_the_order_they_end_in():
    def slow_first(message: str, _: int) -> Answer:
        return Answer(message.upper(), delay_s=0.1 if message == "a" else 0.0)

    with asked_at(slow_first) as (policy, api):
        assert isinstance(policy, ChatPolicy)
        responses = say(policy, "a", "b", "c")
        assert [(r.text, r.finish_reason, r.error) for r in responses] == [
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
def test_a_response_without_counts_is_counted_as_such(usage: str):
    response = '{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": %s}'
    body = (response % usage).encode()
    with asked_at(lambda *_: Answer(body=body)) as (policy, _):
        assert say(policy)[0].text == "x"
        assert policy.usage == Usage(requests=1, uncounted=1)


@pytest.mark.parametrize(
    ("trouble", "times"),
    [
        (Answer(status=500), 3),
        (Answer(status=429), 3),
        (Answer(status=408), 3),
        (Answer("fine", breaks_off=True), 3),
        (Answer(status=400), 1),
        (Answer(body=b'{"choices": [{"mess'), 1),
        (Answer(body=b"[1, 2]"), 1),
        (Answer(body=b"[" * 100_000), 1),
        (Answer(body=b'{"choices": []}'), 1),
        (Answer(body=b"<html>sorry</html>", headers={"Content-Type": "text/html"}), 1),
        (Answer(""), 1),
        (Answer(None), 1),
    ],
    ids=lambda a: (
        str(a)
        if isinstance(a, int)
        else f"{a.status}-{(a.body or a.text or b'')[:20]}{' broken off' * a.breaks_off}"
    ),
)
def test_a_failure_is_repeated_if_it_may_pass_and_ends_that_response_only(
    trouble: Answer, times: int
):
    def broken_for_b(message: str, _: int) -> Answer | str:
        return trouble if message == "b" else "fine"

    with asked_at(broken_for_b) as (policy, api):
        good, bad = say(policy, "a", "b")
        assert (good.text, good.error) == ("fine", None)
        assert bad.error
        assert sorted(api.prompts) == ["a", *["b"] * times]
        usage = policy.usage
        assert (usage.requests, usage.retries, usage.failures) == (1 + times, times - 1, 1)


def test_an_error_that_comes_with_status_200_is_told():
    answer = Answer(body=b'{"error": {"message": "provider down"}}')
    with asked_at(lambda *_: answer) as (policy, _):
        assert "provider down" in (say(policy)[0].error or "")


def test_a_server_whose_responses_all_break_off_is_no_wrong_address():
    with asked_at(lambda *_: Answer("fine", breaks_off=True)) as (policy, _):
        error = say(policy)[0].error or ""
        assert "no connection: RemoteProtocolError" in error
        assert policy.usage.failures == 1


def test_one_failure_is_forgotten_after_a_success():
    with asked_at(lambda _, n: Answer(status=503) if n == 1 else "ok") as (policy, _):
        assert say(policy)[0].text == "ok"
        usage = policy.usage
        assert (usage.requests, usage.retries, usage.failures) == (2, 1, 0)


def test_the_pause_a_server_asks_for_is_waited_for_unless_it_is_an_hour():
    def busy_once(message: str, number: int) -> Answer | str:
        return Answer(status=429, headers={"Retry-After": "0.4"}) if number == 1 else "ok"

    with asked_at(busy_once) as (policy, api):
        assert say(policy)[0].text == "ok"
        assert api.times[1] - api.times[0] >= 0.39
    for_an_hour = Answer(status=429, headers={"Retry-After": "3600"})
    with asked_at(lambda *_: for_an_hour) as (policy, api):
        before = time.monotonic()
        assert "429" in (say(policy)[0].error or "")
        assert time.monotonic() - before < 60


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
        (
            Answer(status=400, body=b'{"error": {"message": "only 1", "param": "temperature"}}'),
            "status 400: only 1",
        ),
    ],
    ids=["401", "402", "403", "404", "quota", "temperature"],
)
def test_what_never_passes_ends_everything_at_the_first_answer(answer: Answer, says: str):
    with asked_at(lambda *_: answer, workers=1) as (policy, api):
        with pytest.raises(ApiError, match=says) as raised:
            say(policy, *"abcdef")
        assert "\n" not in str(raised.value)
        with pytest.raises(ApiError, match=says):
            say(policy)
        # The client does not know the difference between no quota and too many requests.
        assert len(api.requests) == (3 if answer.status == 429 else 1)


@pytest.mark.parametrize("trickle", [True, False])
def test_a_response_that_does_not_end_in_time_is_given_up(trickle: bool):
    slow = Answer("x", trickle_s=0.1) if trickle else Answer("x", delay_s=30.0)
    with asked_at(lambda *_: slow, timeout_s=0.2, attempts=2) as (policy, api):
        before = time.monotonic()
        assert "in time" in (say(policy)[0].error or "")
        assert time.monotonic() - before < 10
        assert len(api.requests) == (1 if trickle else 2)


def test_a_response_cut_by_length_says_so_even_when_nothing_of_it_is_left():
    with asked_at(lambda *_: Answer("", finish_reason="length")) as (policy, _):
        (response,) = say(policy)
        assert (response.text, response.finish_reason, response.error) == ("", "length", None)


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

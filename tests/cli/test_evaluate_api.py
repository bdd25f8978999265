"""`proxmo eval --api` from the command line to a server and back: wins, failures, continuation."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gymnasium
import pytest

import proxmo_envs  # noqa: F401  registers the ids
from proxmo.policies.openai import ApiLimits
from tests.cli.conftest import finish, start
from tests.fakes import COUNTER, Answer, StubApi, stub_api

pytest.importorskip("openai", reason="needs the extra api")

GAMES = ("--split", "valid_unseen", "--episodes", "4")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no address, short pauses."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    limits = partial(ApiLimits, attempts=2)
    monkeypatch.setattr("proxmo.policies.openai.ApiLimits", limits)


@pytest.fixture(scope="module")
def plans() -> dict[str, list[str]]:
    """The expert's actions for the tasks of the evaluation, by what they are called."""
    from proxmo.config import EnvConfig
    from proxmo.evaluation import make_panel

    env = gymnasium.make("ALFWorld-v0", split="valid_unseen", expert_action=True)
    found = {}
    for task_id in make_panel(EnvConfig(), ["valid_unseen"], episodes=4).tasks:
        _, info = env.reset(options={"task_id": task_id})
        actions: list[str] = []
        done = False
        while not done:
            actions.append(info["expert_action"])
            *_, terminated, truncated, info = env.step(actions[-1])
            done = terminated or truncated
        found[info["task"]] = actions
    env.close()
    assert len(found) == 4, "the tasks of this panel have one name; take another panel"
    return found


def expert(plans: dict[str, list[str]]) -> Callable[[str, int], str]:
    """A model that has the expert's plan of every task by heart; reads both kinds of prompts."""

    def answer(prompt: str, _: int) -> str:
        if direct := re.search(r"Your task: (.*)\n[\s\S]*Now you choose action (\d+)", prompt):
            action = plans[direct[1]][int(direct[2]) - 1]
            assert f"\n{action}\n" in prompt
            return f"<think>As planned.</think><action>{action}</action>"
        now = prompt.rpartition("Now it is your turn.")[2]
        task = now.partition("Task: ")[2].partition("\n")[0]
        return f"Thought: As planned.\nAction: {plans[task][now.count('Action: ')]}"

    return answer


def api(server: StubApi) -> tuple[str, ...]:
    return ("eval", "--api", "gpt-test", "--base-url", server.base_url)


@pytest.mark.parametrize("agent", ["direct", "react"])
def test_a_model_that_knows_the_plan_wins_every_game(proxmo, plans, agent: str):
    with stub_api(expert(plans)) as server:
        done = proxmo(*api(server), *GAMES, "--agent", agent, "--out", "run", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    steps = sum(map(len, plans.values()))
    assert (said["wins"], said["episodes"], said["errors"]) == (4, 4, 0)
    assert said["mean_length"] == steps / 4
    assert said["invalid_action_share"] == 0
    assert len(server.requests) == steps
    words = sum(len(prompt.split()) for prompt in server.prompts)
    assert said["prompt_tokens"] == words
    (paid,) = map(json.loads, Path("run/usage.jsonl").read_text().splitlines())
    assert (paid["requests"], paid["retries"], paid["prompt_tokens"]) == (steps, 0, words)
    assert {(one["temperature"], one["max_tokens"]) for one in server.requests} == {(0.4, 512)}
    assert f"API: {steps} requests, 0 of them retries" in done.err


def test_what_failed_is_listed_apart_and_redone_by_the_same_command(proxmo, plans):
    play = expert(plans)
    broken = next(iter(plans))
    failing = True

    def answer(prompt: str, number: int) -> Answer | str:
        return Answer(status=500) if failing and broken in prompt else play(prompt, number)

    with stub_api(answer) as server:
        command = (*api(server), *GAMES, "--out", "run", "--json")
        done = proxmo(*command)
        assert done.code == 3
        said = json.loads(done.out)
        assert (said["wins"], said["episodes"], said["errors"]) == (3, 3, 1)
        assert said["error_causes"] == {"status 500: stub says 500": 1}
        first = len(server.requests)
        assert first == 2 + sum(len(a) for task, a in plans.items() if task != broken)
        failing = False
        done = proxmo(*command)
    assert done.code == 0, done.err
    assert len(server.requests) - first == len(plans[broken])
    assert json.loads(done.out)["success_rate"] == 1.0
    assert len(Path("run/usage.jsonl").read_text().splitlines()) == 2


def test_a_refused_key_ends_the_command_at_once_with_one_line(proxmo, plans):
    with stub_api(lambda *_: Answer(status=401)) as server:
        done = proxmo(*api(server), *GAMES, "--workers", "2")
        assert len(server.requests) <= 2
    assert (done.code, done.out) == (1, "")
    errors = [line for line in done.err.splitlines() if "error" in line.lower()]
    assert len(errors) == 1
    assert errors[0].startswith(f"error: {server.base_url}, model 'gpt-test': the API key was")


def test_a_directory_of_something_else_stays_as_it_is(proxmo):
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine")
    with stub_api(lambda *_: "x") as server:
        done = proxmo(*api(server), *GAMES, "--out", "mine")
    assert (done.code, server.requests) == (2, [])
    assert [path.name for path in Path("mine").iterdir()] == ["notes.txt"]


def test_prices_become_costs_that_are_not_rounded_to_nothing(proxmo):
    command = ("--env", COUNTER, "--split", "test", "--price-in", "2", "--price-out", "10")
    with stub_api(lambda *_: "<action>up</action>") as server:
        said = json.loads(proxmo(*api(server), *command, "--json").out)
        shown = proxmo(*api(server), "--env", COUNTER, "--split", "test", "--price-out", "10")
    assert (said["wins"], said["response_tokens"]) == (5, 5)
    assert said["cost"] == pytest.approx((2 * said["prompt_tokens"] + 10 * 5) / 1e6)
    assert shown.out.count("cost 0.0001") == shown.err.count("cost 0.0001") == 1


def test_a_success_of_zero_says_that_no_prompt_fitted(proxmo):
    with stub_api(lambda *_: "<action>up</action>") as server:
        done = proxmo(*api(server), *GAMES, "--prompt-tokens", "5")
    assert (done.code, server.requests) == (0, [])
    assert "4 episodes ended as lost because a prompt did not fit the token budget" in done.out


def test_reflexion_counts_its_tries(proxmo):
    def answer(prompt: str, _: int) -> str:
        if "Write a note" in prompt:
            return "Count up."
        return "Action: up" if "- Count up." in prompt else "Action: stay"

    with stub_api(answer) as server:
        done = proxmo(
            *(*api(server), "--env", COUNTER, "--split", "test", "--out", "run", "--json"),
            *("--agent", "reflexion", "--tries", "2", "--price-in", "2", "--price-out", "10"),
        )
    said = json.loads(done.out)
    assert (done.code, said["wins"]) == (0, 5)
    paid = json.loads(Path("run/usage.jsonl").read_text())
    assert said["prompt_tokens"] == paid["prompt_tokens"]
    assert said["response_tokens"] == paid["completion_tokens"]
    assert said["cost"] == pytest.approx(paid["cost"])
    rows = [json.loads(line) for line in Path("run/results.jsonl").read_text().splitlines()]
    assert [(row["tries"], row["steps"]) for row in rows] == [(2, 1)] * 5
    # Five lost steps, a note, the winning step.
    assert len(server.requests) == 5 * 7


@pytest.mark.slow
def test_ctrl_c_ends_what_is_in_flight_and_keeps_what_was_played(plans, tmp_path: Path):
    play = expert(plans)
    stuck = next(iter(plans))

    def answer(prompt: str, number: int) -> Answer | str:
        return Answer("late", delay_s=300.0) if stuck in prompt else play(prompt, number)

    with stub_api(answer) as server:
        process = start(*api(server), *GAMES, "--out", "run", cwd=tmp_path)
        results = tmp_path / "run" / "results.jsonl"
        while not (results.exists() and results.read_text().count("\n") == 3):
            assert process.poll() is None
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        done = finish(process)
    assert done.code == 3
    assert "what was played is kept in run; the same command goes on" in done.err
    assert "interrupted" in done.err and "Traceback" not in done.err

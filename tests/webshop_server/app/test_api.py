"""The JSON API, health, metrics and the log of trajectories."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.webshop_server.app.serving import application
from tests.webshop_server.small import LAMP_GOAL, shop
from webshop_server.app.store import Limits
from webshop_server.rules.records import Profile
from webshop_server.rules.text_forms import MODES

TO_THE_LAMP = ("search[desk lamp]", "click[b000000001]")


@pytest.fixture
def client(make: Callable[..., FlaskClient]) -> FlaskClient:
    return make()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., FlaskClient]]:
    with ExitStack() as stack:

        def build(profile: Profile = "clean", **options: Any) -> FlaskClient:
            return stack.enter_context(
                application(shop(profile), tmp_path, **options)
            ).test_client()

        yield build


def opened(client: FlaskClient, **body: Any) -> str:
    """Open a session for goal 0 and return its address."""
    answer = client.post("/api/sessions", json={"goal_index": 0, **body})
    assert answer.status_code == 201
    return f"/api/sessions/{answer.json['session_id']}"


def act(client: FlaskClient, path: str, action: str, **body: Any) -> dict[str, Any]:
    """Act and return the answer."""
    answer = client.post(f"{path}/actions", json={"action": action, **body})
    assert answer.status_code == 200, answer.json
    return answer.json


def error(answer: Any) -> tuple[int, str, str]:
    """Return status, code and message of an error."""
    assert set(answer.json) == {"error"}
    return answer.status_code, answer.json["error"]["code"], answer.json["error"]["message"]


def test_a_session_is_opened_by_id_by_number_or_at_random(client):
    goals = shop().goals
    for body in ({"task_id": goals.id_of(0)}, {"goal_index": 0}):
        view = client.post("/api/sessions", json=body).json
        assert view["task"].startswith(LAMP_GOAL) and view["task_id"] == goals.id_of(0)
    drawn = {client.post("/api/sessions").json["task_id"] for _ in range(40)}
    assert len(drawn) > 1


def test_looking_changes_nothing_and_gives_the_modes_asked_for(client):
    path = opened(client)
    view = client.get(f"{path}?modes=url,html").json
    assert list(view["observation"]) == ["url", "html"] and view["step"] == 0
    assert list(client.get(path).json["observation"]) == ["text"]


def test_a_closed_session_is_unknown_everywhere(client):
    path = opened(client)
    assert client.delete(path).json == {"closed": True}
    for answer in (
        client.get(path),
        client.delete(path),
        client.post(f"{path}/actions", json={"action": "search[lamp]"}),
        client.post(f"{path}/copies"),
    ):
        assert error(answer)[:2] == (404, "unknown_session")
    assert client.get("/shop/" + path.rpartition("/")[2]).status_code == 404


def test_over_the_cap_is_429_with_a_clear_text_until_one_is_closed(make):
    client = make(limits=Limits(sessions=1))
    path = opened(client)
    answer = client.post("/api/sessions")
    status, code, message = error(answer)
    assert (status, code) == (429, "shop_full") and "all 1 sessions are taken" in message
    assert int(answer.headers["Retry-After"]) > 0
    for door in ("/shop", f"{path}/copies"):
        assert client.post(door).status_code == 429
    client.delete(path)
    assert client.post("/api/sessions").status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("post", "/api/sessions", {"task_id": "synthetic/9"}, 404, "unknown goal 'synthetic/9'"),
        ("post", "/api/sessions", {"goal_index": 99999}, 404, "no goal 99999; there are"),
        ("post", "/api/sessions", {"goal_index": -1}, 404, "no goal -1"),
        ("post", "/api/sessions", {"goal_index": "1"}, 400, "a whole number, got '1'"),
        ("post", "/api/sessions", {"goal_index": True}, 400, "a whole number, got True"),
        ("post", "/api/sessions", {"task_id": 1}, 400, "task_id is a string"),
        ("post", "/api/sessions", {"task_id": "a", "goal_index": 0}, 400, "not both"),
        ("post", "/api/sessions", {"task": 1}, 400, "unknown key 'task'; known: goal_index"),
        ("post", "/api/sessions", {"modes": ["smell"]}, 400, "modes are some of text"),
        ("post", "/api/sessions", [1], 400, "has to be a JSON object"),
        ("post", "SESSION/actions", {}, 400, "action is a string such as"),
        ("post", "SESSION/actions", {"action": 7}, 400, "got 7"),
        ("post", "SESSION/actions", {"action": "x", "step": "0"}, 400, "step is a whole number"),
        ("post", "SESSION/actions", {"action": "x", "step": 4}, 409, "which is at 0"),
        ("get", "SESSION?modes=smell", None, 400, "modes are some of"),
        ("get", "/api/splits/exam", None, 404, "unknown split 'exam'"),
        ("get", "/api/splits/train?offset=-1", None, 400, "offset is a whole number from 0"),
        ("get", "/api/tasks/synthetic/9", None, 404, "unknown goal"),
        ("get", "/api/nothing", None, 404, "not found"),
        ("put", "/api/sessions", {}, 405, "not allowed"),
    ],
)
def test_a_bad_request_is_answered_by_what_came_and_what_was_expected(
    client, method, path, body, status, words
):
    path = path.replace("SESSION", opened(client))
    answer = getattr(client, method)(path, **({} if body is None else {"json": body}))
    assert error(answer)[0] == status
    assert words in error(answer)[2]


def test_broken_json_and_a_huge_body_are_refused(client):
    assert error(client.post("/api/sessions", data=b"{"))[2] == "the body has to be a JSON object"
    deep = b'{"modes": ' + b"[" * 50_000
    status, _, words = error(client.post("/api/sessions", data=deep))
    assert (status, words) == (400, "the body is nested too deeply")
    status, _, words = error(client.post("/api/sessions", data=b"x" * 300_000))
    assert (status, words) == (413, "a request holds no more than 256 kB")


def test_tasks_and_the_shop_are_described(client):
    goals = shop().goals
    facts = client.get("/api").json
    assert facts["profile"] == "clean" and facts["goals"] == "synthetic"
    assert facts["number_of_goals"] == len(goals) and facts["modes"] == list(MODES)
    assert facts["splits"] == {n: len(goals.split(n)) for n in ("train", "validation", "test")}
    split = next(name for name, count in facts["splits"].items() if count > 1)
    first, rest = (client.get(f"/api/splits/{split}?{q}").json for q in ("limit=1", "offset=1"))
    assert first["task_ids"] + rest["task_ids"] == [goals.id_of(i) for i in goals.split(split)]
    task = client.get(f"/api/tasks/{goals.id_of(0)}").json
    assert task["task"] == goals[0].instruction and len(task["content_hash"]) == 64


def test_a_failure_of_ours_is_a_500_without_its_insides(make, monkeypatch, caplog):
    client = make()
    path = opened(client)
    monkeypatch.setattr("webshop_server.session.Session.act", lambda *_: 1 / 0)
    status, code, message = error(client.post(f"{path}/actions", json={"action": "search[x]"}))
    assert (status, code) == (500, "internal_error") and "division" not in message
    assert "ZeroDivisionError" in caplog.text


def test_health_counts_sessions_and_metrics_count_what_happened(client):
    path = opened(client)
    act(client, path, "search[desk lamp]")
    act(client, path, "click[nonsense]")
    act(client, path, "click[b000000001]")
    act(client, path, "click[buy now]")
    assert client.get("/health").json == {
        "status": "ok",
        "sessions": 1,
        "products": 25,
        "profile": "clean",
    }
    client.delete(path)
    numbers = dict(
        line.rsplit(" ", 1)
        for line in client.get("/metrics").text.splitlines()
        if not line.startswith("#")
    )
    assert numbers["webshop_sessions_started_total"] == "1.0"
    assert numbers["webshop_sessions_closed_total"] == "1.0"
    assert numbers["webshop_sessions_open"] == "0.0"
    assert numbers["webshop_actions_total"] == "3.0"
    assert numbers["webshop_actions_invalid_total"] == "1.0"
    assert numbers["webshop_purchase_score_count"] == "1.0"
    route = '{route="/api/sessions/<token>/actions",status="200"}'
    assert numbers[f"webshop_request_seconds_count{route}"] == "4.0"


def test_trajectories_are_written_on_request_a_file_for_each_session(make, tmp_path):
    def written(session: str) -> list[str]:
        return (tmp_path / "log" / f"{session}.jsonl").read_text("utf-8").splitlines()

    client = make(log=tmp_path / "log")
    path = opened(client)
    act(client, path, "search[desk lamp]")
    act(client, path, "click[b000000001]")
    act(client, path, "click[buy now]")
    twin = client.post(f"{path}/copies").json["session_id"]
    token = path.rpartition("/")[2]
    lines = [json.loads(line) for line in written(token)]
    assert [line["event"] for line in lines] == ["start", "action", "action", "action"]
    assert lines[0]["task"].startswith(LAMP_GOAL) and lines[0]["profile"] == "clean"
    assert [line["action"] for line in lines[1:3]] == list(TO_THE_LAMP)
    assert lines[3]["done"] is True and lines[3]["score"]["r_type"] == 1.0
    assert lines[1]["page"].startswith("Instruction: [SEP]")
    (copied,) = written(twin)
    assert json.loads(copied)["copy_of"] == token
    assert len(list((tmp_path / "log").iterdir())) == 2


def test_half_characters_of_a_query_break_neither_log_nor_page(make, tmp_path):
    client = make(log=tmp_path)
    path = opened(client)
    assert act(client, path, "search[lamp \ud800]")["valid"]
    (log,) = tmp_path.glob("*.jsonl")
    assert json.loads(log.read_text("utf-8").splitlines()[-1])["action"] == "search[lamp \ud800]"
    assert "lamp ?" in client.get(f"/shop/{log.stem}").text

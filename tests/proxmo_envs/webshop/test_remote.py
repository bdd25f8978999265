"""WebShop-v0 on a server: the same episodes as in process, and clear errors when it is gone."""

from __future__ import annotations

import copy
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import proxmo_envs  # noqa: F401
from proxmo_envs.errors import InvalidOptionError, ServerError, UnknownTaskError
from proxmo_envs.webshop.env import WebShopEnv
from tests.webshop_server.app.serving import served
from webshop_server.app.store import Limits
from webshop_server.rules.text_forms import MODES
from webshop_server.shop import Shop


@pytest.fixture(scope="module", params=["clean", "original"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Any, str]]:
    """Address, application and profile of a server of the small bundled catalogue."""
    shop = Shop.open(difficulty="small", profile=request.param)
    with served(shop, tmp_path_factory.mktemp("server")) as (address, app):
        yield address, app.extensions["webshop"].sessions, request.param


def pair(server: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Return an environment on the server and one in process."""
    address, _, profile = server
    kwargs = {"profile": profile, "split": "test", **kwargs}
    return (
        gymnasium.make("WebShop-v0", base_url=address, **kwargs),
        gymnasium.make("WebShop-v0", difficulty="small", **kwargs),
    )


@pytest.mark.parametrize("mode", MODES)
def test_episodes_are_the_same_as_in_process_in_every_mode(server, mode):
    remote, local = pair(server, observation_mode=mode, num_prev_obs=1, num_prev_actions=2)
    rng = np.random.default_rng(0)
    for seed in range(3):
        there, here = remote.reset(seed=seed), local.reset(seed=seed)
        assert there == here
        while len(here) == 2 or not (here[2] or here[3]):
            action = str(rng.choice([*here[-1]["admissible_actions"], "click[nothing]"]))
            there, here = remote.step(action), local.step(action)
            assert there == here
    remote.close()


def test_the_expert_plays_the_same_to_a_score_with_its_parts(server):
    remote, local = pair(server, observation_mode="text_rich", expert_action=True)
    there, here = remote.reset(seed=1), local.reset(seed=1)
    while not (len(here) == 5 and here[2]):
        action = here[-1]["expert_action"]
        there, here = remote.step(action), local.step(action)
        assert there == here
    assert here[1] == 1.0 and there[-1]["reward_parts"]["r_type"] == 1.0
    remote.close()


def test_splits_and_hashes_of_tasks_are_those_in_process(server):
    address, _, profile = server
    for split in ("train", "test"):
        there = WebShopEnv.task_set(split, base_url=address, profile=profile)
        here = WebShopEnv.task_set(split, difficulty="small", profile=profile)
        assert there.ids == here.ids
    assert [there[0], there[-1]] == [here[0], here[-1]]


def test_as_many_environments_as_the_server_has_sessions_start_again_and_again(tmp_path: Path):
    with served(Shop.open(difficulty="small"), tmp_path, Limits(sessions=2)) as (address, app):
        envs = [WebShopEnv(base_url=address) for _ in range(2)]
        for _ in range(3):
            assert all(env.reset(seed=0)[1]["task_id"] for env in envs)
        with pytest.raises(UnknownTaskError):
            envs[0].reset(options={"task_id": "synthetic/x"})
        assert app.extensions["webshop"].sessions.count() == 2
        for env in envs:
            env.close()


def test_a_snapshot_is_a_session_of_its_own(server):
    remote, _ = pair(server)
    env = remote.unwrapped
    before = server[1].count()
    remote.reset(seed=0)
    product = remote.step("search[lamp]")[4]["admissible_actions"][-1]
    snapshot = env.snapshot()
    forward = remote.step(product)[0]
    assert env.restore(snapshot)[0] != forward
    assert remote.step(product)[0] == forward
    twin = copy.deepcopy(env)
    twin.step("click[back to search]")
    assert env._now().play.observe() == forward
    del snapshot
    twin.close()
    remote.close()
    assert server[1].count() == before


def test_the_task_asked_for_is_played_and_an_unknown_one_is_an_error(server):
    remote, local = pair(server)
    for options in ({"goal_index": 7}, {"task_id": "synthetic/0000007"}):
        assert remote.reset(options=options) == local.reset(options=options)
    with pytest.raises(UnknownTaskError, match="there are"):
        remote.reset(options={"task_id": "synthetic/x"})
    with pytest.raises(UnknownTaskError, match="99999"):
        remote.reset(options={"goal_index": 99999})
    # The episode goes on.
    assert remote.step("search[x]") == local.step("search[x]")
    remote.close()


def test_another_profile_than_the_servers_is_refused_with_both_ways_out(server):
    address, _, profile = server
    wanted = "original" if profile == "clean" else "clean"
    with pytest.raises(InvalidOptionError, match=f"profile='{profile}', or serve with --profile"):
        WebShopEnv(base_url=address, profile=wanted)
    with pytest.raises(InvalidOptionError, match="goals='synthetic', not 'human'"):
        WebShopEnv(base_url=address, profile=profile, goals="human")
    with pytest.raises(InvalidOptionError, match="unknown split 'exam'"):
        WebShopEnv(base_url=address, profile=profile, split="exam")


def test_what_the_server_decides_is_refused(server):
    address, _, profile = server
    for kwargs in ({"data": "x"}, {"difficulty": "small"}, {"show_attributes": True}):
        with pytest.raises(InvalidOptionError, match=f"{next(iter(kwargs))} is for the server"):
            WebShopEnv(base_url=address, profile=profile, **kwargs)


def test_many_environments_step_on_one_server_which_closes_their_sessions(server):
    address, sessions, profile = server
    before = sessions.count()
    envs = gymnasium.make_vec(
        "WebShop-v0", num_envs=5, split="test", base_url=address, profile=profile
    )
    for _ in range(2):
        envs.reset(seed=0)
        assert sessions.count() == before + 5, "each reset closes the session before"
    _, _, _, _, infos = envs.step(["search[lamp]"] * 5)
    assert infos["action_valid"].all()
    envs.close()
    assert sessions.count() == before


@pytest.mark.parametrize(
    "address", ["localhost:3000", "ftp://x", "http://", "", "http://h:port", "http://h:99999"]
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises((InvalidOptionError, ServerError)):
        WebShopEnv(base_url=address)


def test_nobody_at_the_address_is_an_error_that_says_what_to_start():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ServerError, match="is `proxmo webshop serve` running there"):
        WebShopEnv(base_url=address)


def test_a_server_of_something_else_is_an_error():
    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        with pytest.raises(ServerError, match="not as `proxmo webshop serve` does: b'hello'"):
            WebShopEnv(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()


def test_a_server_that_does_not_answer_is_given_up(monkeypatch):
    monkeypatch.setattr("proxmo_envs.webshop.connection._TIMEOUT_S", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(ServerError, match="TimeoutError"),
    ):
        WebShopEnv(base_url=f"http://127.0.0.1:{silent.getsockname()[1]}")


def test_a_server_that_forgets_the_session_is_full_or_ends_is_an_error_not_a_crash(tmp_path: Path):
    shop = Shop.open(difficulty="small")
    with served(shop, tmp_path, Limits(sessions=2)) as (address, app):
        sessions = app.extensions["webshop"].sessions
        env, other, third = (gymnasium.make("WebShop-v0", base_url=address) for _ in range(3))
        env.reset(seed=0)
        sessions.limits = Limits(2, idle_s=0)
        with pytest.raises(ServerError, match=r"answers 404: .* idle for 0 s"):
            env.step("search[lamp]")
        sessions.limits = Limits(2, idle_s=1000)
        other.reset(seed=0)
        with pytest.raises(ServerError, match="answers 429: the shop is full"):
            third.reset(seed=0)
    with pytest.raises(ServerError, match="no answer from the shop"):
        env.step("search[lamp]")
    for one in (env, other, third):
        one.close()


def test_a_connection_the_server_closed_is_opened_again(tmp_path: Path):
    with served(Shop.open(difficulty="small"), tmp_path) as (address, _):
        env = gymnasium.make("WebShop-v0", base_url=address)
        env.reset(seed=0)
        play = env.unwrapped._now().play
        play._shop.connection._http.sock.shutdown(socket.SHUT_RDWR)
        assert env.step("search[lamp]")[4]["action_valid"] is True
        env.close()

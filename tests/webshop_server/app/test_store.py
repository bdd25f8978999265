"""The store of sessions: whole, separate, bounded, and the same for every process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.webshop_server.small import shop
from webshop_server.app.errors import UnknownSessionError
from webshop_server.app.store import Limits, Sessions
from webshop_server.session import Session


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Sessions]]:
    made: list[Sessions] = []

    def build(profile: str = "clean", cap: int = 1000, idle_s: float = 60) -> Sessions:
        where = shop(profile)  # type: ignore[arg-type]
        made.append(Sessions(where, tmp_path / "s.sqlite", Limits(cap, idle_s), clock=clock))
        return made[-1]

    yield build
    for sessions in made:
        sessions.disconnect()


WALK = (
    "search[desk lamp]",
    "click[next >]",
    "click[< prev]",
    "click[b000000001]",
    "click[white]",
    "click[features]",
    "click[nonsense]",
    "click[< prev]",
    "click[buy now]",
    "search[<r>]",
    "search[<r>]",
)
# After the purchase "clean" is closed; "original" draws random products.
DO_NOTHING = ("click[nonsense]", WALK[-1])


@pytest.mark.parametrize("profile", ["clean", "original"])
def test_a_session_read_back_after_every_step_goes_as_one_kept_in_memory(make, profile):
    sessions = make(profile)
    kept = Session(sessions.shop, sessions.shop.goals[0], "0")
    token = sessions.create(0)
    for number, action in enumerate(WALK, 1):
        outcome, _, step = sessions.act(token, action)
        stored, _ = sessions.read(token)
        assert outcome == kept.act(action) and step == number
        assert outcome.valid or action in DO_NOTHING
        assert stored.page == kept.page and stored.state == kept.state
        assert stored.admissible == kept.admissible


def test_every_process_that_opens_the_file_sees_the_same_session(make):
    one, other = make(), make()
    token = one.create(0)
    one.act(token, "search[lamp]")
    assert other.read(token)[0].page == one.read(token)[0].page
    other.close(token)
    with pytest.raises(UnknownSessionError):
        one.read(token)


def test_the_shop_itself_is_not_in_what_is_stored(make):
    sessions = make()
    token = sessions.create(0)
    sessions.act(token, "search[lamp]")
    (row,) = sessions._run("SELECT state FROM session")[0]
    assert len(row[0]) < 3000
    assert b"Desk Lamp" not in row[0]


def test_abandoned_sessions_are_gone_after_the_idle_time_and_make_room(make, clock):
    sessions = make(cap=300, idle_s=60)
    tokens = [sessions.create(0) for _ in range(300)]
    clock.now += 59
    assert sessions.count() == 300
    clock.now += 1
    assert sessions.count() == 0
    with pytest.raises(UnknownSessionError, match="idle for 60 s"):
        sessions.read(tokens[0])
    with pytest.raises(UnknownSessionError):
        sessions.act(tokens[1], "search[lamp]")
    sessions.create(0)
    assert sessions._run("SELECT COUNT(*) FROM session")[0] == [(1,)]


def test_a_session_that_is_read_or_played_stays(make, clock):
    sessions = make(idle_s=60)
    read, played, left = (sessions.create(0) for _ in range(3))
    for _ in range(3):
        clock.now += 50
        sessions.read(read)
        sessions.act(played, "search[lamp]")
    assert sessions.count() == 2
    with pytest.raises(UnknownSessionError):
        sessions.read(left)


def test_actions_at_the_same_time_all_count_and_none_is_lost(make):
    sessions = make()
    token = sessions.create(0)
    sessions.act(token, "search[lamp]")
    turns = ["click[next >]", "click[< prev]"] * 20

    def act(action: str) -> bool:
        return sessions.act(token, action)[0].valid

    with ThreadPoolExecutor(8) as pool:
        valid = list(pool.map(act, turns))
    session, step = sessions.read(token)
    forth = sum(valid[0::2])
    back = sum(valid[1::2])
    assert step == 1 + len(turns)
    assert session.page.number == 1 + forth - back
    assert session.state.actions["search"] == 1 + forth + back


def test_nobody_else_can_guess_a_session(make):
    sessions = make()
    tokens = {sessions.create(0) for _ in range(20)}
    assert len(tokens) == 20 and all(len(token) == 32 for token in tokens)

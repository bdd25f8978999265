"""Open, play and close sessions, for pages and API alike; count and log each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from webshop_server.app.errors import RequestError, UnknownTaskError
from webshop_server.app.metrics import Metrics
from webshop_server.app.store import Sessions
from webshop_server.app.trajectories import TrajectoryLog
from webshop_server.errors import UnknownGoalError
from webshop_server.rules.goals import Goals
from webshop_server.session import ActionResult, Session


@dataclass(frozen=True, slots=True)
class Desk:
    """Serves the shoppers of one server.

    Attributes:
        sessions: the open sessions.
        metrics: counts sessions, actions and scores.
        log: writes trajectories.
        rng: draws tasks for shoppers who name none.
    """

    sessions: Sessions
    metrics: Metrics
    log: TrajectoryLog
    rng: np.random.Generator

    @property
    def goals(self) -> Goals:
        """All tasks."""
        return self.sessions.shop.goals

    def draw(self, number: int = 1) -> list[int]:
        """Return the numbers of up to `number` different random goals, of the test split if any."""
        numbers = self.goals.split("test") or range(len(self.goals))
        count = min(number, len(numbers))
        places = self.rng.choice(len(numbers), size=count, replace=False)
        return [int(numbers[int(place)]) for place in places]

    def goal(self, task_id: object = None, goal_index: object = None) -> int:
        """Return the number of the goal with this id or number; of a random one without either.

        Raises:
            RequestError: both are given, or one is not of its type.
            UnknownTaskError: there is no such goal.
        """
        if task_id is not None and goal_index is not None:
            raise RequestError("give task_id or goal_index, not both")
        if isinstance(task_id, str):
            try:
                return self.goals.index_of(task_id)
            except UnknownGoalError as error:
                raise UnknownTaskError(str(error)) from error
        if task_id is not None:
            raise RequestError(f"task_id is a string, got {task_id!r:.100}")
        if goal_index is None:
            return self.draw()[0]
        if not isinstance(goal_index, int) or isinstance(goal_index, bool):
            raise RequestError(f"goal_index is a whole number, got {goal_index!r:.100}")
        if not 0 <= goal_index < len(self.goals):
            raise UnknownTaskError(
                f"no goal {goal_index!s:.20}; there are {len(self.goals)}, from 0"
            )
        return goal_index

    def open(self, goal: int) -> str:
        """Open a session for the goal with this number; raises `ShopFullError`."""
        token = self.sessions.create(goal)
        self.metrics.started.inc()
        self.log.start(token, self.sessions.read(token)[0])
        return token

    def copy(self, token: str) -> str:
        """Open a session at the same moment as another; raises as `read` and `open` do."""
        twin = self.sessions.copy(token)
        self.metrics.started.inc()
        self.log.start(twin, self.sessions.read(twin)[0], copy_of=token)
        return twin

    def act(
        self, token: str, action: str, expected_step: int | None = None
    ) -> tuple[ActionResult, Session, int]:
        """Carry out an action; returns and raises as `Sessions.act`."""
        result, session, step = self.sessions.act(token, action, expected_step)
        (self.metrics.actions if result.valid else self.metrics.invalid).inc()
        if result.score is not None:
            self.metrics.scores.observe(result.score.total)
        self.log.act(token, step, action, result, session)
        return result, session, step

    def close(self, token: str) -> None:
        """Close a session; raises `UnknownSessionError`."""
        self.sessions.close(token)
        self.metrics.closed.inc()

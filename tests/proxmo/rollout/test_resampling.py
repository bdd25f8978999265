"""Groups that teach nothing make way for fresh tasks, up to a cap."""

from __future__ import annotations

from proxmo.rollout.resampling import flat_groups, replace_flat_groups
from proxmo.types import Episode, Outcome, Step


def episode(group: int, member: int, reward: float, task: str, outcome: str = "lost") -> Episode:
    step = Step(0, "", (), (), (), "", "", True, "ok", reward, 0)
    return Episode(group, member, task, "kind", "", (step,), Outcome(outcome))


def group(number: int, rewards: list[float], task: str) -> list[Episode]:
    return [episode(number, member, reward, task) for member, reward in enumerate(rewards)]


def test_a_group_is_flat_when_its_finished_episodes_have_one_return():
    played = [
        *group(0, [1.0, 1.0], "a"),
        *group(1, [0.0, 1.0], "b"),
        *group(2, [0.1 + 0.2, 0.3], "c"),
        episode(3, 0, 1.0, "d"),
        episode(3, 1, 0.0, "d", "error"),
    ]
    assert flat_groups(played) == [0, 2, 3]


def test_flat_groups_are_replaced_under_their_numbers_until_the_rounds_are_over():
    asked = []

    def play(tasks: int, number: int) -> list[Episode]:
        asked.append((tasks, number))
        # The first of the fresh groups is flat again.
        fresh = [group(g, [0.0, float(g > 0)], f"{number}.{g}") for g in range(tasks)]
        return [e for one in fresh for e in one]

    played = [*group(0, [1, 1], "a"), *group(1, [0, 1], "b"), *group(2, [0, 0], "c")]
    kept, replaced = replace_flat_groups(played, play, rounds=2)
    assert asked == [(2, 1), (1, 2)] and replaced == 3
    assert [(e.group, e.task_id) for e in kept[::2]] == [(0, "2.0"), (1, "b"), (2, "1.1")]
    assert [e.member for e in kept] == [0, 1, 0, 1, 0, 1]


def test_without_rounds_or_need_nothing_is_played():
    def play(tasks: int, number: int) -> list[Episode]:
        raise AssertionError("nobody asked for this")

    flat, varied = group(0, [1, 1], "a"), group(0, [0, 1], "a")
    assert replace_flat_groups(flat, play, rounds=0) == (flat, 0)
    assert replace_flat_groups(varied, play, rounds=3) == (varied, 0)

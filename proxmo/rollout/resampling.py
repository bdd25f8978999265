"""Dynamic sampling (DAPO, arXiv 2503.14476): groups that teach nothing make way for fresh tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from proxmo.types import Episode, Outcome


def flat_groups(episodes: Sequence[Episode]) -> list[int]:
    """The groups whose finished episodes all have the same return, in order."""
    returns: dict[int, set[float]] = {}
    for episode in episodes:
        known = returns.setdefault(episode.group, set())
        if episode.outcome is not Outcome.ERROR:
            known.add(round(episode.episode_return, 9))
    return [group for group, known in sorted(returns.items()) if len(known) < 2]


def replace_flat_groups(
    episodes: Sequence[Episode],
    play: Callable[[int, int], list[Episode]],
    *,
    rounds: int,
) -> tuple[list[Episode], int]:
    """Plays fresh tasks in the place of groups without variance.

    Args:
        episodes: what was played.
        play: `play(n, round)` plays n fresh tasks; their groups count from 0.
        rounds: how often what is still flat is replaced; what is flat after the last round stays.

    Returns:
        The episodes by (group, member), and how many groups were replaced.
    """
    current = list(episodes)
    replaced = 0
    for number in range(1, rounds + 1):
        flat = flat_groups(current)
        if not flat:
            break
        fresh = [dataclasses.replace(e, group=flat[e.group]) for e in play(len(flat), number)]
        current = [e for e in current if e.group not in set(flat)] + fresh
        replaced += len(flat)
    return sorted(current, key=lambda e: (e.group, e.member)), replaced

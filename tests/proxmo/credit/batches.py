"""Small batches of steps for the tests of credit assignment."""

from __future__ import annotations

from typing import Any

import numpy as np


def single_steps(returns: list[float], *, group: list[int] | None = None, **others: Any) -> dict:
    """Episodes of one step, so that returns are rewards; a positive one is a success."""
    size = len(returns)
    batch = {
        "group": group if group is not None else [0] * size,
        "episode": list(range(size)),
        "step": [0] * size,
        "reward": np.array(returns, dtype=float),
        "success": np.array(returns) > 0,
        "state": ["the same place"] * size,
        "action": ["look"] * size,
    }
    return batch | others


def random_batch(
    rng: np.random.Generator, *, groups: int = 3, episodes: int = 4, steps: int = 6, states: int = 5
) -> dict:
    """Episodes of random length in random order, with few distinct states."""
    columns: dict[str, list] = {name: [] for name in ("group", "episode", "step", "reward")}
    success, state, action = [], [], []
    for group in range(groups):
        for episode in range(episodes):
            length = int(rng.integers(1, steps + 1))
            won = bool(rng.random() < 0.5)
            for step in range(length):
                columns["group"].append(f"task {group}")
                columns["episode"].append((group, episode))
                columns["step"].append(step)
                invalid = 0.1 * float(rng.random() < 0.2)
                columns["reward"].append(float(won and step == length - 1) - invalid)
                success.append(won)
                state.append(f"you are at shelf {rng.integers(states)} and see a mug")
                action.append(f"go to shelf {rng.integers(3)}")
    batch = columns | {"success": success, "state": state, "action": action}
    return reorder(batch, rng.permutation(len(state)))


def reorder(batch: dict, order: Any) -> dict:
    """The same rows in another order (or a selection of them)."""
    taken = {name: [values[row] for row in order] for name, values in batch.items()}
    return taken | {"reward": np.array(taken["reward"], dtype=float)}

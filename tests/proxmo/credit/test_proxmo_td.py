"""ProxMO-TD and its relatives, by hand; penalties, scales and ends that are none."""

import numpy as np
import pytest

from proxmo import credit
from proxmo.errors import ConfigError, DataError
from tests.proxmo.credit.batches import random_batch, single_steps

TD = ["proxmo-td", "proxmo-td-ridge", "proxmo-td-smooth"]


def two_episodes(**others):
    """A win and a loss that part in the hall: the win goes to the shelf, the loss to the sink."""
    columns = {
        "episode": [0, 0, 1, 1],
        "step": [0, 1, 0, 1],
        "reward": np.array([0.0, 1.0, 0.0, 0.0]),
        "success": [True, True, False, False],
        "state": np.array([[1.0, 0, 0], [0, 1.0, 0], [1.0, 0, 0], [0, 0, 1.0]]),
        "action": ["to shelf", "take", "to sink", "look"],
    }
    return single_steps([0.0] * 4) | columns | others


def test_a_step_is_credited_with_the_change_of_the_value_it_brings():
    # V from the other episode alone, tau -> 0. In the hall its hall: 0 for the win, gamma for the
    # loss. Elsewhere both states are equally far: gamma/2 + 1/2 for the loss, 0 for the win.
    out = credit.assign("proxmo-td", **two_episodes(), lam=0.0, tau=1e-6, gamma=0.5)
    # delta = r + gamma V' - V: 0 - 0, 1 - 0; gamma * 3/4 - 1/2, 0 - 3/4.
    np.testing.assert_allclose(out.step_advantage, [0.0, 1.0, -0.125, -0.75], atol=1e-9)
    whole = credit.assign("proxmo-td", **two_episodes(), lam=1.0, tau=1e-6, gamma=0.5)
    # With lambda 1 the values between cancel: G - V.
    np.testing.assert_allclose(whole.step_advantage, [0.5, 1.0, -0.5, -0.75], atol=1e-9)


def test_the_end_of_a_truncated_episode_is_worth_the_value_of_its_last_state():
    batch = two_episodes(truncated=[False, False, True, True])
    out = credit.assign("proxmo-td", **batch, lam=0.0, tau=1e-6, gamma=0.5)
    # The last delta of the loss: gamma * 3/4 - 3/4, where the end of the game would give -3/4.
    np.testing.assert_allclose(out.step_advantage, [0.0, 1.0, -0.125, -0.375], atol=1e-9)
    one_flag = credit.assign(
        "proxmo-td", **batch | {"truncated": [0, 0, 0, 1]}, lam=0.0, tau=1e-6, gamma=0.5
    )
    np.testing.assert_array_equal(one_flag.advantage, out.advantage)


def test_a_win_at_the_limit_is_a_real_end():
    won = two_episodes(truncated=[True, True, False, False])
    expected = credit.assign("proxmo-td", **two_episodes()).advantage
    np.testing.assert_array_equal(credit.assign("proxmo-td", **won).advantage, expected)


def test_values_of_a_critic_go_on_behind_a_step_limit():
    batch = single_steps([0.0], truncated=[True])
    found = credit.assign("gae", **batch, value=[2.0], gamma=0.5, whiten=False).advantage
    assert found.tolist() == [-1.0]
    assert credit.assign("grpo", **two_episodes(truncated=[True] * 4)).advantage.any()


@pytest.mark.parametrize("method", TD)
def test_the_episode_part_is_that_of_proxmo_and_its_weight_may_be_0(method):
    batch = random_batch(np.random.default_rng(0))
    out = credit.assign(method, **batch)
    proxmo = credit.assign("proxmo", **batch)
    np.testing.assert_allclose(out.episode_advantage, proxmo.episode_advantage)
    np.testing.assert_allclose(out.advantage, out.episode_advantage + out.step_advantage)
    alone = credit.assign(method, **batch, episode_weight=0.0, omega=2.0)
    np.testing.assert_allclose(alone.advantage, 2 * out.step_advantage)


@pytest.mark.parametrize("method", TD)
def test_where_there_is_nothing_to_compare_there_is_no_credit(method):
    alone = single_steps([0.0, 1.0], episode=[0, 0], step=[0, 1], success=[True, True])
    assert (credit.assign(method, **alone).advantage == 0).all()
    lost = random_batch(np.random.default_rng(0))
    lost |= {"reward": np.zeros(len(lost["step"])), "success": [False] * len(lost["step"])}
    out = credit.assign(method, **lost)
    assert (out.advantage == 0).all() and out.diagnostics["credit/zero_advantage_share"] == 1.0


def test_the_average_over_like_steps_gives_equal_tries_equal_credit():
    batch = random_batch(np.random.default_rng(1))
    batch |= {"state": ["hall"] * len(batch["step"]), "action": ["go"] * len(batch["step"])}
    out = credit.assign("proxmo-td-smooth", **batch)
    ridge = credit.assign("proxmo-td-ridge", **batch)
    for group in set(batch["group"]):
        rows = np.array(batch["group"]) == group
        np.testing.assert_allclose(
            out.step_advantage[rows], ridge.step_advantage[rows].mean(), atol=1e-9
        )


def test_what_cannot_be_smoothed_or_regressed_is_one_line(monkeypatch):
    from proxmo.credit import proxmo_td_ridge

    with pytest.raises(DataError, match="action is None; proxmo-td-smooth needs the action"):
        credit.assign("proxmo-td-smooth", **two_episodes(action=None))
    # An action that could not be read is none.
    credit.assign("proxmo-td-smooth", **two_episodes(action=["go", None, "go", "look"]))
    with pytest.raises(DataError, match="action 1 is 3; expected strings"):
        credit.assign("proxmo-td-smooth", **two_episodes(action=["go", 3, "go", "look"]))
    monkeypatch.setattr(proxmo_td_ridge, "_MOST_STEPS", 3)
    with pytest.raises(ConfigError, match="a task has 4 steps; .*choose proxmo-td"):
        credit.assign("proxmo-td-ridge", **two_episodes())


def test_a_penalty_is_taken_off_the_step_itself_and_no_other():
    batch = random_batch(np.random.default_rng(2))
    penalty = np.zeros(len(batch["step"]))
    penalty[[0, 5]] = 0.1
    for method in ("grpo", "gigpo", "proxmo", "proxmo-td"):
        plain, out = (credit.assign(method, **batch, penalty=one) for one in (None, penalty))
        np.testing.assert_allclose(out.advantage, plain.advantage - penalty, atol=1e-12)
        np.testing.assert_array_equal(out.step_return, plain.step_return)
    told = out.explain(5)
    parts = told.episode_advantage + told.omega * told.step_advantage - told.penalty
    assert told.penalty == 0.1 and told.advantage == pytest.approx(parts)
    with pytest.raises(DataError, match="penalty has 1 entries"):
        credit.assign("grpo", **batch, penalty=[0.1])


def test_a_reward_scale_weighs_the_step_part_as_a_larger_reward_would():
    batch = random_batch(np.random.default_rng(3))
    paid = batch | {"reward": 10 * batch["reward"]}
    for method in ("proxmo", "proxmo-td", "proxmo-td-ridge", "gigpo"):
        expected = credit.assign(method, **paid)
        found = credit.assign(method, **batch, reward_scale=10.0)
        np.testing.assert_allclose(found.advantage, expected.advantage, atol=1e-4)
        np.testing.assert_allclose(found.step_return, expected.step_return)
    for method in ("grpo", "dr_grpo", "rloo"):
        expected = credit.assign(method, **batch).advantage
        found = credit.assign(method, **batch, reward_scale=10.0).advantage
        np.testing.assert_array_equal(found, expected)
    # The published code divides nothing by a deviation: both parts grow.
    expected = credit.assign("proxmo-released", **paid).advantage
    found = credit.assign("proxmo-released", **batch, reward_scale=10.0).advantage
    np.testing.assert_allclose(found, expected, atol=1e-9)
    for wrong in (0.0, -1.0, float("inf"), float("nan"), "ten"):
        with pytest.raises(ConfigError, match="reward_scale is"):
            credit.assign("grpo", **batch, reward_scale=wrong)


@pytest.mark.parametrize(("scale", "share"), [(1.0, 0.12), (10.0, 0.93)])
def test_the_scale_decides_the_share_of_the_step_part(scale, share):
    # 8 episodes of 20 steps over 12 shelves, 4 of them won at the last step.
    rng = np.random.default_rng(0)
    won = np.arange(8) < 4
    reward = np.zeros(160)
    reward[19::20] = won
    batch = {
        "group": [0] * 160,
        "episode": np.repeat(np.arange(8), 20),
        "step": np.tile(np.arange(20), 8),
        "success": np.repeat(won, 20),
        "state": [f"You arrive at shelf {one}." for one in rng.integers(0, 12, 160)],
    }
    for paid in ({"reward": scale * reward}, {"reward": reward, "reward_scale": scale}):
        found = credit.assign("proxmo", **batch, **paid).diagnostics["credit/step_share"]
        assert found == pytest.approx(share, abs=0.005)


def corridor_walks(rng, tasks=12, episodes=8, cells=7, gamma=0.95):
    """Random walks from the middle of a corridor, won at its right end; true advantages beside."""
    # V of a cell: gamma times the mean of its neighbours, where the right end pays 1 on arrival.
    inner = np.arange(1, cells - 1)
    system = np.eye(cells - 2) - gamma / 2 * (np.eye(cells - 2, k=1) + np.eye(cells - 2, k=-1))
    value = np.zeros(cells)
    value[inner] = np.linalg.solve(system, 0.5 * (inner == cells - 2))
    rows, truth = [], []
    for task in range(tasks):
        for episode in range(episodes):
            walk = [cells // 2]
            while 0 < walk[-1] < cells - 1:
                walk.append(walk[-1] + int(rng.choice([-1, 1])))
            for step, (here, there) in enumerate(zip(walk[:-1], walk[1:], strict=True)):
                reward = float(there == cells - 1)
                way = "right" if there > here else "left"
                won = walk[-1] == cells - 1
                rows.append((task, episode, step, reward, won, f"cell {here}", f"go {way}"))
                truth.append(reward + gamma * value[there] - value[here])
    names = ("group", "episode", "step", "reward", "success", "state", "action")
    batch = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return batch | {"reward": np.array(batch["reward"])}, np.array(truth)


def test_credit_of_the_td_family_is_nearer_to_the_truth_where_that_is_known():
    batch, truth = corridor_walks(np.random.default_rng(0))
    elsewhere = batch["reward"] == 0  # the winning step is found by anything

    def cosine(method):
        found = credit.assign(method, **batch).step_advantage[elsewhere]
        true = truth[elsewhere]
        return found @ true / np.sqrt((found @ found) * (true @ true))

    found = {method: cosine(method) for method in ("gigpo", "proxmo", *TD)}
    assert found["proxmo-td"] > max(found["proxmo"], found["gigpo"]) + 0.1, found
    assert found["proxmo-td-smooth"] > found["proxmo-td-ridge"] > found["proxmo"] + 0.1, found

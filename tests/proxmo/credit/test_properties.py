"""What holds for every batch, whatever is in it."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxmo import credit
from tests.proxmo.credit.batches import reorder, single_steps

# Options that have a number for each row.
PER_ROW = {"gae": ("value",), "ppo": ("value",)}
# Every method with its defaults, and the options that go through states one by one or pick some.
CASES = [
    *((name, {}) for name in credit.method_names()),
    ("gae", {"whiten": False}),
    ("gigpo", {"similarity": 0.6}),
    ("gigpo", {"similarity": 0.6, "matcher": "tfidf"}),
    ("gigpo", {"similarity": 0.6, "matcher": "hash", "history": 0.5}),
    ("proxmo", {"scope": "batch"}),
    ("proxmo", {"top_k": 2}),
    ("proxmo", {"top_k": 1, "exclude": "self", "scope": "batch"}),
    ("proxmo", {"exclude": "episode"}),
    ("proxmo", {"history": 0.7, "exclude": "self"}),
    ("proxmo", {"embedding": "hash"}),
    ("proxmo-td", {"top_k": 2, "history": 0.5, "scope": "batch"}),
]
# Methods whose advantages of a task do not depend on the other tasks of the batch.
PER_GROUP = [
    *("grpo", "dr_grpo", "rloo", "dapo", "step", "gigpo", "proxmo"),
    *("proxmo-td", "proxmo-td-ridge", "proxmo-td-smooth"),
]

rewards = st.one_of(
    st.sampled_from([0.0, 1.0, -0.1, 10.0, 0.1 + 0.2, 0.3]),
    st.floats(-1e6, 1e6, allow_subnormal=False),
)
states = st.sampled_from(
    ["", "shelf 1", "shelf 2", "you see a mug", "a mug you see", "!?", "漢字", "a a a", "1"]
)


@st.composite
def batches(draw, reward=rewards, state=states, max_groups=3):
    rows: list[tuple] = []
    for group in range(draw(st.integers(1, max_groups))):
        for episode in range(draw(st.integers(1, 4))):
            won = draw(st.booleans())
            for step in range(draw(st.integers(1, 4))):
                act = draw(st.sampled_from(["look", "go to shelf 1", "go to shelf 2", ""]))
                rows.append((group, episode, step, draw(reward), won, draw(state), act))
    names = ("group", "episode", "step", "reward", "success", "state", "action")
    batch = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return batch | {"reward": np.array(batch["reward"])}


quick = settings(max_examples=25, deadline=None)


# Names of groups and episodes that sort in another way than their numbers, or not at all.
NAMES = {
    "numbers": lambda group, episode: (group, episode),
    "numbers far apart": lambda group, episode: (-7 * group, 2**40 - episode),
    "texts": lambda group, episode: (f"task {9 - group}", "dcba"[episode]),
    "of all types": lambda group, episode: ([None, "b", 3.5][group], (episode, "e")),
}


@pytest.mark.parametrize("case", CASES, ids=str)
@quick
@given(batch=batches(), data=st.data())
def test_credit_is_finite_whatever_the_order_of_rows_and_the_kind_of_ids(case, batch, data):
    method, options = case
    size = len(batch["step"])
    columns = {name: np.linspace(0.0, 1.0, size) ** 2 for name in PER_ROW.get(method, ())}
    out = credit.assign(method, **batch, **columns, **options)
    for column in (out.advantage, out.episode_advantage, out.step_advantage, out.step_return):
        assert np.isfinite(column).all()
    assert all(np.isfinite(value) for value in out.diagnostics.values())
    order = np.array(data.draw(st.permutations(range(size))))
    rename = NAMES[data.draw(st.sampled_from(sorted(NAMES)))]
    names = list(map(rename, batch["group"], batch["episode"]))
    renamed = batch | {"group": [one for one, _ in names], "episode": [one for _, one in names]}
    moved = credit.assign(
        method,
        **reorder(renamed, order),
        **{name: column[order] for name, column in columns.items()},
        **options,
    )
    scale = 1.0 + np.abs(batch["reward"]).sum()
    np.testing.assert_allclose(moved.advantage, out.advantage[order], atol=1e-5 * scale)


def test_groups_of_similar_states_do_not_depend_on_the_order_of_rows_with_names_for_ids():
    # Greedy in the order of the rows, the second text would join the first or the third.
    state = ["aaaaaaaaaa", "aaaaaaaaab", "aaaaaaaabb", "aaaaaaaaaa"]
    batch = single_steps([1.0, 0.0, 0.0, 0.0], state=state, episode=list("abcd"))
    expected = credit.assign("gigpo", **batch, similarity=0.85).step_advantage
    for order in itertools.permutations(range(4)):
        found = credit.assign("gigpo", **reorder(batch, order), similarity=0.85).step_advantage
        np.testing.assert_allclose(found, expected[list(order)], atol=1e-12)


@pytest.mark.parametrize("method", PER_GROUP)
@quick
@given(batch=batches(), stranger=batches(max_groups=1))
def test_another_task_and_other_names_change_nothing(method, batch, stranger):
    expected = credit.assign(method, **batch).advantage
    other = stranger | {"group": ["stranger"] * len(stranger["step"])}
    both = {name: [*batch[name], *other[name]] for name in batch}
    both |= {"reward": np.array(both["reward"])}
    found = credit.assign(method, **both).advantage[: len(expected)]
    scale = 1.0 + np.abs(batch["reward"]).sum()
    np.testing.assert_allclose(found, expected, atol=1e-9 * scale)
    renamed = batch | {
        "group": [f"task {one}" for one in batch["group"]],
        "episode": [(one, "episode") for one in batch["episode"]],
    }
    found = credit.assign(method, **renamed).advantage
    np.testing.assert_allclose(found, expected, atol=1e-9 * scale)


@quick
@given(
    batch=batches(reward=st.sampled_from([0.0, 1.0, 0.5, -0.25])),
    factor=st.sampled_from([0.5, 3.0, 100.0]),
)
def test_of_proxmo_the_episode_part_keeps_its_size_and_the_step_part_scales(batch, factor):
    small = credit.assign("proxmo", **batch)
    large = credit.assign("proxmo", **batch | {"reward": factor * batch["reward"]})
    np.testing.assert_allclose(large.episode_advantage, small.episode_advantage, atol=1e-3)
    expected = factor * small.step_advantage
    np.testing.assert_allclose(large.step_advantage, expected, atol=1e-5 * factor)


@pytest.mark.parametrize("method", ["grpo", "gigpo"])
@quick
@given(
    batch=batches(reward=st.sampled_from([0.0, 1.0, 0.5, -0.25])),
    factor=st.sampled_from([0.5, 3.0, 100.0]),
)
def test_the_zscore_does_not_depend_on_the_scale_of_rewards(method, batch, factor):
    # Up to the 1e-6 that is added to deviations. Without a discount these are at least 0.005:
    # sums of quarters; discounted returns can come as close to each other as they like.
    small = credit.assign(method, **batch, gamma=1.0)
    large = credit.assign(method, **batch | {"reward": factor * batch["reward"]}, gamma=1.0)
    np.testing.assert_allclose(large.advantage, small.advantage, atol=1e-3)
    assert ((large.episode_advantage == 0) == (small.episode_advantage == 0)).all()


@quick
@given(batch=batches(), exclude=st.sampled_from(["none", "self", "episode"]))
def test_the_step_part_lies_inside_the_range_of_returns_of_the_group(batch, exclude):
    out = credit.assign("proxmo", **batch, exclude=exclude)
    for group in set(batch["group"]):
        rows = np.array(batch["group"]) == group
        spread = np.ptp(out.step_return[rows])
        assert (np.abs(out.step_advantage[rows]) <= spread * (1 + 1e-6) + 1e-9).all()


@quick
@given(batch=batches(state=st.sampled_from(["", "!?", "shelf 1", "shelf 2", "you see a mug"])))
def test_the_limits_of_the_temperature_are_the_same_state_and_the_group_mean(batch):
    group, state = np.array(batch["group"]), np.array(batch["state"])
    cold = credit.assign("proxmo", **batch, tau=1e-9)
    hot = credit.assign("proxmo", **batch, tau=1e12)
    scale = 1.0 + np.abs(batch["reward"]).sum()
    for row, value in enumerate(cold.step_return):
        in_group = group == group[row]
        mean = cold.step_return[in_group].mean()
        same = cold.step_return[in_group & (state == state[row])].mean()
        assert hot.step_advantage[row] == pytest.approx(value - mean, abs=1e-6 * scale)
        assert cold.step_advantage[row] == pytest.approx(value - same, abs=1e-6 * scale)


@pytest.mark.parametrize("method", ["grpo", "gigpo", "proxmo"])
def test_a_hundred_thousand_rows_are_finite(method):
    rng = np.random.default_rng(0)
    size = 100_000
    group = np.repeat(np.arange(100), size // 100)
    batch = {
        "group": group,
        "episode": np.repeat(np.arange(size // 10), 10),
        "step": np.tile(np.arange(10), size // 10),
        "reward": (rng.random(size) < 0.1).astype(np.float32),
        "success": np.repeat(rng.random(size // 10) < 0.1, 10),
        "state": [f"you are at place {one}" for one in rng.integers(50, size=size)],
    }
    out = credit.assign(method, **batch)
    assert out.advantage.shape == (size,) and np.isfinite(out.advantage).all()

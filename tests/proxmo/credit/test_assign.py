"""The front door of credit assignment."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from proxmo import credit
from proxmo.errors import ConfigError, DataError, UnknownNameError, UsageError
from tests.proxmo.credit.batches import random_batch, reorder, single_steps

METHODS = [name for name in credit.method_names() if name not in ("gae", "ppo")]


def test_an_unknown_method_proposes_near_ones():
    with pytest.raises(UnknownNameError, match="did you mean gigpo"):
        credit.assign("gigop", **single_steps([0.0, 1.0]))


def test_an_unknown_option_proposes_near_ones():
    with pytest.raises(ConfigError, match="no option 'taw'; did you mean tau"):
        credit.assign("proxmo", **single_steps([0.0, 1.0]), taw=0.1)


@pytest.mark.parametrize(
    ("method", "option", "value"),
    [
        ("proxmo", "tau", 0.0),
        ("proxmo", "tau", float("nan")),
        ("proxmo", "tau", "warm"),
        ("proxmo", "alpha", -1),
        ("proxmo", "beta", 2.5),
        ("proxmo", "norm", "median"),
        ("proxmo", "scope", "world"),
        ("proxmo", "exclude", "others"),
        ("proxmo", "top_k", 0),
        ("proxmo", "top_k", 2.5),
        ("proxmo", "modulation", "yes"),
        ("proxmo", "embedding", "policy"),
        ("proxmo-released", "state", np.eye(2)),
        ("gigpo", "similarity", 1.5),
        ("gigpo", "similarity", "high"),
        ("gigpo", "weighting", "words"),
        ("grpo", "norm", "std"),
        ("grpo", "gamma", 1.5),
        ("grpo", "gamma", float("nan")),
        ("grpo", "gamma", "0.9"),
    ],
)
def test_a_bad_value_is_a_config_error_that_names_the_option(method, option, value):
    with pytest.raises(ConfigError, match=option):
        credit.assign(method, **single_steps([0.0, 1.0]) | {option: value})


@pytest.mark.parametrize(
    ("method", "options", "wrong"),
    [
        ("proxmo", {"modulation": False}, {"alpha": -1}),
        ("proxmo", {"modulation": False}, {"beta": 3}),
        ("proxmo-released", {"modulation": False}, {"beta": 3}),
        ("proxmo", {"aggregation": False}, {"tau": 0.0}),
        ("proxmo", {"aggregation": False}, {"exclude": "others"}),
        ("proxmo", {"aggregation": False}, {"top_k": 0}),
        ("proxmo", {"aggregation": False}, {"embedding": "tf-idf"}),
        ("proxmo", {"state": np.eye(2)}, {"embedding": "tf-idf"}),
        ("gigpo", {"similarity": None}, {"matcher": "difflip"}),
    ],
)
def test_a_bad_value_of_an_option_that_is_not_used_is_refused_too(method, options, wrong):
    (name,) = wrong
    with pytest.raises(UsageError, match=name):
        credit.assign(method, **single_steps([0.0, 1.0]) | options | wrong)


def test_an_embedding_that_is_not_used_is_not_loaded():
    batch = single_steps([0.0, 1.0])
    for name in ("sentence:no/such-model", "no_such_module:embed", "policy"):
        credit.assign("gigpo", **batch, matcher=name)
        credit.assign("proxmo", **batch, embedding=name, aggregation=False)


def test_an_unknown_embedding_proposes_near_ones():
    with pytest.raises(UnknownNameError, match="did you mean tfidf"):
        credit.assign("proxmo", **single_steps([0.0, 1.0]), embedding="tf-idf")
    with pytest.raises(UnknownNameError, match="unknown matcher 'difflip'; did you mean difflib"):
        credit.assign("gigpo", **single_steps([0.0, 1.0]), matcher="difflip", similarity=0.9)


def test_a_step_given_twice_with_different_rewards_is_refused():
    batch = single_steps([0.0, 1.0], episode=[7, 7])
    with pytest.raises(DataError, match="rows 0 and 1 have the same group, episode and step"):
        credit.assign("grpo", **batch)


def test_a_step_given_twice_with_different_observations_is_refused():
    # Two lost episodes of one id: their rewards alone would pass for a padding copy.
    batch = single_steps([0.0, 0.0], episode=[7, 7], state=["at a shelf", "at a drawer"])
    with pytest.raises(DataError, match="rows 0 and 1 .* different observations"):
        credit.assign("grpo", **batch)
    vectors = np.array([[1.0, 0.0], [1.0, 1e-7]])
    assert credit.assign("grpo", **batch | {"state": vectors}).advantage.tolist() == [0.0, 0.0]


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(DataError, match="group 2, .*step 3"):
        credit.assign("grpo", **single_steps([0.0, 1.0], step=[0, 0, 0]))
    with pytest.raises(DataError, match="success 2, state 3"):
        credit.assign("grpo", **single_steps([0.0, 1.0], state=["a", "b", "c"]))


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("group", [[1], [2]], r"group has unhashable type: 'list'.*hashable id"),
        ("episode", [{}, {}], r"episode has unhashable type: 'dict'"),
        ("group", 5, "group has 'int' object is not iterable"),
        ("group", None, "group has 'NoneType' object"),
        ("group", np.ones((2, 2), int), r"group is an array of shape \(2, 2\)"),
        ("episode", [float("nan"), 1.0], "episode has an id nan, which equals nothing"),
        ("step", [0.0, 1.5], r"step of row 1 is 1.5; expected a whole number from 0 on"),
        ("step", [0, -1], r"step of row 1 is -1; expected a whole number"),
        ("step", [0.0, float("nan")], "step of row 1 is nan"),
        ("step", [0.0, 1e300], r"step of row 1 is 1e\+300"),
        ("step", [0.0, 2.0**63], r"step of row 1 is 9\.22\d+e\+18; expected a whole number"),
        ("step", np.array([0, 2**63], np.uint64), "step of row 1 is 9223372036854775808"),
        ("step", [0, None], "step is an array of shape .2,. and type object"),
        ("step", [[0], [0, 1]], "step is no array .*; expected one number per step"),
        ("reward", [0.0, float("inf")], "reward of row 1 is inf; expected a finite number"),
        ("reward", [0.0, 1e200], r"reward of row 1 is 1e\+200; expected a finite number"),
        ("reward", (one for one in (0.0, 1.0)), r"reward is an array of shape \(\)"),
        ("success", [0.5, 1.0], "success of row 0 is 0.5; expected a flag, 0 or 1"),
        ("success", [0.0, float("nan")], "success of row 1 is nan"),
        ("state", "ab", "state is 'ab'; expected one observation per step"),
        ("state", 7, "state is 7; expected one observation per step"),
        ("state", [[1.0, 0.0], [0.0, 1.0]], r"observation 0 is \[1.0, 0.0\]; expected strings"),
        ("state", np.array(["a", None]), "observation 1 is None; expected strings"),
    ],
)
def test_what_cannot_be_a_batch_is_one_line_that_says_where(column, value, text):
    with pytest.raises(DataError, match=text) as caught:
        credit.assign("gigpo", **single_steps([0.0, 1.0]) | {column: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("action", [[0, 0], [False, False], [1, 1], ["go", 0], 5, "go"])
def test_only_none_stands_for_no_action(action):
    batch = single_steps([0.0, 1.0])
    with pytest.raises(DataError, match=r"action .*; expected (one text|strings)"):
        credit.assign("proxmo-td-smooth", **batch | {"action": action})
    credit.assign("proxmo-td-smooth", **batch | {"action": [None, "go"]})


def test_a_reward_that_is_too_large_names_the_largest():
    with pytest.raises(DataError, match=r"row 1 is 1e\+150; .* from -1e\+100 to 1e\+100"):
        credit.assign("grpo", **single_steps([0.0, 1e150]))


def test_a_ridge_too_small_for_equal_states_is_a_config_error():
    batch = single_steps([0.0, 1.0]) | {"state": ["room", "room"]}
    with pytest.raises(ConfigError, match="ridge is 1e-300, too small"):
        credit.assign("proxmo-td-ridge", **batch, ridge=1e-300)


def test_a_success_that_is_taken_back_is_refused():
    batch = single_steps([0.0] * 3, episode=[4, 4, 4], step=[2, 0, 1])
    with pytest.raises(DataError, match=r"success of row 2 is true, .*next step \(row 0\)"):
        credit.assign("grpo", **batch | {"success": [False, False, True]})
    # From some row on, whatever the order of the rows.
    credit.assign("grpo", **batch | {"success": [True, False, True]})


def test_whole_numbers_of_any_type_count_steps():
    batch = single_steps([0.0, 1.0], episode=[0, 0], success=[True, True])
    expected = credit.assign("grpo", **batch | {"step": [1, 0]}).step_return
    for dtype in ("float16", "float32", "uint8", "bool"):
        steps = np.array([1, 0], dtype)
        found = credit.assign("grpo", **batch | {"step": steps}).step_return
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("column", "value"),
    [("reward", np.ones((2, 1))), ("step", ["first", "second"]), ("success", ["yes", "no"])],
)
def test_a_column_that_is_not_one_number_per_step_is_refused(column, value):
    with pytest.raises(DataError, match=f"{column} is an array of shape"):
        credit.assign("grpo", **single_steps([0.0, 1.0]) | {column: value})


def test_a_reward_that_is_not_finite_is_refused():
    with pytest.raises(DataError, match="reward of row 1 is nan"):
        credit.assign("grpo", **single_steps([0.0, float("nan")]))


@pytest.mark.parametrize("state", [None, [None, "x"], np.zeros(2), np.full((2, 3), np.nan)])
def test_states_that_cannot_be_compared_are_refused(state):
    with pytest.raises(DataError, match="state|observation|embedding"):
        credit.assign("proxmo", **single_steps([0.0, 1.0], state=state))


class ByLabel(list):
    """Finds its items by label, as a column of a data frame that was sorted does."""

    def __getitem__(self, label):
        return super().__getitem__(len(self) - 1 - label)


def test_states_are_taken_in_the_order_in_which_they_come():
    batch = random_batch(np.random.default_rng(4))
    labelled = credit.assign("proxmo", **batch | {"state": ByLabel(batch["state"])})
    np.testing.assert_array_equal(labelled.advantage, credit.assign("proxmo", **batch).advantage)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([0.0, float("nan")], "value of row 1 is nan; expected a finite number"),
        ([0.0, 1e300], "value of row 1 is 1e.300; expected a finite number"),
        (["a", "b"], "value is an array of shape"),
        ([0.0], "value has 1 entries; expected 2"),
    ],
)
def test_a_value_that_is_not_one_finite_number_per_step_is_refused(value, text):
    with pytest.raises(DataError, match=text):
        credit.assign("gae", **single_steps([0.0, 1.0]), value=value)


@pytest.mark.parametrize("method", [None, 3, len])
def test_a_method_that_is_no_name_is_refused(method):
    with pytest.raises(ConfigError, match="credit method is .*; expected a registered name"):
        credit.assign(method, **single_steps([0.0, 1.0]))


def test_numbers_and_flags_of_numpy_are_taken_as_options():
    batch = single_steps([0.0, 1.0])
    plain = credit.assign("proxmo", **batch, gamma=1, modulation=False)
    numpy = credit.assign("proxmo", **batch, gamma=np.int64(1), modulation=np.False_)
    np.testing.assert_array_equal(plain.advantage, numpy.advantage)


def test_a_limit_on_neighbours_may_be_a_number_of_numpy():
    batch = random_batch(np.random.default_rng(5))
    one, two = (credit.assign("proxmo", **batch, top_k=k) for k in (2, np.int64(2)))
    np.testing.assert_array_equal(one.advantage, two.advantage)


def test_methods_that_compare_no_states_need_none():
    out = credit.assign("grpo", **single_steps([0.0, 1.0], state=None), norm="mean")
    np.testing.assert_allclose(out.advantage, [-0.5, 0.5])


@pytest.mark.parametrize("method", METHODS)
def test_copies_of_a_step_change_nothing_and_get_its_credit(method):
    # Trainers pad batches with copies of rows; each step must still count once.
    batch = random_batch(np.random.default_rng(3))
    size = len(batch["step"])
    plain = credit.assign(method, **batch)
    padded = credit.assign(method, **reorder(batch, [*range(size), 4, 4, 0]))
    np.testing.assert_allclose(padded.advantage[:size], plain.advantage, atol=1e-6)
    np.testing.assert_array_equal(padded.advantage[size:], padded.advantage[[4, 4, 0]])
    assert padded.diagnostics == pytest.approx(plain.diagnostics, abs=1e-6)


def test_episode_ids_need_to_be_unique_only_inside_their_group():
    batch = random_batch(np.random.default_rng(0))
    short = batch | {"episode": [number for _, number in batch["episode"]]}
    one, two = (credit.assign("proxmo", **rows) for rows in (batch, short))
    np.testing.assert_allclose(one.advantage, two.advantage, atol=1e-12)


def test_the_success_flag_may_sit_on_one_row_of_the_episode():
    batch = random_batch(np.random.default_rng(1))
    last = [
        won and reward > 0.5 for won, reward in zip(batch["success"], batch["reward"], strict=True)
    ]
    one, two = (credit.assign("proxmo", **rows) for rows in (batch, batch | {"success": last}))
    np.testing.assert_array_equal(one.advantage, two.advantage)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", METHODS)
def test_torch_in_torch_out_with_the_same_numbers(method, dtype):
    import torch

    batch = random_batch(np.random.default_rng(2))
    batch |= {"reward": batch["reward"].astype(dtype)}
    expected = credit.assign(method, **batch)
    tensors = {
        "reward": torch.from_numpy(batch["reward"]).requires_grad_(),
        "success": torch.tensor(batch["success"]),
        "step": torch.tensor(batch["step"]),
    }
    out = credit.assign(method, **batch | tensors)
    for name in ("advantage", "episode_advantage", "step_advantage", "step_return"):
        value = getattr(out, name)
        assert value.dtype == getattr(torch, dtype) and not value.requires_grad
        assert getattr(expected, name).dtype == dtype
        np.testing.assert_allclose(value.numpy(), getattr(expected, name), atol=1e-6)


def test_torch_embeddings_and_half_precision_rewards_are_taken():
    import torch

    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    reward = torch.tensor([0.0, 1.0], dtype=torch.bfloat16)
    batch = single_steps([0.0, 1.0], reward=reward, state=vectors)
    out = credit.assign("proxmo", **batch)
    assert out.advantage.dtype == torch.bfloat16
    assert out.advantage[0] < 0 < out.advantage[1]


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_batch_gives_empty_credit(method):
    out = credit.assign(method, **single_steps([]))
    assert out.advantage.shape == (0,)


def test_importing_credit_loads_neither_torch_nor_faiss():
    check = (
        "import sys, proxmo.credit as c; c.method_names();"
        "sys.exit(bool({'torch', 'faiss', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_credit_knows_nothing_of_the_rest_of_the_package():
    modules = set()
    for path in Path(credit.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("proxmo"):
                modules.add(node.module)
    assert {one for one in modules if not one.startswith("proxmo.credit.")} == {"proxmo.errors"}

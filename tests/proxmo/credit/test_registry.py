"""Methods by name, and methods of one's own."""

import functools

import numpy as np
import pytest

from proxmo import credit
from proxmo.credit import registry
from proxmo.errors import ConfigError, DataError, UnknownNameError
from tests.proxmo.credit.batches import single_steps


def last_step_only(rows: credit.Rows, *, bonus: float = 1.0) -> credit.Parts:
    """All credit to the last step of an episode."""
    last = np.append(np.diff(rows.episode) != 0, True)
    episode = np.where(last, bonus * rows.episode_return[rows.episode], 0.0)
    return credit.Parts(episode=episode, step=np.zeros(len(last)))


BATCH = single_steps([0.0] * 3, episode=[0, 0, 1], step=[1, 0, 0], reward=np.array([2.0, 0.0, 1.0]))


@pytest.fixture
def registered(monkeypatch):
    credit.method_names()  # Loads our own, once for all tests.
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    credit.method("last")(last_step_only)
    return "last"


@pytest.mark.parametrize("by", ["decorator", "reference"])
def test_a_method_of_ones_own_is_used_by_name_or_by_reference(by, registered):
    name = registered if by == "decorator" else f"{__name__}:last_step_only"
    out = credit.assign(name, **BATCH, bonus=3.0)
    assert out.advantage.tolist() == [6.0, 0.0, 3.0]
    assert out.diagnostics["credit/zero_advantage_share"] == pytest.approx(1 / 3)


def test_options_of_ones_own_method_are_checked():
    with pytest.raises(ConfigError, match="bonus .* is 'much'; expected a valid number"):
        credit.assign(f"{__name__}:last_step_only", **BATCH, bonus="much")
    assert credit.method_options(f"{__name__}:last_step_only") == {"bonus": 1.0}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (lambda steps: np.zeros(steps), "gave ndarray; expected Parts"),
        (lambda steps: credit.Parts([0.0] * steps, np.zeros(steps)), "episode of .* an array of 3"),
        (lambda steps: credit.Parts(np.zeros(steps), np.zeros(1)), "step of .* an array of 3"),
        (lambda steps: credit.Parts(np.full(steps, np.nan), np.zeros(steps)), "episode of .*nan"),
        (lambda steps: credit.Parts(*np.zeros((2, steps)), np.inf), "omega of .* is inf"),
    ],
)
def test_what_ones_own_method_gives_is_checked(given, text, registered):
    credit.method("odd")(lambda rows: given(len(rows.reward)))
    with pytest.raises(DataError, match=text):
        credit.assign("odd", **BATCH)


def hidden_type(rows: "NowhereImported", *, bonus: float = 1.0) -> credit.Parts:  # noqa: F821
    """As a module has it that imports the type for type checkers only."""
    return last_step_only(rows, bonus=bonus)


@pytest.mark.parametrize(
    "function", [hidden_type, functools.partial(last_step_only)], ids=["hidden type", "partial"]
)
def test_a_method_whose_types_cannot_be_told_is_taken(function, registered):
    credit.method("untold")(function)
    assert credit.assign("untold", **BATCH, bonus=2.0).advantage.tolist() == [4.0, 0.0, 2.0]
    with pytest.raises(ConfigError, match="no option 'bonnus'; did you mean bonus"):
        credit.assign("untold", **BATCH, bonnus=2.0)


def test_a_module_that_is_no_python_is_one_clear_line(tmp_path, monkeypatch):
    (tmp_path / "broken_credit.py").write_text("def f(:")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="cannot import 'broken_credit' .invalid syntax"):
        credit.assign("broken_credit:f", **BATCH)


def test_a_reference_that_leads_nowhere_says_where_it_stopped():
    with pytest.raises(ConfigError, match="cannot import 'no_such_module'"):
        credit.assign("no_such_module:method", **BATCH)
    with pytest.raises(ConfigError, match=r"cannot import '\.relative'"):
        credit.assign(".relative:method", **BATCH)
    with pytest.raises(UnknownNameError, match="did you mean last_step_only"):
        credit.assign(f"{__name__}:last_step", **BATCH)


def test_every_method_of_the_comparison_is_there():
    expected = (
        "dapo dr_grpo gae gigpo grpo ppo proxmo proxmo-no-aggregation proxmo-no-modulation "
        "proxmo-released proxmo-td proxmo-td-ridge proxmo-td-smooth reinforce++ rloo step"
    )
    assert credit.method_names() == expected.split()


def test_the_defaults_are_those_of_the_paper():
    options = credit.method_options("proxmo")
    assert options["alpha"] == 4 and options["beta"] == 0.1 and options["tau"] == 0.1
    assert options["omega"] == 1 and options["exclude"] == "none" and options["scope"] == "group"

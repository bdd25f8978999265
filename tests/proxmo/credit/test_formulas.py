"""Every method against an independent NumPy version of its formula, on random batches."""

import functools

import numpy as np
import pytest

from proxmo import credit
from tests.proxmo.credit import formulas
from tests.proxmo.credit.batches import reorder

BATCHES = 200
KINDS = (
    *("plain", "ties", "singletons", "unequal", "wins", "losses"),
    *("penalties", "one place", "gaps"),
)
PLACES = ["shelf 1", "shelf 2", "a mug on shelf 1", "fridge 1 is open", "the sink", "go on, go on"]

CASES = {
    "grpo": ("grpo", {}, formulas.grpo),
    "dapo": ("dapo", {}, formulas.grpo),
    "dr_grpo": ("dr_grpo", {}, formulas.dr_grpo),
    "rloo": ("rloo", {}, formulas.rloo),
    "reinforce++": ("reinforce++", {}, formulas.reinforce_pp),
    "reinforce++ with baseline": (
        "reinforce++",
        {"baseline": True},
        lambda b: formulas.reinforce_pp(b, baseline=True),
    ),
    "step": ("step", {}, formulas.step),
    "gigpo": ("gigpo", {}, formulas.gigpo),
    "gigpo, mean": ("gigpo", {"norm": "mean"}, lambda b: formulas.gigpo(b, norm=formulas.centred)),
    "gigpo, similar": (
        "gigpo",
        {"similarity": 0.8},
        lambda b: formulas.gigpo(b, similarity=0.8),
    ),
    "proxmo": ("proxmo", {}, formulas.proxmo),
    "proxmo, batch": ("proxmo", {"scope": "batch"}, lambda b: formulas.proxmo(b, scope="batch")),
    "proxmo, self": ("proxmo", {"exclude": "self"}, lambda b: formulas.proxmo(b, exclude="self")),
    "proxmo, episode": (
        "proxmo",
        {"exclude": "episode", "scope": "batch"},
        lambda b: formulas.proxmo(b, exclude="episode", scope="batch"),
    ),
    "proxmo, batch and self": (
        "proxmo",
        {"exclude": "self", "scope": "batch"},
        lambda b: formulas.proxmo(b, exclude="self", scope="batch"),
    ),
    "proxmo, cold": (
        "proxmo",
        {"exclude": "episode", "tau": 0.02},
        lambda b: formulas.proxmo(b, exclude="episode", tau=0.02),
    ),
    "proxmo, history": ("proxmo", {"history": 0.5}, lambda b: formulas.proxmo(b, history=0.5)),
    "proxmo, hot": ("proxmo", {"tau": 2.0}, lambda b: formulas.proxmo(b, tau=2.0)),
    "proxmo, scaled": (
        "proxmo",
        {"reward_scale": 10.0, "omega": 0.5},
        lambda b: formulas.proxmo(b, scale=10.0, omega=0.5),
    ),
    "no modulation": ("proxmo-no-modulation", {}, lambda b: formulas.proxmo(b, psc=False)),
    "no aggregation": ("proxmo-no-aggregation", {}, lambda b: formulas.proxmo(b, psa=False)),
    "proxmo-released": ("proxmo-released", {}, formulas.proxmo_released),
    "proxmo-td": ("proxmo-td", {}, formulas.proxmo_td),
    "proxmo-td, scaled": (
        "proxmo-td",
        {"reward_scale": 10.0, "history": 0.3, "lam": 0.8},
        lambda b: formulas.proxmo_td(b, scale=10.0, history=0.3, lam=0.8),
    ),
    "proxmo-td-ridge": ("proxmo-td-ridge", {}, formulas.proxmo_td_ridge),
    "proxmo-td-smooth": ("proxmo-td-smooth", {}, formulas.proxmo_td_smooth),
}


@functools.cache
def random_rows(seed):
    """A batch of one of the kinds, its rows shuffled."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
    rows = []
    for group in range(int(rng.integers(1, 4))):
        size = 1 if kind == "singletons" else int(rng.integers(2, 5))
        for episode in range(size if kind != "unequal" or group else 1):
            won = {"wins": True, "losses": False}.get(kind, bool(rng.random() < 0.5))
            length = int(rng.integers(1, 7))
            for step in range(length):
                reward = float(won and step == length - 1)
                if kind == "penalties":
                    reward -= 0.1 * (rng.random() < 0.3) + 1e-3 * rng.random()
                if kind == "ties":
                    reward = 0.5
                place = PLACES[0 if kind == "one place" else rng.integers(len(PLACES))]
                index = 2 * step + (step > 1) if kind == "gaps" else step
                action = f"go to shelf {rng.integers(3)}"
                rows.append((f"task {group}", episode, index, reward, won, place, action))
    names = ("group", "episode", "step", "reward", "success", "state", "action")
    batch = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return reorder(batch, rng.permutation(len(rows)))


@pytest.mark.parametrize("case", CASES)
def test_the_formula_of_a_method_is_what_it_computes(case):
    method, options, formula = CASES[case]
    for seed in range(BATCHES):
        batch = random_rows(seed)
        found = credit.assign(method, **batch, **options)
        spread = max(1e-3, np.ptp(found.step_return), np.ptp(found.advantage))
        np.testing.assert_allclose(
            found.advantage, formula(batch), atol=1e-6 * spread, err_msg=f"batch {seed}"
        )


@pytest.mark.parametrize("seed", range(20))
def test_values_of_a_critic_are_used_as_the_formula_says(seed):
    batch = random_rows(seed)
    value = np.random.default_rng(seed).normal(size=len(batch["step"]))
    found = credit.assign("gae", **batch, value=value, whiten=False).advantage
    np.testing.assert_allclose(found, formulas.gae(batch, value), atol=1e-9)
    white = credit.assign("ppo", **batch, value=value, lam=0.5).advantage
    np.testing.assert_allclose(
        white, formulas.zscore(formulas.gae(batch, value, lam=0.5)), atol=1e-6
    )


def test_every_method_is_among_the_cases():
    assert {method for method, _, _ in CASES.values()} | {"gae", "ppo"} == set(
        credit.method_names()
    )

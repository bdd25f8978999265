"""Numbers recorded from the published implementation, on real ALFWorld episodes."""

import gzip
import json

import numpy as np
import pytest

from proxmo import credit
from proxmo.credit.proxmo import modulation_weight

# What was recorded, and what gives it here.
CASES = {
    "grpo_mean_std_over_episodes": ("grpo", {}),
    "grpo_mean_over_episodes": ("grpo", {"norm": "mean"}),
    "gigpo_mean": ("gigpo", {"norm": "mean", "weighting": "steps"}),
    "gigpo_mean_std": ("gigpo", {"weighting": "steps"}),
    "gigpo_similarity_0.95_mean_std": ("gigpo", {"similarity": 0.95, "weighting": "steps"}),
    "proxmo_released": ("proxmo-released", {}),
    "proxmo_released_without_modulation": ("proxmo-released", {"modulation": False}),
}


@pytest.fixture(scope="module", params=["small", "medium"])
def recorded(request, shared):
    path = shared / "credit" / f"released_{request.param}.json.gz"
    if not path.is_file():
        pytest.skip(f"no reference values at {path}")
    with gzip.open(path) as file:
        return json.load(file)


def assign(recorded, method, **options):
    names = ("group", "episode", "step", "reward", "success", "state")
    columns = {name: [row[name] for row in recorded["rows"]] for name in names}
    return credit.assign(method, **columns, gamma=recorded["gamma"], **options)


@pytest.mark.parametrize("case", CASES)
def test_the_released_numbers_are_reproduced(recorded, case):
    method, options = CASES[case]
    out = assign(recorded, method, **options)
    expected = recorded["expected"][case]
    for part in ("episode_advantage", "step_advantage"):
        if part in expected:
            np.testing.assert_allclose(getattr(out, part), expected[part], atol=1e-5)


def test_step_returns_are_reproduced(recorded):
    out = assign(recorded, "grpo")
    np.testing.assert_allclose(out.step_return, recorded["expected"]["step_return"], atol=1e-6)


def test_modulation_weights_are_reproduced(shared):
    path = shared / "credit" / "modulation_weights.json"
    if not path.is_file():
        pytest.skip(f"no reference values at {path}")
    for one in json.loads(path.read_text()):
        found = modulation_weight(
            np.array([one["success"]]), np.array([one["p"]]), one["alpha"], one["beta_paper"]
        )
        assert found[0] == pytest.approx(one["weight"], abs=1e-5)

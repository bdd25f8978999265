"""The sampling rule of STEP."""

import numpy as np
import pytest

from proxmo.credit.sampling import allot_episodes, smooth_success_rate
from proxmo.errors import ConfigError


def test_harder_tasks_get_more_episodes_and_every_task_one():
    # 12 episodes, 3 tasks: one each, the other 9 in proportion 1 : 0.5 : 0.
    assert allot_episodes(np.array([0.0, 0.5, 1.0]), 12).tolist() == [7, 4, 1]


def test_what_division_leaves_over_goes_to_the_largest_remainders():
    # 8 beyond one each, in proportion 1 : 0.6 : 0.2 = 4.44, 2.67, 0.89.
    found = allot_episodes(np.array([0.0, 0.4, 0.8]), 11)
    assert found.tolist() == [5, 4, 2]


def test_solved_tasks_share_equally():
    assert allot_episodes(np.array([1.0, 1.0]), 6).tolist() == [3, 3]


def test_fewer_episodes_than_tasks_are_refused():
    with pytest.raises(ConfigError, match="2 episodes for 3 tasks"):
        allot_episodes(np.zeros(3), 2)


def test_rates_are_averaged_over_iterations_where_a_task_was_played():
    found = smooth_success_rate(np.array([0.5, 0.5]), np.array([1.0, np.nan]), momentum=0.8)
    np.testing.assert_allclose(found, [0.6, 0.5])
    with pytest.raises(ConfigError, match="momentum"):
        smooth_success_rate(np.zeros(1), np.zeros(1), momentum=1.5)

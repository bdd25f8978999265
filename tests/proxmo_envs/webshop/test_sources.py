from __future__ import annotations

import pickle

from proxmo_envs.webshop.env import WebShopEnv


def test_an_environment_is_sent_to_another_process_in_the_middle_of_an_episode() -> None:
    env = WebShopEnv(difficulty="small")
    env.reset(seed=0)
    twin = pickle.loads(pickle.dumps(env))
    assert twin.step("search[lamp]") == env.step("search[lamp]")

"""Many shoppers stepped in one call; see `proxmo_envs.vector`."""

from __future__ import annotations

from proxmo_envs.vector import TextVectorEnv
from proxmo_envs.webshop.env import WebShopEnv


class WebShopVectorEnv(TextVectorEnv):
    """`gymnasium.make_vec("WebShop-v0", num_envs=N)`: N shoppers in one shop."""

    env_class = WebShopEnv

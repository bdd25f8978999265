"""ALFWorld as a vector environment."""

from __future__ import annotations

from proxmo_envs.alfworld.env import ALFWorldEnv
from proxmo_envs.vector import TextVectorEnv


class ALFWorldVectorEnv(TextVectorEnv):
    """N ALFWorld games stepped in one call; the arguments are those of `ALFWorldEnv`."""

    env_class = ALFWorldEnv

"""Adapters to and from other packages' environments. Importing this package registers the games with Gymnasium.

Gymnasium imports it automatically for ids that name it: `gymnasium.make("saplan.envs:saplan/Switches-v0")`.
"""

import gymnasium

from saplan.envs.goal_env import GoalEnv
from saplan.games import GAMES

HORIZON = 150
"""Steps after which a registered environment is truncated, as in the paper's evaluation."""

for _name in GAMES:
    gymnasium.register(
        id=f"saplan/{_name.capitalize()}-v0",
        entry_point="saplan.envs.goal_env:GoalEnv",
        max_episode_steps=HORIZON,
        kwargs={"game": _name},
    )

__all__ = ["HORIZON", "GoalEnv"]

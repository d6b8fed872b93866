"""saplan: train once without any task, then reach any goal you can write as attributes."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saplan.algebra import Categorical, Cyclic, Exogenous, Integer, Natural, Product, Real
    from saplan.envs.check import check_world
    from saplan.envs.gymnasium_env import gym_world
    from saplan.envs.jax_env import jax_world
    from saplan.errors import InputError
    from saplan.games import Exchange, Mining, Switches, make_game, task_set
    from saplan.goals import Goal, parse_goal
    from saplan.methods.agent import Agent, PlannerSettings
    from saplan.rl.settings import Settings, settings_for
    from saplan.training.evaluate import evaluate
    from saplan.training.store import load
    from saplan.training.train import resume, train

_HOMES = {
    "saplan.algebra": ("Categorical", "Cyclic", "Exogenous", "Integer", "Natural", "Product", "Real"),
    "saplan.envs.jax_env": ("jax_world",),
    "saplan.envs.gymnasium_env": ("gym_world",),
    "saplan.errors": ("InputError",),
    "saplan.envs.check": ("check_world",),
    "saplan.training.evaluate": ("evaluate",),
    "saplan.training.train": ("resume", "train"),
    "saplan.games": ("Exchange", "Mining", "Switches", "make_game", "task_set"),
    "saplan.goals": ("Goal", "parse_goal"),
    "saplan.rl.settings": ("Settings", "settings_for"),
    "saplan.methods.agent": ("Agent", "PlannerSettings"),
    "saplan.training.store": ("load",),
}

__all__ = [
    "Agent",
    "Categorical",
    "Cyclic",
    "Exchange",
    "Exogenous",
    "Goal",
    "InputError",
    "Integer",
    "Mining",
    "Natural",
    "PlannerSettings",
    "Product",
    "Real",
    "Settings",
    "Switches",
    "check_world",
    "evaluate",
    "gym_world",
    "jax_world",
    "load",
    "make_game",
    "parse_goal",
    "resume",
    "settings_for",
    "task_set",
    "train",
]


def __getattr__(name: str) -> Any:
    # Names come when they are asked for, so that `saplan --help` need not wait for JAX.
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'saplan' has no attribute {name!r}")

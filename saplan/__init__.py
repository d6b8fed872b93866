"""saplan: train once without any task, then reach any goal you can write as attributes."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saplan.algebra import Categorical, Cyclic, Exogenous, Integer, Natural, Product, Real
    from saplan.envs.functional import jax_world
    from saplan.envs.host import gym_world
    from saplan.errors import InputError
    from saplan.experiments.check import check_world
    from saplan.experiments.evaluate import evaluate
    from saplan.experiments.train import resume, train
    from saplan.games import Exchange, Mining, Switches, make_game, task_set
    from saplan.goals import Goal, parse_goal
    from saplan.model.agent import Agent
    from saplan.model.settings import Settings, settings_for
    from saplan.model.walk import Planning
    from saplan.runs.store import load

_HOMES = {
    "saplan.algebra": ("Categorical", "Cyclic", "Exogenous", "Integer", "Natural", "Product", "Real"),
    "saplan.envs.functional": ("jax_world",),
    "saplan.envs.host": ("gym_world",),
    "saplan.errors": ("InputError",),
    "saplan.experiments.check": ("check_world",),
    "saplan.experiments.evaluate": ("evaluate",),
    "saplan.experiments.train": ("resume", "train"),
    "saplan.games": ("Exchange", "Mining", "Switches", "make_game", "task_set"),
    "saplan.goals": ("Goal", "parse_goal"),
    "saplan.model.agent": ("Agent",),
    "saplan.model.settings": ("Settings", "settings_for"),
    "saplan.model.walk": ("Planning",),
    "saplan.runs.store": ("load",),
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
    "Planning",
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

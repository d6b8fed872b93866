"""saplan: train once without any task, then reach any goal you can write as attributes."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saplan.algebra import Block, Categorical, Cyclic, Exogenous, Integer, Natural, Product, Real
    from saplan.envs.check import Finding, check_world
    from saplan.envs.external import ExternalWorld, success_by_goal
    from saplan.envs.gymnasium_env import GymWorld, gym_world
    from saplan.envs.jax_env import JaxWorld, jax_world
    from saplan.errors import InputError, NoPathError, NotFiniteError, StoppedError
    from saplan.experiments.result_file import write_result
    from saplan.games import Exchange, Game, Mining, Switches, make_game, task_set

    # from saplan.games.contract import check_game
    from saplan.goals import Goal, parse_goal
    from saplan.methods.executor import EvalResult, PlannerSettings
    from saplan.methods.structured.agent import Agent
    from saplan.planning.search import Plan
    from saplan.render.progress_bar import ProgressBar
    from saplan.rl.settings import Settings, settings_for
    from saplan.training.evaluate import evaluate
    from saplan.training.progress import Progress
    from saplan.training.store import load
    from saplan.training.train import resume, train, train_seeds

_HOMES = {
    "saplan.algebra": ("Block", "Categorical", "Cyclic", "Exogenous", "Integer", "Natural", "Product", "Real"),
    "saplan.envs.check": ("Finding", "check_world"),
    "saplan.envs.external": ("ExternalWorld", "success_by_goal"),
    "saplan.envs.gymnasium_env": ("GymWorld", "gym_world"),
    "saplan.envs.jax_env": ("JaxWorld", "jax_world"),
    "saplan.errors": ("InputError", "NoPathError", "NotFiniteError", "StoppedError"),
    "saplan.experiments.result_file": ("write_result",),
    "saplan.games": ("Exchange", "Game", "Mining", "Switches", "make_game", "task_set"),
    # "saplan.games.contract": ("check_game",),
    "saplan.goals": ("Goal", "parse_goal"),
    "saplan.methods.executor": ("EvalResult", "PlannerSettings"),
    "saplan.methods.structured.agent": ("Agent",),
    "saplan.planning.search": ("Plan",),
    "saplan.render.progress_bar": ("ProgressBar",),
    "saplan.rl.settings": ("Settings", "settings_for"),
    "saplan.training.evaluate": ("evaluate",),
    "saplan.training.progress": ("Progress",),
    "saplan.training.store": ("load",),
    "saplan.training.train": ("resume", "train", "train_seeds"),
}

__all__ = [
    "Agent",
    "Block",
    "Categorical",
    "Cyclic",
    "EvalResult",
    "Exchange",
    "Exogenous",
    "ExternalWorld",
    "Finding",
    "Game",
    "Goal",
    "GymWorld",
    "InputError",
    "Integer",
    "JaxWorld",
    "Mining",
    "Natural",
    "NoPathError",
    "NotFiniteError",
    "Plan",
    "PlannerSettings",
    "Product",
    "Progress",
    "ProgressBar",
    "Real",
    "Settings",
    "StoppedError",
    "Switches",
    # "check_game",
    "check_world",
    "evaluate",
    "gym_world",
    "jax_world",
    "load",
    "make_game",
    "parse_goal",
    "resume",
    "settings_for",
    "success_by_goal",
    "task_set",
    "train",
    "train_seeds",
    "write_result",
]


def __getattr__(name: str) -> Any:
    # Modules are imported on first use, so that `saplan --help` need not wait for JAX.
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'saplan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]

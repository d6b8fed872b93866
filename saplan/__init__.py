"""saplan: train once without any task, then reach any goal you can write as attributes."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saplan.algebra import (
        Block,
        Categorical,
        Circle,
        Cyclic,
        Dihedral,
        Exogenous,
        Homogeneous,
        Integer,
        Natural,
        Product,
        Real,
    )
    from saplan.envs.check import Finding, check_world
    from saplan.envs.external import ExternalWorld, success_by_goal
    from saplan.envs.gymnasium_env import GymWorld, gym_world
    from saplan.envs.jax_env import JaxWorld, jax_world
    from saplan.envs.moves import DiscreteMoves, MujocoStates
    from saplan.errors import InputError, NoPathError, NotFiniteError, StoppedError
    from saplan.experiments.result_file import write_result
    from saplan.experiments.run_plot import plot_run
    from saplan.games import Arm, Exchange, Game, Mining, Switches, Tiles, make_game, task_set
    from saplan.games.contract import check_game
    from saplan.goals import Goal, parse_goal
    from saplan.methods.agent import Agent, PlannerSettings
    from saplan.methods.curriculum import CurriculumSettings
    from saplan.methods.executor import EvalResult
    from saplan.methods.registry import settings_for
    from saplan.methods.structured.agent import StructuredAgent
    from saplan.methods.structured.settings import StructuredSettings
    from saplan.methods.unstructured.settings import UnstructuredSettings
    from saplan.perception.found_space import raw_space, with_space
    from saplan.perception.suggest import Suggestion, suggest_space
    from saplan.planning.route import Plan
    from saplan.rl.settings import Settings
    from saplan.training.config import run_config
    from saplan.training.evaluate import evaluate
    from saplan.training.progress import Progress, ProgressBar
    from saplan.training.store import load
    from saplan.training.train import RunOptions, resume, train, train_runs

_HOMES = {
    "saplan.algebra": (
        "Block",
        "Categorical",
        "Circle",
        "Cyclic",
        "Dihedral",
        "Exogenous",
        "Homogeneous",
        "Integer",
        "Natural",
        "Product",
        "Real",
    ),
    "saplan.envs.check": ("Finding", "check_world"),
    "saplan.envs.external": ("ExternalWorld", "success_by_goal"),
    "saplan.envs.gymnasium_env": ("GymWorld", "gym_world"),
    "saplan.envs.jax_env": ("JaxWorld", "jax_world"),
    "saplan.envs.moves": ("DiscreteMoves", "MujocoStates"),
    "saplan.errors": ("InputError", "NoPathError", "NotFiniteError", "StoppedError"),
    "saplan.experiments.result_file": ("write_result",),
    "saplan.experiments.run_plot": ("plot_run",),
    "saplan.games": ("Arm", "Exchange", "Game", "Mining", "Switches", "Tiles", "make_game", "task_set"),
    "saplan.games.contract": ("check_game",),
    "saplan.goals": ("Goal", "parse_goal"),
    "saplan.methods.executor": ("EvalResult",),
    "saplan.methods.agent": ("Agent", "PlannerSettings"),
    "saplan.methods.structured.agent": ("StructuredAgent",),
    "saplan.perception.found_space": ("raw_space", "with_space"),
    "saplan.perception.suggest": ("Suggestion", "suggest_space"),
    "saplan.planning.route": ("Plan",),
    "saplan.methods.registry": ("settings_for",),
    "saplan.methods.structured.settings": ("StructuredSettings",),
    "saplan.methods.unstructured.settings": ("UnstructuredSettings",),
    "saplan.methods.curriculum": ("CurriculumSettings",),
    "saplan.training.config": ("run_config",),
    "saplan.rl.settings": ("Settings",),
    "saplan.training.evaluate": ("evaluate",),
    "saplan.training.progress": ("Progress", "ProgressBar"),
    "saplan.training.store": ("load",),
    "saplan.training.train": ("RunOptions", "resume", "train", "train_runs"),
}

__all__ = [
    "Agent",
    "Arm",
    "Block",
    "Categorical",
    "Circle",
    "CurriculumSettings",
    "Cyclic",
    "Dihedral",
    "DiscreteMoves",
    "EvalResult",
    "Exchange",
    "Exogenous",
    "ExternalWorld",
    "Finding",
    "Game",
    "Goal",
    "GymWorld",
    "Homogeneous",
    "InputError",
    "Integer",
    "JaxWorld",
    "Mining",
    "MujocoStates",
    "Natural",
    "NoPathError",
    "NotFiniteError",
    "Plan",
    "PlannerSettings",
    "Product",
    "Progress",
    "ProgressBar",
    "Real",
    "RunOptions",
    "Settings",
    "StoppedError",
    "StructuredAgent",
    "StructuredSettings",
    "Suggestion",
    "Switches",
    "Tiles",
    "UnstructuredSettings",
    "check_game",
    "check_world",
    "evaluate",
    "gym_world",
    "jax_world",
    "load",
    "make_game",
    "parse_goal",
    "plot_run",
    "raw_space",
    "resume",
    "run_config",
    "settings_for",
    "success_by_goal",
    "suggest_space",
    "task_set",
    "train",
    "train_runs",
    "with_space",
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

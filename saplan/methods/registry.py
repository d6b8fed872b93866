"""All methods by name."""

from typing import Any

from saplan.errors import unknown_name
from saplan.games import Game
from saplan.methods.curriculum import Curriculum
from saplan.methods.structured.learner import Structured
from saplan.methods.unstructured.learner import Unstructured
from saplan.methods.update import Method
from saplan.rl.settings import Settings

METHODS: dict[str, Method[Any]] = {method.name: method for method in (Structured(), Unstructured(), Curriculum())}
"""The methods that are trained. The oracle is not."""


def find_method(name: str) -> Method[Any]:
    """The method of a name, or `InputError`."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


def settings_for(game: Game[Any], method: str = "structured", paper: bool = False) -> Settings:
    """Default settings of a method for a game; with `paper`, the variant nearest to the paper."""
    return find_method(method).settings_for(game, paper)

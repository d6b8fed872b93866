"""All methods by name."""

from typing import Any, ClassVar, Protocol, runtime_checkable

from saplan.errors import unknown_name
from saplan.games import Game
from saplan.goals import Goal
from saplan.methods.base import Method
from saplan.methods.curriculum import Curriculum
from saplan.methods.executor import Executor, PlannerSettings
from saplan.methods.structured.learner import Structured
from saplan.methods.unstructured.learner import Unstructured
from saplan.rl.settings import Settings


@runtime_checkable
class AnyAgent(Protocol):
    """What every agent can do, whatever its method."""

    transition_model: ClassVar[str | None]
    """The part that predicts which transitions are feasible, as reports name it; None for agents without one."""

    @property
    def game(self) -> Game[Any]:
        """The game as it is."""

    @property
    def seen(self) -> Game[Any]:
        """The game as the agent perceives it."""

    def executor(self, state: Any, goals: Goal, planning: PlannerSettings = ...) -> Executor:
        """Several tasks, ready to be carried out side by side."""


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

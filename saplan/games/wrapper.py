"""A game seen through other attributes than its own."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from saplan.algebra import Product
from saplan.games.game import Game, Observation
from saplan.games.scene import Scene
from saplan.goals import Goal


@dataclass(frozen=True)
class GameWrapper(Game[Any]):
    """The same game in everything that a subclass does not change: its space, its attributes, what is feasible."""

    game: Game[Any]

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.game.name

    @property
    def actions(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.game.actions

    @property
    def slots(self) -> int:  # type: ignore[override]
        return self.game.slots

    @property
    def vocabulary(self) -> int:  # type: ignore[override]
        return self.game.vocabulary

    @property
    def picture(self) -> tuple[int, int, int] | None:  # type: ignore[override]
        return self.game.picture

    @property
    def credit(self) -> str:  # type: ignore[override]
        return self.game.credit

    @property
    def vital(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.game.vital

    @property
    def misread(self) -> bool:  # type: ignore[override]
        return self.game.misread

    @property
    def alphas(self) -> tuple[float, float]:  # type: ignore[override]
        return self.game.alphas

    def __getattr__(self, name: str) -> Any:
        """What this game alone has, such as the numbers of its rules."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "game"), name)

    @property
    def space(self) -> Product:
        return self.game.space

    def attributes(self, state: Any) -> Float[Array, "K"]:
        return self.game.attributes(state)

    def reset(self, key: PRNGKeyArray) -> Any:
        return self.game.reset(key)

    def step(self, key: PRNGKeyArray, state: Any, action: Int[Array, ""]) -> Any:
        return self.game.step(key, state, action)

    def observe(self, state: Any) -> Observation:
        return self.game.observe(state)

    def truth(self, state: Any) -> Float[Array, "K"]:
        return self.game.truth(state)

    def confidence(self, state: Any) -> Float[Array, "K"]:
        return self.game.confidence(state)

    def anywhere(self, key: PRNGKeyArray) -> Any:
        return self.game.anywhere(key)

    def shelf(self, state: Any) -> Float[Array, "rows cells"]:
        return self.game.shelf(state)

    def place(self, state: Any) -> Observation:
        return self.game.place(state)

    def lost(self, state: Any) -> Bool[Array, ""]:
        return self.game.lost(state)

    def over(self, state: Any) -> Bool[Array, ""]:
        return self.game.over(state)

    def tasks(self, key: PRNGKeyArray) -> tuple[Any, Goal]:
        return self.game.tasks(key)

    def task_groups(self, states: Any, goals: Goal) -> dict[str, Bool[np.ndarray, "tasks"]]:
        return self.game.task_groups(states, goals)

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        return self.game.admissible()

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        return self.game.feasible(rho, delta)

    def scene(self, state: Any) -> Scene:
        return self.game.scene(state)

    def recall(self, states: Any) -> dict[str, np.ndarray]:
        return self.game.recall(states)

    def restore(self, states: Any, recalled: dict[str, np.ndarray]) -> None:
        self.game.restore(states, recalled)

    def fault(self) -> Exception | None:
        return self.game.fault()

    def described(self) -> dict[str, Any]:
        return self.game.described()

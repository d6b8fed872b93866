"""The protocol of a game: a Markov environment (𝓢, 𝓐, P) with a map f from states to attributes."""

import abc
import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int, Int16, Key, PRNGKeyArray, UInt8

from saplan.algebra import Product, Rho
from saplan.errors import InputError
from saplan.games.scene import Scene
from saplan.goals import Goal, parse_goal
from saplan.interpreter.program import interpretable

TASKS_TOGETHER = 64
"""Tasks that are drawn at once."""

State = TypeVar("State", bound=eqx.Module)
Words = Int16[Array, "slots"]
"""A bag of words: indices into a vocabulary; absent slots hold the padding word 0."""
Observation = Words | Float32[Array, "slots"] | UInt8[Array, "slots"]
"""Words, or numbers of order one, or the pixels of a picture row by row."""


@dataclasses.dataclass(frozen=True)
class ItemFacts:
    """Facts for the oracle: at which items of the map every admissible change can be made."""

    served: Bool[np.ndarray, "T items"]
    """Whether an item serves a change."""
    action: Int[np.ndarray, "T"]
    """The action that makes the change at such an item; a change that no item serves can be made anywhere."""


class Game(abc.ABC, Generic[State]):
    """Pure functions of arrays, written for one game: `jax.vmap` them at the edge.

    The rules' numbers are fields of a frozen dataclass, so a game is hashable and static under `jax.jit`. Members with
    a default are optional. `saplan.games.contract.check_game` checks the promises that are made here.
    """

    # Read-only for type checkers, so that a class variable, a dataclass field or a property can implement them.
    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """Name of the game on the command line."""

        @property
        def actions(self) -> tuple[str, ...]:
            """Names of the actions, in the order of their numbers."""

        @property
        def slots(self) -> int:
            """Words, numbers or pixels per observation."""

        @property
        def vocabulary(self) -> int:
            """Number of distinct words, the padding word included; 0 if observations are not words."""

        @property
        def picture(self) -> tuple[int, int, int] | None:
            """Rows, columns and channels, if observations are pictures."""

        @property
        def cell(self) -> int:
            """Side of a cell in pixels, if observations are pictures that consist of square cells; else 0."""

        @property
        def credit(self) -> str:
            """How far R_exp is credited: to the end of the "attempt" or of the "game" (paper, appendix)."""

        @property
        def vital(self) -> tuple[str, ...]:
            """Attributes that keep the agent alive, such as health: changes that reduce them are worth less."""

        @property
        def misread(self) -> bool:
            """Whether ρ is estimated from observations, and so may be wrong."""

        @property
        def alphas(self) -> tuple[float, float]:
            """α_1 (surprise of the edge detector) and α_2 (rare attribute values) of R_exp (paper, appendix)."""

        @property
        def tolerance(self) -> float:
            """Distance of real attributes from the goal of a task that counts as reached."""

        @property
        def farthest_goal(self) -> int:
            """Greatest distance of a goal for a curriculum; 0 if the goals of this game have no distances."""
    else:
        picture = None
        cell = 0
        vital = ()
        misread = False
        tolerance = 0.0
        farthest_goal = 0

    @property
    @abc.abstractmethod
    def space(self) -> Product:
        """𝓡, the attribute space."""

    @abc.abstractmethod
    def reset(self, key: PRNGKeyArray) -> State:
        """First state of a new game, on a new map."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: State, action: Int[Array, ""]) -> State:
        """State after one action."""

    @abc.abstractmethod
    def observe(self, state: State) -> Observation:
        """Observation of the agent in a state."""

    def place(self, state: State) -> Observation:
        """Part of the observation by which an agent recognises a place; less than all of it if that never recurs."""
        return self.observe(state)

    @abc.abstractmethod
    def attributes(self, state: State) -> Float[Array, "K"]:
        """f: the attributes ρ of a state."""

    def truth(self, state: State) -> Float[Array, "K"]:
        """Attributes by which success is judged; they differ from ρ only if ρ is estimated from observations."""
        return self.attributes(state)

    def confidence(self, state: State) -> Float[Array, "K"]:
        """Confidence in every coordinate of ρ, from 0 to 1."""
        return jnp.ones(self.space.size)

    def anywhere(self, key: PRNGKeyArray) -> State:
        """A state with attributes from all over 𝓡, as training data for f̂; games start from `reset`."""
        return self.reset(key)

    def shelf(self, state: State) -> Float[Array, "rows cells"]:
        """The inventory as rows of cells, each filled from 0 to 1, for pictures."""
        return jnp.zeros((0, 0))

    @abc.abstractmethod
    def over(self, state: State) -> Bool[Array, ""]:
        """Whether no change of ρ is possible any more."""

    def lost(self, state: State) -> Bool[Array, ""]:
        """Whether no action has any effect any more, as after a death: the task has failed."""
        return jnp.zeros((), bool)

    @abc.abstractmethod
    def tasks(self, key: PRNGKeyArray) -> tuple[State, Goal]:
        """A test task: the first state of a game, and a goal for it."""

    def goal_at(
        self, key: PRNGKeyArray, rho: Float[Array, "K"], distance: Int[Array, ""]
    ) -> tuple[Rho, Bool[Array, "K"]]:
        """A goal at a distance from ρ, or the nearest to it: its values, and which attributes it asks for.

        A curriculum needs this, with distances from 1 to `farthest_goal`.
        """
        raise InputError(f"the goals of {self.name} have no distances")

    def task_groups(self, states: State, goals: Goal) -> dict[str, Bool[np.ndarray, "tasks"]]:
        """Groups of tasks whose success is reported separately, by name; none by default."""
        return {}

    @abc.abstractmethod
    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """δ𝓡: every possible change of ρ as (words, δρ), a real change by its mean."""

    @abc.abstractmethod
    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        """The true probability, by the rules, that `delta` can be made at ρ: the ideal output of the edge detector."""

    def rules_out(self, goal: Goal) -> str | None:
        """Why no state of the game satisfies a goal, in a sentence; None if the rules do not exclude it."""
        return None

    def item_facts(self) -> ItemFacts | None:
        """Facts for the oracle, which also needs a `GridState`; None if this game has none."""
        return None

    def recall(self, states: State) -> dict[str, np.ndarray]:
        """Arrays that a checkpoint needs besides these states, so that another process can continue from them.

        There are none if a state holds everything. A world that runs outside of JAX overrides this and `restore`.
        """
        return {}

    def restore(self, states: State, recalled: dict[str, np.ndarray]) -> None:
        """Takes back the arrays that `recall` returned for these states; `InputError` if they do not match."""
        if recalled:
            raise InputError(f"{self.name} needs no arrays besides its states, but {', '.join(recalled)} was saved")

    def fault(self) -> Exception | None:
        """The error outside of JAX since the last call, if any: JAX's own error does not contain its message."""
        return None

    def described(self) -> dict[str, Any]:
        """The name and the rules as plain data, by which a run identifies its game."""
        return {"game": self.name, "rules": dataclasses.asdict(self)}  # type: ignore[call-overload]

    @abc.abstractmethod
    def scene(self, state: State) -> Scene:
        """The state as people see it."""


def goal_among(key: PRNGKeyArray, space: Product, texts: tuple[str, ...]) -> Goal:
    """One of several goals, drawn evenly."""
    goals = [parse_goal(space, text) for text in texts]
    low, high = (jnp.stack([jnp.asarray(getattr(goal, side)) for goal in goals]) for side in ("low", "high"))
    chosen = jax.random.randint(key, (), 0, len(goals))
    return Goal(low[chosen], high[chosen])


def task_set(game: Game[State], count: int, seed: int) -> tuple[State, Goal]:
    """`count` fixed tasks of a game, batched: every method gets the same ones for the same seed."""
    return _draw_tasks(game.tasks, jax.random.split(jax.random.key(seed), count))


@eqx.filter_jit
def _draw_tasks(tasks: Callable[[PRNGKeyArray], tuple[State, Goal]], keys: Key[Array, "count"]) -> tuple[State, Goal]:
    # In turn and not all at once: a task may need a search over its own attribute graph. Batches have the same size,
    # filled up with the last key, since `map` would compile a second program for a smaller last batch.
    count = len(keys)
    batches = math.ceil(count / TASKS_TOGETHER)
    size = math.ceil(count / batches)
    filled = keys[jnp.minimum(jnp.arange(batches * size), count - 1)]
    drawn: tuple[State, Goal] = jax.tree.map(lambda x: x[:count], jax.lax.map(tasks, filled, batch_size=size))
    return drawn


@interpretable
@partial(jax.jit, static_argnums=0)
def _confidence(game: Game[State], state: State) -> Float[Array, "K"]:
    return game.confidence(state)


@interpretable
@partial(jax.jit, static_argnums=0)
def change_between(space: Product, before: Float[Array, "*n K"], after: Float[Array, "*n K"]) -> Float[Array, "*n K"]:
    """The change δρ from one ρ to another, or from each of several."""
    return space.difference(after, before)


def uncertain_attributes(game: Game[State], state: State, enough: float = 0.9) -> tuple[tuple[str, float], ...]:
    """Attributes of a state whose confidence is below `enough`, with their confidence."""
    sure = np.asarray(_confidence(game, state))
    return tuple((name, float(p)) for name, p in zip(game.space.names, sure, strict=True) if p < enough)

"""The protocol of a game: a Markov environment (𝓢, 𝓐, P) with a map f from states to attributes."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int, Int16, Key, PRNGKeyArray, UInt8

from saplan.algebra import Product
from saplan.errors import InputError
from saplan.games.scene import Scene
from saplan.goals import Goal, parse_goal

State = TypeVar("State", bound=eqx.Module)
Words = Int16[Array, "slots"]
"""A bag of words: indices into a vocabulary, absent slots pointing at the padding word 0."""
Observation = Words | Float32[Array, "slots"] | UInt8[Array, "slots"]
"""What an agent sees: words, or numbers of order one, or the pixels of a picture row by row."""


class Game(abc.ABC, Generic[State]):
    """Pure functions of arrays, written for one game: `jax.vmap` them at the edge.

    The rules' numbers are fields of a frozen dataclass, so a game is hashable and static under `jax.jit`.
    """

    name: str
    """What the command line calls it."""
    actions: tuple[str, ...]
    slots: int
    """Words, numbers or pixels per observation."""
    vocabulary: int
    """Number of distinct words, the padding word included; 0 if numbers are seen, not words."""
    picture: tuple[int, int, int] | None = None
    """Rows, columns and channels, if those numbers are a picture."""
    credit: str
    """How far R_exp is credited: to the end of the "attempt" or of the "game" (paper, appendix)."""
    vital: tuple[str, ...] = ()
    """Attributes that the agent lives by, such as health: what costs it some of these is worth less."""
    misread: bool = False
    """Whether ρ is read off what is seen, and may be wrong."""
    alphas: tuple[float, float]
    """α_1 (surprise of the edge detector) and α_2 (rare attribute values) of R_exp (paper, appendix)."""

    @property
    @abc.abstractmethod
    def space(self) -> Product:
        """𝓡, the attribute space."""

    @abc.abstractmethod
    def reset(self, key: PRNGKeyArray) -> State:
        """A fresh map."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: State, action: Int[Array, ""]) -> State:
        """One action."""

    @abc.abstractmethod
    def observe(self, state: State) -> Observation:
        """What the agent sees."""

    def place(self, state: State) -> Observation:
        """What tells an agent that it has been here before; where sights never recur, less than all that is seen."""
        return self.observe(state)

    @abc.abstractmethod
    def attributes(self, state: State) -> Float[Array, "K"]:
        """f: the attributes ρ of a state."""

    def truth(self, state: State) -> Float[Array, "K"]:
        """The attributes that success is judged by; others than ρ only where ρ is read off what is seen."""
        return self.attributes(state)

    def confidence(self, state: State) -> Float[Array, "K"]:
        """How sure every coordinate of ρ is, from 0 to 1."""
        return jnp.ones(self.space.size)

    def anywhere(self, key: PRNGKeyArray) -> State:
        """Some state that a game may come to, with attributes from all over 𝓡: to learn from, not to play from."""
        return self.reset(key)

    def shelf(self, state: State) -> Float[Array, "rows cells"]:
        """What is held, as it lies on a shelf: how full every place of every row is, from 0 to 1."""
        return jnp.zeros((0, 0))

    @abc.abstractmethod
    def over(self, state: State) -> Bool[Array, ""]:
        """Whether no change of ρ is possible any more."""

    def lost(self, state: State) -> Bool[Array, ""]:
        """Whether nothing can be done any more, as after a death: a task is given up then."""
        return jnp.zeros((), bool)

    @abc.abstractmethod
    def tasks(self, key: PRNGKeyArray) -> tuple[State, Goal]:
        """A test task: a fresh map and a goal that can be asked of it."""

    def task_groups(self, states: State, goals: Goal) -> dict[str, Bool[np.ndarray, "tasks"]]:
        """Groups of tasks whose success is reported separately, by name; none by default."""
        return {}

    @abc.abstractmethod
    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """δ𝓡: every possible change of ρ as (words, δρ), a real change by its mean."""

    @abc.abstractmethod
    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        """The true probability, by the rules, that `delta` can be made at ρ: what the edge detector should say."""

    def recall(self, states: State) -> dict[str, np.ndarray]:
        """What is needed besides these states to go on from them in another process, as arrays for a checkpoint.

        Nothing, where a state says everything. A world that is played outside of JAX overrides this and `restore`.
        """
        return {}

    def restore(self, states: State, recalled: dict[str, np.ndarray]) -> None:
        """Takes in what `recall` told of these states; `InputError` if it does not fit them."""
        if recalled:
            raise InputError(f"{self.name} needs nothing besides its states, and {', '.join(recalled)} was saved")

    def fault(self) -> Exception | None:
        """What went wrong outside of JAX since this was last asked, for a sentence in place of JAX's own error."""
        return None

    def described(self) -> dict[str, Any]:
        """The name and the rules as plain data, by which a run knows its game again."""
        return {"game": self.name, "rules": dataclasses.asdict(self)}  # type: ignore[call-overload]

    @abc.abstractmethod
    def scene(self, state: State) -> Scene:
        """The state as people see it."""


def goal_among(key: PRNGKeyArray, space: Product, texts: tuple[str, ...]) -> Goal:
    """One of several goals, each as likely as any other."""
    goals = [parse_goal(space, text) for text in texts]
    low, high = (jnp.stack([jnp.asarray(getattr(goal, side)) for goal in goals]) for side in ("low", "high"))
    chosen = jax.random.randint(key, (), 0, len(goals))
    return Goal(low[chosen], high[chosen])


def task_set(game: Game[Any], count: int, seed: int) -> tuple[Any, Goal]:
    """`count` fixed tasks of a game, batched: the same for every method that is asked for this seed."""
    return _draw_tasks(game.tasks, jax.random.split(jax.random.key(seed), count))


@eqx.filter_jit
def _draw_tasks(tasks: Callable[[PRNGKeyArray], tuple[Any, Goal]], keys: Key[Array, "count"]) -> tuple[Any, Goal]:
    # In turn and not all at once: a task may need a search over its own attribute graph.
    return jax.lax.map(tasks, keys, batch_size=64)


def uncertain_attributes(game: Game[Any], state: Any, enough: float = 0.9) -> tuple[tuple[str, float], ...]:
    """The attributes of a state that are not known for sure, and how sure they are."""
    sure = jax.device_get(game.confidence(state))
    return tuple((name, float(p)) for name, p in zip(game.space.names, sure, strict=True) if p < enough)

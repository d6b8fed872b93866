"""A world so small that the right policy is known: a corridor with a button at one end and a lamp at the other."""

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int16, PRNGKeyArray

from saplan.algebra import Cyclic, Natural, Product
from saplan.games.game import Game, Words
from saplan.games.scene import Scene
from saplan.goals import Goal, exactly
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.learner import Structured, StructuredKnowledge
from saplan.methods.structured.settings import StructuredSettings
from saplan.methods.update import Learner, train_chunk

LEFT, RIGHT, PRESS = range(3)
COUNT_UP, TOGGLE = (1.0, 0.0), (0.0, 1.0)
"""δ𝓡: there are no other changes."""


class CorridorState(eqx.Module):
    """Where the agent stands, how often it has pressed, and whether the lamp is on."""

    place: Int16[Array, ""]
    count: Int16[Array, ""]
    lamp: Int16[Array, ""]


@dataclass(frozen=True)
class Corridor(Game[CorridorState]):
    """`press` at the left end counts one up if the lamp is on, at most to `most`; at the right end it toggles the lamp.

    𝓡 = ℕ (count) × ℤ/2 (lamp). Walking there takes at most `length` - 1 steps, so that the right policy is plain.
    A task: a count above the present one, the lamp free.
    """

    length: int = 4
    most: int = 3
    ends: bool = False
    """Whether the game is over once the count is at its most."""

    name: ClassVar[str] = "corridor"
    actions: ClassVar[tuple[str, ...]] = ("left", "right", "press")
    slots: ClassVar[int] = 2
    credit: ClassVar[str] = "attempt"
    alphas: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @property
    def vocabulary(self) -> int:
        return 1 + self.length

    @property
    def space(self) -> Product:
        return Product.of(count=Natural(), lamp=Cyclic(2))

    def reset(self, key: PRNGKeyArray) -> CorridorState:
        keys = jax.random.split(key, 3)
        draw = lambda k, high: jax.random.randint(k, (), 0, high).astype(jnp.int16)  # noqa: E731
        return CorridorState(draw(keys[0], self.length), draw(keys[1], self.most), draw(keys[2], 2))

    def step(self, key: PRNGKeyArray, state: CorridorState, action: Int[Array, ""]) -> CorridorState:
        walk = (action == RIGHT).astype(jnp.int16) - (action == LEFT).astype(jnp.int16)
        counts = (action == PRESS) & (state.place == 0) & (state.lamp == 1) & (state.count < self.most)
        toggles = (action == PRESS) & (state.place == self.length - 1)
        return CorridorState(
            jnp.clip(state.place + walk, 0, self.length - 1).astype(jnp.int16),
            state.count + counts.astype(jnp.int16),
            (state.lamp + toggles.astype(jnp.int16)) % 2,
        )

    def observe(self, state: CorridorState) -> Words:
        return jnp.array([1, 0], jnp.int16) * (1 + state.place)

    def attributes(self, state: CorridorState) -> Float[Array, "K"]:
        return jnp.array([state.count, state.lamp], jnp.float32)

    def over(self, state: CorridorState) -> Bool[Array, ""]:
        return self.ends & (state.count == self.most)

    def tasks(self, key: PRNGKeyArray) -> tuple[CorridorState, Goal]:
        state_key, goal_key = jax.random.split(key)
        state = self.reset(state_key)
        wanted = jax.random.randint(goal_key, (), state.count + 1, self.most + 1)
        return state, exactly(jnp.array([wanted, 0.0], jnp.float32), 0.0, jnp.array([True, False]))

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        return (("count up", COUNT_UP), ("toggle the lamp", TOGGLE))

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        up, toggle = (jnp.all(delta == jnp.array(change)) for change in (COUNT_UP, TOGGLE))
        return (toggle | (up & (rho[0] < self.most) & (rho[1] == 1))).astype(jnp.float32)

    def scene(self, state: CorridorState) -> Scene:
        return Scene(1, self.length, frozenset(), (0, int(state.place)), (), (("count", "red", str(int(state.count))),))


class Lit(Corridor):
    """The corridor of somebody who knows the place by the lamp."""

    def place(self, state: CorridorState) -> Int16[Array, "1"]:
        return state.lamp[None]


def standing(place: int, count: int, lamp: int) -> CorridorState:
    """One state, for one lane."""
    return CorridorState(*(jnp.array(x, jnp.int16) for x in (place, count, lamp)))


def stacked(*states: Any) -> Any:
    """States side by side, one per lane."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


GAME = Corridor()
SMALL = StructuredSettings(
    lanes=32, rollout=16, hidden=32, learning_rate=3e-3, epochs=2, minibatches=4, attempt_steps=12, game_steps=40,
    restart=0.5, discount=0.9, trace=0.8, temperature=0.05, repeat_cost=0.5, explore_discount=0.95,
    explore_temperature=0.1, explore_random=0.2, alpha_surprise=0.0, alpha_rare=1.0, capacity=4, threshold=0.1,
    uniform=0.5, doubt=0.1, positives=128, outcomes=128, edge_batch=64, edge_steps=4, edge_hidden=32, edge_rate=3e-3,
    handover=True, joint=True, relabel=True, cells=256,
)  # fmt: skip
"""Every number that matters is given: the tests do not hang on the defaults."""
UPDATES = 240
METHOD = Structured()


Learning = Learner[StructuredKnowledge]


def begun(seed: int, settings: StructuredSettings = SMALL) -> Learning:
    return METHOD.begin(GAME, settings, jax.random.key(seed))


def chunks(learner: Learning, count: int, times: int) -> Learning:
    """`count` × `times` updates."""
    for _ in range(times):
        learner, _ = train_chunk(METHOD, GAME, SMALL, UPDATES, count, count, learner)
    return learner


def agent_of(learner: Learning) -> StructuredAgent:
    return METHOD.agent_of(learner, GAME, SMALL)


@functools.cache
def trained() -> StructuredAgent:
    """An agent that has learnt the corridor in a few seconds, shared by all tests."""
    return agent_of(chunks(begun(0), 4, UPDATES // 4))


@functools.cache
def all_edges() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every (ρ, δρ) of the corridor and whether the rules allow it."""
    pairs = [((n, lamp), change) for n in range(GAME.most + 1) for lamp in (0, 1) for change in (COUNT_UP, TOGGLE)]
    rho, delta = (np.array(column, np.float32) for column in zip(*pairs, strict=True))
    return rho, delta, np.asarray(jax.vmap(GAME.feasible)(jnp.array(rho), jnp.array(delta))) > 0

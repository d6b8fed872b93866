"""The plane of mining: the set S, and the learnt probability of every transition at every place in it."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from saplan.games import Game, Mining
from saplan.interpreter.program import interpretable
from saplan.methods.agent import Agent
from saplan.methods.structured.agent import StructuredAgent

CELL = 0.125
"""Spacing of the places at which probabilities are computed."""
INSIDE = 254
"""The byte 1 + 254 p stands for the probability p, and 0 for a place outside S."""


@dataclass(frozen=True)
class Plane:
    """Two amounts that must stay in S = {v >= 0 : inner <= |v - centre| <= outer}."""

    centre: tuple[float, ...]
    inner: float
    outer: float
    size: tuple[float, float]
    names: tuple[str, ...]
    """Transitions, as the game names them."""
    chances: UInt8[np.ndarray, "T height width"] | None
    """Learnt probability of each transition, rows from the smallest second amount up; None for methods without an edge
    detector."""


def plane_of(agent: Agent) -> Plane | None:
    """The plane of an agent's game; None unless the game is mining with two minerals."""
    game = agent.game
    if not isinstance(game, Mining) or game.minerals != 2:
        return None
    size = (game.centre[0] + game.outer, game.centre[1] + game.outer)
    names = tuple(name for name, _ in game.admissible())
    chances = learnt(agent, size) if isinstance(agent, StructuredAgent) else None
    return Plane(game.centre, game.inner, game.outer, size, names, chances)


def learnt(agent: StructuredAgent, size: tuple[float, float]) -> UInt8[np.ndarray, "T height width"]:
    """Probability of every transition over the plane: with a hammer for those that use one up, without for the rest."""
    game = agent.game
    assert isinstance(game, Mining)
    first, second = (np.arange(round(length / CELL)) * CELL + CELL / 2 for length in size)
    places = np.stack(np.meshgrid(first, second), axis=-1)
    distance = np.linalg.norm(places - np.array(game.centre), axis=-1)
    inside = (distance >= game.inner) & (distance <= game.outer)
    deltas = np.array([delta for _, delta in game.admissible()], np.float32)
    hammer = np.where(deltas[:, -1] < 0, 1.0, 0.0)
    rho = np.empty((len(deltas), *places.shape[:2], 3), np.float32)
    rho[..., :2], rho[..., 2] = places, hammer[:, None, None]
    chance = np.asarray(_chances(agent, game, rho, deltas))
    return np.where(inside, 1 + np.round(INSIDE * chance), 0).astype(np.uint8)


@interpretable
@partial(jax.jit, static_argnums=1)
def _chances(
    agent: StructuredAgent, game: Game[Any], rho: Float[Array, "T height width K"], deltas: Float[Array, "T K"]
) -> Float[Array, "T height width"]:
    known = agent.memory.delta[jax.vmap(lambda delta: agent.memory.index(game.space, delta))(deltas)]
    wide = jnp.broadcast_to(known[:, None, None], rho.shape)
    return jax.nn.sigmoid(agent.detector(game.space, rho, wide).success)

"""The plane of mining: the set S, and how likely the agent thinks every transition to be at every place in it."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from saplan.games import Game, Mining
from saplan.methods.structured.agent import StructuredAgent

CELL = 0.125
"""Spacing of the places."""
INSIDE = 254
"""A probability p is written as 1 + 254 p in a byte; 0 stands for places outside S."""


@dataclass(frozen=True)
class Plane:
    """Two amounts that must stay in S = {v >= 0 : inner <= |v - centre| <= outer}."""

    centre: tuple[float, ...]
    inner: float
    outer: float
    size: tuple[float, float]
    names: tuple[str, ...]
    """Transitions, in words."""
    chances: UInt8[np.ndarray, "T height width"] | None
    """What the agent has learnt of each, rows from the least second amount up; None where a method learns no such."""


def plane_of(agent: Any) -> Plane | None:
    """The plane of an agent's game, if it has one."""
    game = agent.game
    if not isinstance(game, Mining) or game.minerals != 2:
        return None
    size = (game.centre[0] + game.outer, game.centre[1] + game.outer)
    names = tuple(name for name, _ in game.admissible())
    chances = learnt(agent, size) if isinstance(agent, StructuredAgent) else None
    return Plane(game.centre, game.inner, game.outer, size, names, chances)


def learnt(agent: StructuredAgent, size: tuple[float, float]) -> UInt8[np.ndarray, "T height width"]:
    """The probability of every transition over the plane; mining needs the hammer in hand, the others none."""
    assert isinstance(agent.game, Mining)
    first, second = (np.arange(round(length / CELL)) * CELL + CELL / 2 for length in size)
    places = np.stack(np.meshgrid(first, second), axis=-1)
    distance = np.linalg.norm(places - np.array(agent.game.centre), axis=-1)
    inside = (distance >= agent.game.inner) & (distance <= agent.game.outer)
    deltas = np.array([delta for _, delta in agent.game.admissible()], np.float32)
    hammer = np.where(deltas[:, -1] < 0, 1.0, 0.0)
    rho = np.concatenate(
        [np.broadcast_to(places[None], (len(deltas), *places.shape)),
         np.broadcast_to(hammer[:, None, None, None], (len(deltas), *places.shape[:2], 1))], axis=-1,
    ).astype(np.float32)  # fmt: skip
    chance = np.asarray(_chances(agent, agent.game, rho, deltas))
    return np.where(inside, 1 + np.round(INSIDE * chance), 0).astype(np.uint8)


@partial(jax.jit, static_argnums=1)
def _chances(
    agent: StructuredAgent, game: Game[Any], rho: Float[Array, "T height width K"], deltas: Float[Array, "T K"]
) -> Float[Array, "T height width"]:
    known = agent.memory.delta[jax.vmap(lambda delta: agent.memory.index(game.space, delta))(deltas)]
    wide = jnp.broadcast_to(known[:, None, None], rho.shape)
    return jax.nn.sigmoid(agent.detector(game.space, rho, wide).success)

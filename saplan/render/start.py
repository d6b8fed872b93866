"""Fresh maps, drawn as soon as possible: they are the first thing that a person sees."""

import threading
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from saplan.games.game import Game, State
from saplan.games.scene import Scene
from saplan.interpreter.program import interpretable, key_of

Rho = tuple[float, ...]
BUDGET = 150
"""Steps allowed per task, as in evaluations."""
DRAWING = threading.Lock()
"""Held while a map is drawn: a second request waits for the compilation instead of repeating it."""


@dataclass(frozen=True)
class Start:
    """A fresh map."""

    state: Any
    scene: Scene
    rho: Rho


# Maps are drawn rarely: a quick compilation matters more than a fast program.
@interpretable
@partial(jax.jit, static_argnums=0, compiler_options={"xla_backend_optimization_level": 0})
def _draw(game: Game[State], key: PRNGKeyArray) -> tuple[State, Float[Array, "K"]]:
    state = game.reset(key)
    return state, game.attributes(state)


def start(game: Game[Any], seed: int) -> Start:
    """The map of a seed, the same for every method."""
    with DRAWING:
        state, rho = _draw(game, key_of(seed))
    return Start(state, game.scene(jax.device_get(state)), tuple(map(float, rho)))

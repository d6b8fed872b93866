"""JAX environments as games: functional environments like gymnax's, `reset(key, params)` and
`step(key, state, action, params)`, which stay on the device.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from saplan.algebra import Product
from saplan.algebra.serialize import space_to_json
from saplan.envs.external import ExternalState, ExternalWorld, validate_names, validate_rho, validate_size
from saplan.games.game import Observation

JaxAttributes = Callable[[Array, Any], Float[Array, "K"]]
"""(observation, state of the environment) → ρ, computed by JAX."""


class JaxState(ExternalState):
    """A state of the environment with its observation and attributes."""

    env: Any
    seen: Observation
    rho: Float[Array, "K"]
    over: Bool[Array, ""]


@dataclass(frozen=True, eq=False)
class JaxWorld(ExternalWorld[JaxState]):
    """A functional environment as a game."""

    reset_env: Callable[..., tuple[Array, Any]]
    step_env: Callable[..., tuple[Array, Any, Any, Any, Any]]
    params: Any
    read_attributes: JaxAttributes
    read_observation: Callable[[Array, Any], Array] | None
    endless: bool
    attribute_space: Product
    actions: tuple[str, ...]
    numbers: tuple[int, ...]
    """The environment's own numbers of the actions, unless these are 0, 1, 2, ..."""
    sees: jax.ShapeDtypeStruct
    """Shape of an observation."""
    name: str
    goals: tuple[str, ...]
    places: tuple[str, ...] = ()
    vital: tuple[str, ...] = ()
    draw: Callable[[Any], Array] | None = None
    vocabulary: ClassVar[int] = 0

    @property
    def space(self) -> Product:
        return self.attribute_space

    @property
    def slots(self) -> int:
        return int(self.sees.size)

    @property
    def picture(self) -> tuple[int, int, int] | None:
        return tuple(self.sees.shape) if len(self.sees.shape) == 3 else None

    def reset(self, key: PRNGKeyArray) -> JaxState:
        observation, state = self.reset_env(key, self.params)
        return self._perceive(observation, state, jnp.asarray(False))

    def step(self, key: PRNGKeyArray, state: JaxState, action: Int[Array, ""]) -> JaxState:
        number = jnp.array(self.numbers)[action] if self.numbers else action
        observation, following, _, done, _ = self.step_env(key, state.env, number, self.params)
        after = self._perceive(observation, following, jnp.asarray(done) & (not self.endless))
        kept: JaxState = jax.tree.map(lambda new, old: jnp.where(state.over, old, new), after, state)
        return kept

    def _perceive(self, observation: Array, state: Any, over: Array) -> JaxState:
        seen = observation if self.read_observation is None else self.read_observation(observation, state)
        rho = jnp.asarray(self.read_attributes(observation, state), jnp.float32)
        validate_size(self.space, rho.shape)
        kind = jnp.uint8 if seen.dtype == jnp.uint8 else jnp.float32
        return JaxState(state, seen.reshape(-1).astype(kind), rho, jnp.asarray(over, bool))

    def frame(self, state: JaxState) -> np.ndarray:
        if self.draw is None:
            return super().frame(state)
        return np.asarray(self.draw(state.env)).clip(0, 255).astype(np.uint8)

    def described(self) -> dict[str, Any]:
        world = {"space": space_to_json(self.space), "actions": len(self.actions), "sees": list(self.sees.shape)}
        return self.as_described({**world, "numbers": list(self.numbers)})


def jax_world(
    env: Any,
    space: Product,
    attributes: JaxAttributes,
    goals: Sequence[str],
    actions: int | Sequence[str] | Mapping[str, int],
    params: Any = None,
    endless: bool = False,
    name: str | None = None,
    observe: Callable[[Array, Any], Array] | None = None,
    places: Sequence[str] = (),
    vital: Sequence[str] = (),
    draw: Callable[[Any], Array] | None = None,
) -> JaxWorld:
    """A functional environment as a world with named attributes and test goals.

    The world uses `env.reset_env` and `env.step_env`, which do not reset automatically, and otherwise `env.reset` and
    `env.step`.

    - `actions`: how many there are, or their names, or their names with the environment's own numbers.
    - `endless`: episodes continue after the environment's own task is done. Otherwise their end counts as a death, so
      the environment's time limit should be long.
    - `observe`: (observation, state) → numbers of order one; an array with three axes is treated as a picture.
    - `places`: attributes that identify a place, needed if the same observation never occurs twice.
    - `vital`: attributes that the agent needs to survive, such as health.
    - `draw`: a picture of an environment state for people, with values from 0 to 255.
    """
    validate_names(space, goals, places, vital)
    reset, step = (getattr(env, f"{word}_env", None) or getattr(env, word) for word in ("reset", "step"))
    names = tuple(f"action {k}" for k in range(actions)) if isinstance(actions, int) else tuple(actions)
    numbers = tuple(actions.values()) if isinstance(actions, Mapping) else ()
    first = jax.eval_shape(reset, jax.random.key(0), params)
    sees = first[0] if observe is None else jax.eval_shape(observe, *first)
    world = JaxWorld(
        reset, step, params, attributes, observe, endless, space, names, numbers, sees, name or type(env).__name__,
        tuple(goals), tuple(places), tuple(vital), draw,
    )  # fmt: skip
    validate_rho(space, jax.jit(world.reset)(jax.random.key(0)).rho)
    return world

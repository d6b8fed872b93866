"""JAX in: functional environments in the manner of gymnax, `reset(key, params)` and `step(key, state, action, params)`,
as games that stay on the device.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from saplan.algebra import Product
from saplan.algebra.serialize import space_to_json
from saplan.envs.external import ForeignWorld, complain
from saplan.errors import InputError
from saplan.games.game import Observation

Attributes = Callable[[Array, Any], Float[Array, "K"]]
"""(observation, state of the environment) → ρ, as JAX computes."""


class JaxState(eqx.Module):
    """A state of the environment, and what is known of it."""

    env: Any
    seen: Observation
    rho: Float[Array, "K"]
    over: Bool[Array, ""]


@dataclass(frozen=True, eq=False)
class JaxWorld(ForeignWorld[JaxState]):
    """A functional environment as a game."""

    begin: Callable[[PRNGKeyArray], JaxState]
    go_on: Callable[[PRNGKeyArray, JaxState, Int[Array, ""]], JaxState]
    known: Product
    names: tuple[str, ...]
    numbers: tuple[int, ...]
    """By which the environment knows its actions, if not from 0 on."""
    sees: jax.ShapeDtypeStruct
    named: str
    goals: tuple[str, ...]
    places: tuple[str, ...] = ()
    vital: tuple[str, ...] = ()
    draw: Callable[[Any], Array] | None = None
    vocabulary: ClassVar[int] = 0

    @property
    def space(self) -> Product:
        return self.known

    @property
    def actions(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.names

    @property
    def slots(self) -> int:  # type: ignore[override]
        return int(self.sees.size)

    @property
    def picture(self) -> tuple[int, int, int] | None:  # type: ignore[override]
        return tuple(self.sees.shape) if len(self.sees.shape) == 3 else None

    def reset(self, key: PRNGKeyArray) -> JaxState:
        return self.begin(key)

    def step(self, key: PRNGKeyArray, state: JaxState, action: Int[Array, ""]) -> JaxState:
        return self.go_on(key, state, action)

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
    attributes: Attributes,
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
    """A functional environment with named attributes and goals to be tested on.

    `env.reset_env(key, params)` and `env.step_env(key, state, action, params)` are used where they are, since they do
    not begin anew by themselves; else `reset` and `step`. `observe` makes numbers of order one of (observation, state);
    an array of three axes is seen as a picture. `actions` are so many, or names, or names with the numbers by which the
    environment knows them. `endless` says that it can go on after its own task is done; else its end is taken for a
    death, and its own limit of time had better be long. `places` names the attributes by which the agent knows a place
    again; it needs them where what it sees is never twice the same. `vital` names those that it lives by, such as
    health. `draw` makes a picture of a state of the environment for people, in values from 0 to 255.
    """
    complain(space, goals, places, vital)
    reset, step = (getattr(env, f"{word}_env", None) or getattr(env, word) for word in ("reset", "step"))
    names = tuple(f"action {k}" for k in range(actions)) if isinstance(actions, int) else tuple(actions)
    numbers = tuple(actions.values()) if isinstance(actions, Mapping) else ()

    def perceive(observation: Array, state: Any, over: Array) -> JaxState:
        seen = observation if observe is None else observe(observation, state)
        rho = jnp.asarray(attributes(observation, state), jnp.float32)
        if rho.shape != (space.size,):
            raise InputError(f"attributes must be {space.size} numbers, got an array of shape {rho.shape}")
        kind = jnp.uint8 if seen.dtype == jnp.uint8 else jnp.float32
        return JaxState(state, seen.reshape(-1).astype(kind), rho, jnp.asarray(over, bool))

    def begin(key: PRNGKeyArray) -> JaxState:
        observation, state = reset(key, params)
        return perceive(observation, state, jnp.asarray(False))

    def go_on(key: PRNGKeyArray, state: JaxState, action: Int[Array, ""]) -> JaxState:
        theirs = jnp.array(numbers)[action] if numbers else action
        observation, following, _, done, _ = step(key, state.env, theirs, params)
        after = perceive(observation, following, jnp.asarray(done) & (not endless))
        return jax.tree.map(lambda new, old: jnp.where(state.over, old, new), after, state)

    first = jax.eval_shape(reset, jax.random.key(0), params)
    sees = first[0] if observe is None else jax.eval_shape(observe, *first)
    rho = jax.jit(begin)(jax.random.key(0)).rho
    if not bool(space.contains(rho)):
        raise InputError(f"the attributes of a first state, {rho.tolist()}, lie outside {space}")
    called = name or type(env).__name__
    given = tuple(goals), tuple(places), tuple(vital)
    return JaxWorld(begin, go_on, space, names, numbers, sees, called, *given, draw)

"""Gymnasium in: other people's environments, stepped on the host, as games that everything else here can play.

A state holds a ticket, which is the seed of its episode, a clock, and a checksum of the actions so far. The environment
behind it is looked up by these, or brought there (see `episodes`). So `step` is a function of its arguments like that
of any game, however often and in whatever order a compiled program asks.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int32, PRNGKeyArray

from saplan.algebra import Product
from saplan.algebra.serialize import space_to_json
from saplan.envs.episodes import Attributes, Host
from saplan.envs.external import ForeignWorld, complain
from saplan.envs.pool import Pool
from saplan.errors import InputError
from saplan.games.game import Observation


class HostState(eqx.Module):
    """A moment of an episode, as far as a program on a device knows it."""

    ticket: Int32[Array, ""]
    clock: Int32[Array, ""]
    path: Int32[Array, ""]
    """A checksum of the actions since the episode began."""
    seen: Observation
    rho: Float[Array, "K"]
    over: Bool[Array, ""]
    lost: Bool[Array, ""]
    """Over by the rules, not because time is up."""


@dataclass(frozen=True, eq=False)
class HostWorld(ForeignWorld[HostState]):
    """An environment of Gymnasium as a game."""

    host: Host
    """Knows what the environments are like, and draws them for people."""
    workers: "Host | Pool"
    """What plays: the host itself, or processes that each have one."""
    named: str
    goals: tuple[str, ...]
    places: tuple[str, ...] = ()
    vital: tuple[str, ...] = ()
    faults: list[Exception] = field(default_factory=list)
    """What went wrong in the environments, the last of it at the end."""

    @property
    def space(self) -> Product:
        return self.host.space

    @property
    def actions(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"action {k}" for k in range(self.host.actions))

    @property
    def slots(self) -> int:  # type: ignore[override]
        return self.host.reader.slots

    @property
    def vocabulary(self) -> int:  # type: ignore[override]
        return self.host.reader.vocabulary

    @property
    def picture(self) -> tuple[int, int, int] | None:  # type: ignore[override]
        return self.host.reader.picture

    def _ask(self, what: str, *batch: Any) -> tuple[np.ndarray, ...]:
        """An answer of the workers. What goes wrong in a compiled program must be kept: JAX tells only that it did."""
        try:
            return getattr(self.workers, what)(*batch)
        except Exception as error:
            self.faults.append(error)
            raise

    def _call(self, what: str, *batch: Array) -> Any:
        whole, flag = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((), jnp.bool_)
        shapes = (
            whole,
            jax.ShapeDtypeStruct((self.slots,), self.host.reader.dtype),
            jax.ShapeDtypeStruct((self.space.size,), jnp.float32),
            flag,
            flag,
        )
        return jax.pure_callback(functools.partial(self._ask, what), shapes, *batch, vmap_method="broadcast_all")

    def reset(self, key: PRNGKeyArray) -> HostState:
        ticket = jax.random.randint(key, (), 0, 2**31 - 1)
        return HostState(ticket, jnp.int32(0), *self._call("reset", ticket))

    def step(self, key: PRNGKeyArray, state: HostState, action: Int[Array, ""]) -> HostState:
        seen = self._call("step", state.ticket, state.clock, state.path, action.astype(jnp.int32))
        return HostState(state.ticket, state.clock + 1, *seen)

    def fault(self) -> Exception | None:
        fault = self.faults[-1] if self.faults else None
        self.faults.clear()
        return fault

    def recall(self, states: HostState) -> dict[str, np.ndarray]:
        """The actions of every episode: with its seed, they bring it back."""
        return {"actions": self.workers.recall(*_moments(states))[0]}

    def restore(self, states: HostState, recalled: dict[str, np.ndarray]) -> None:
        moments = _moments(states)
        actions = recalled.get("actions")
        if actions is None or actions.dtype != np.int32 or actions.shape[:-1] != moments[0].shape:
            raise InputError("the actions of the episodes in play were not saved")
        self.workers.restore(*moments, actions)

    def lost(self, state: HostState) -> Bool[Array, ""]:
        return state.lost

    def described(self) -> dict[str, Any]:
        world = {"space": space_to_json(self.space), "actions": self.host.actions, "slots": self.slots,
                 "vocabulary": self.vocabulary, "picture": list(self.picture or ())}  # fmt: skip
        return self.as_described(world)

    def frame(self, state: HostState) -> np.ndarray:
        """The environment's own picture of a state that was played here, not in a pool."""
        return self.host.picture(int(state.ticket), int(state.clock), int(state.path))


def _moments(states: HostState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.asarray(states.ticket), np.asarray(states.clock), np.asarray(states.path)


def gym_world(
    make: Callable[[], gymnasium.Env[Any, Any]] | str,
    space: Product,
    attributes: Attributes,
    goals: Sequence[str],
    endless: bool = False,
    processes: int = 0,
    name: str | None = None,
    places: Sequence[str] = (),
    vital: Sequence[str] = (),
) -> HostWorld:
    """An environment, by name or made by a function, with named attributes and goals to be tested on.

    `endless` says that it can go on after its own task is done or its time is up: that task is not ours. `processes`
    steps slow environments in so many processes; the functions must then be those of a module, and a script that
    starts this needs its `if __name__ == "__main__":`. `places` names the attributes by which the agent knows a place
    again, such as its position; it needs them where what it sees is never twice the same. `vital` names those
    that it lives by, such as health.
    """
    maker = functools.partial(gymnasium.make, make) if isinstance(make, str) else make
    complain(space, goals, places, vital)
    host = Host(maker, attributes, space, endless)
    workers = Pool(functools.partial(Host, maker, attributes, space, endless), processes) if processes else host
    called = name or (make if isinstance(make, str) else str(getattr(make, "__name__", "world")))
    return HostWorld(host, workers, called, tuple(goals), tuple(places), tuple(vital))

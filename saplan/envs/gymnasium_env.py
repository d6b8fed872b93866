"""Gymnasium environments as games: they are stepped on the host, and everything else in saplan can play them.

A state holds a *ticket*, which is the seed of its episode, a clock, and a checksum of the actions so far. `Host` finds
the environment by these three, or replays the episode up to there (see `episodes`). So `step` is a pure function of its
arguments, as in any game, no matter how often and in which order a compiled program calls it.
"""

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int32, PRNGKeyArray

from saplan.algebra import Product
from saplan.algebra.serialize import space_to_json
from saplan.envs.episodes import Host
from saplan.envs.external import ExternalState, ExternalWorld, validate_names
from saplan.envs.player import GymAttributes, GymPlayer
from saplan.envs.pool import EpisodeServer, Pool
from saplan.envs.readers import Reader, normalising_reader
from saplan.envs.snapshots import Restorable, SnapshotHost
from saplan.errors import InputError
from saplan.games.game import Observation


class GymState(ExternalState):
    """One step of an episode, as a program on the device knows it."""

    ticket: Int32[Array, ""]
    clock: Int32[Array, ""]
    path: Int32[Array, ""]
    """A checksum of the actions since the episode began."""
    seen: Observation
    rho: Float[Array, "K"]
    over: Bool[Array, ""]
    lost: Bool[Array, ""]
    """The episode ended by the rules, not by its time limit."""


NAMELESS = "<lambda>"
"""The name of a function without one."""


@dataclass(frozen=True, eq=False)
class GymWorld(ExternalWorld[GymState]):
    """A Gymnasium environment as a game."""

    host: Host | SnapshotHost
    """Knows the spaces of the environment, and draws pictures for people."""
    workers: EpisodeServer
    """Plays the episodes: the host itself, or a pool of processes that each have a host."""
    name: str
    goals: tuple[str, ...]
    places: tuple[str, ...] = ()
    vital: tuple[str, ...] = ()
    faults: list[Exception] = field(default_factory=list)
    """Exceptions that the environments raised, the latest last."""
    turn: Any = field(default_factory=threading.Lock)
    """Held while episodes are played: several pages may watch one world."""

    @property
    def space(self) -> Product:
        return self.host.space

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(f"action {k}" for k in range(self.host.actions))

    @property
    def slots(self) -> int:
        return self.host.reader.slots

    @property
    def vocabulary(self) -> int:
        return self.host.reader.vocabulary

    @property
    def picture(self) -> tuple[int, int, int] | None:
        return self.host.reader.picture

    def _call(self, ask: Callable[..., tuple[np.ndarray, ...]], *batch: Array) -> Any:
        """Asks the workers from a compiled program. JAX hides what an exception says, so it is kept in `faults`."""

        def keeping_faults(*batch: Any) -> tuple[np.ndarray, ...]:
            try:
                with self.turn:
                    return ask(*(np.asarray(each) for each in batch))
            except Exception as error:
                self.faults.append(error)
                raise

        number, flag = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((), jnp.bool_)
        seen = jax.ShapeDtypeStruct((self.slots,), self.host.reader.dtype)
        rho = jax.ShapeDtypeStruct((self.space.size,), jnp.float32)
        return jax.pure_callback(keeping_faults, (number, seen, rho, flag, flag), *batch, vmap_method="broadcast_all")

    def reset(self, key: PRNGKeyArray) -> GymState:
        return self.begin(jax.random.randint(key, (), 0, 2**31 - 1))

    def begin(self, ticket: Int[Array, ""]) -> GymState:
        """The first state of the episode with this seed."""
        ticket = ticket.astype(jnp.int32)
        first = self._call(lambda tickets: self.workers.reset(tickets), ticket)
        return GymState(ticket, jnp.int32(0), *first)

    def step(self, key: PRNGKeyArray, state: GymState, action: Int[Array, ""]) -> GymState:
        asked = state.ticket, state.clock, state.path, jnp.asarray(action, jnp.int32)
        following = self._call(lambda *batch: self.workers.step(*batch), *asked)
        return GymState(state.ticket, state.clock + 1, *following)

    def fault(self) -> Exception | None:
        fault = self.faults[-1] if self.faults else None
        self.faults.clear()
        return fault

    def recall(self, states: GymState) -> dict[str, np.ndarray]:
        """The actions of every episode: with the seed, they are enough to replay it."""
        return {"actions": self.workers.recall(*_positions(states))[0]}

    def restore(self, states: GymState, recalled: dict[str, np.ndarray]) -> None:
        positions = _positions(states)
        actions = recalled.get("actions")
        if actions is None or actions.dtype != np.int32 or actions.shape[:-1] != positions[0].shape:
            raise InputError("the actions of the episodes in play were not saved")
        self.workers.restore(*positions, actions)

    def lost(self, state: GymState) -> Bool[Array, ""]:
        return state.lost

    def described(self) -> dict[str, Any]:
        world = {"space": space_to_json(self.space), "actions": self.host.actions, "slots": self.slots,
                 "vocabulary": self.vocabulary, "picture": list(self.picture or ())}  # fmt: skip
        return self.as_described(world)

    def frame(self, state: GymState) -> np.ndarray:
        """The environment's own picture of a state; the state must have been played here, not in a pool."""
        with self.turn:
            return self.host.picture(int(state.ticket), int(state.clock), int(state.path))


def _positions(states: GymState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.asarray(states.ticket), np.asarray(states.clock), np.asarray(states.path)


def gym_world(
    make: Callable[[], gymnasium.Env[Any, Any]] | str,
    space: Product,
    attributes: GymAttributes,
    goals: Sequence[str],
    endless: bool = False,
    processes: int = 0,
    name: str | None = None,
    places: Sequence[str] = (),
    vital: Sequence[str] = (),
    hold: int | Sequence[int] = 1,
    normalise: "int | GymWorld" = 0,
    waves: int = 0,
) -> GymWorld:
    """A Gymnasium environment, by its id or from a function, as a world with named attributes and test goals.

    - `endless`: episodes continue after the environment's own task is done or its time limit is reached.
    - `processes`: step slow environments in this many processes. The functions must then be importable from a module,
      and the script needs `if __name__ == "__main__":`.
    - `places`: attributes that identify a place, such as the position, needed if the same observation never occurs
      twice.
    - `vital`: attributes that the agent needs to survive, such as health.
    - `hold`: steps of the environment that every action is repeated for, or one number for each; fewer if ρ changes.
    - `normalise`: random moves by which observations are brought to mean 0 and deviation 1, before anything is learnt;
      or another world, to read observations as that one does.
    - `waves`: octaves of sines and cosines that are added to normalised numbers, where small differences matter.

    An environment with `get_state` and `set_state` (see `Restorable`) is made once per process, whatever the number of
    episodes, and continues from snapshots; others are made once per episode, and replay it where necessary.
    """
    maker = functools.partial(gymnasium.make, make) if isinstance(make, str) else make
    validate_names(space, goals, places, vital)
    player = functools.partial(GymPlayer, maker, attributes, space, endless, hold)
    if normalise:
        player = functools.partial(player, reader=_normalising(player, normalise, waves))
    host, workers = _hosts(player, processes)
    called = name or _name_of(make, maker)
    return GymWorld(host, workers, called, tuple(goals), tuple(places), tuple(vital))


def _name_of(make: Callable[[], gymnasium.Env[Any, Any]] | str, maker: Callable[[], gymnasium.Env[Any, Any]]) -> str:
    """The name of a world that was given none: the environment's id, the function's name, or that of the class."""
    known = make if isinstance(make, str) else str(getattr(make, "__name__", NAMELESS))
    if known != NAMELESS:
        return known
    env = maker()
    found = type(env.unwrapped).__name__ if env.spec is None else env.spec.id
    env.close()
    return found


def _hosts(
    player: Callable[[], GymPlayer], processes: int
) -> tuple[Host, EpisodeServer] | tuple[SnapshotHost, EpisodeServer]:
    """The host of an environment, and the workers that play its episodes."""
    host = Host(player)
    if isinstance(host.idle[0].env, Restorable):
        from_snapshots = SnapshotHost(player, processes, host.idle[0])
        return from_snapshots, from_snapshots
    return host, Pool(functools.partial(Host, player), processes) if processes else host


def _normalising(make: Callable[[], GymPlayer], normalise: int | GymWorld, waves: int) -> Reader:
    if isinstance(normalise, GymWorld):
        return normalise.host.reader
    player = make()
    return normalising_reader(player.env.observation_space, player.sample(normalise), waves)

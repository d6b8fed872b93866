"""Gymnasium in: other people's environments, stepped on the host, as games that everything else here can play.

A state holds a ticket, which is the seed of its episode, and a clock. The environment behind it is looked up by the
ticket; if its own clock is another, the episode is played again up to there. So `step` is a function of its arguments
like that of any game, however often and in whatever order a compiled program asks, as long as an environment does the
same again when it is given the same seed and the same actions.
"""

import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Bool, Float, Int, Int32, PRNGKeyArray

from saplan.algebra import Product
from saplan.algebra.written import space_to_json
from saplan.envs.foreign import ForeignWorld, complain
from saplan.envs.pool import Pool
from saplan.envs.readers import Reader, reader_of
from saplan.errors import InputError
from saplan.games.base import Seen

Attributes = Callable[[Any, dict[str, Any], Any], Sequence[float]]
"""(observation, info, unwrapped environment) → ρ."""
Numbers = Int32[Array, "*lanes"] | Int32[np.ndarray, "*lanes"]
SPARE = 4
"""Episodes kept ready to go on, for every one that is asked about at once: those in play, those to come, and those of
another batch.
"""


class HostState(eqx.Module):
    """A moment of an episode, as far as a program on a device knows it."""

    ticket: Int32[Array, ""]
    clock: Int32[Array, ""]
    seen: Seen
    rho: Float[Array, "K"]
    over: Bool[Array, ""]
    lost: Bool[Array, ""]
    """Over by the rules, not because time is up."""


Moment = tuple[np.ndarray, np.ndarray, bool, bool]
"""What is seen, ρ, and whether it is over, and whether by the rules."""


@dataclass
class Episode:
    """An environment at work."""

    env: gymnasium.Env[Any, Any]
    actions: list[int] = field(default_factory=list)
    last: Moment | None = None


class Host:
    """The environments behind the tickets."""

    def __init__(
        self, make: Callable[[], gymnasium.Env[Any, Any]], attributes: Attributes, space: Product, endless: bool = False
    ) -> None:
        """Makes one environment, to see what it is like."""
        self.make, self.attributes, self.space, self.endless = make, attributes, space, endless
        self.live: OrderedDict[int, Episode] = OrderedDict()
        self.idle: list[gymnasium.Env[Any, Any]] = [make()]
        self.room = 0
        env = self.idle[0]
        if not isinstance(env.action_space, spaces.Discrete):
            raise InputError(f"actions must be discrete, these are {env.action_space}")
        self.actions, self.first = int(env.action_space.n), int(env.action_space.start)
        self.reader: Reader = reader_of(env.observation_space)
        _, rho, *_ = self._perceive(env, *env.reset(seed=0))
        if not bool(space.contains(jnp.asarray(rho))):
            raise InputError(f"the attributes of a first state, {rho.tolist()}, lie outside {space}")

    def reset(self, tickets: Numbers) -> tuple[np.ndarray, ...]:
        """The first moments of episodes."""
        self.room = max(self.room, SPARE * tickets.size)
        return self._batch(tickets.shape, [self._look(self._begin(ticket)) for ticket in _listed(tickets)])

    def step(self, tickets: Numbers, clocks: Numbers, actions: Numbers) -> tuple[np.ndarray, ...]:
        """What follows from these moments."""
        self.room = max(self.room, SPARE * tickets.size)
        each = zip(_listed(tickets), _listed(clocks), _listed(actions), strict=True)
        return self._batch(tickets.shape, [self._advance(*one) for one in each])

    def _batch(self, shape: tuple[int, ...], rows: list[Moment]) -> tuple[np.ndarray, ...]:
        seen, rho, *ends = zip(*rows, strict=True)
        sights, numbers = np.array(seen, self.reader.dtype), np.array(rho, np.float32)
        over, lost = (np.array(each).reshape(shape) for each in ends)
        return sights.reshape(*shape, -1), numbers.reshape(*shape, -1), over, lost

    def _begin(self, ticket: int) -> Episode:
        """An episode at its start, in place of whatever went by this ticket."""
        known = self.live.pop(ticket, None)
        env = known.env if known else self.idle.pop() if self.idle else self.make()
        episode = self.live[ticket] = Episode(env)
        while len(self.live) > self.room:
            self.idle.append(self.live.popitem(last=False)[1].env)
        observation, info = env.reset(seed=ticket)
        episode.last = self._perceive(env, observation, info)
        return episode

    def picture(self, ticket: int, clock: int) -> np.ndarray:
        """The environment's own picture of a moment."""
        picture = self._at(ticket, clock).env.render()
        if not isinstance(picture, np.ndarray):
            raise InputError("the environment draws no pictures: make it with render_mode='rgb_array'")
        return picture

    def _advance(self, ticket: int, clock: int, action: int) -> Moment:
        episode = self._at(ticket, clock)
        self._play(episode, action)
        return self._look(episode)

    def _at(self, ticket: int, clock: int) -> Episode:
        """An episode at this moment: as it stands, or played again."""
        episode = self.live.get(ticket)
        if episode is None or len(episode.actions) != clock:
            past = [] if episode is None else episode.actions[:clock]
            episode = self._begin(ticket)
            for before in past:
                self._play(episode, before)
        self.live.move_to_end(ticket)
        return episode

    def _play(self, episode: Episode, action: int) -> None:
        episode.actions.append(action)
        assert episode.last is not None
        if not episode.last[2]:
            observation, _, terminated, truncated, info = episode.env.step(self.first + action)
            ends = () if self.endless else (terminated or truncated, terminated)
            episode.last = self._perceive(episode.env, observation, info, *ends)

    def _perceive(
        self,
        env: gymnasium.Env[Any, Any],
        observation: Any,
        info: dict[str, Any],
        over: bool = False,
        lost: bool = False,
    ) -> Moment:
        rho = np.asarray(self.attributes(observation, info, env.unwrapped), np.float32)
        if rho.shape != (self.space.size,):
            raise InputError(f"attributes must be {self.space.size} numbers, got an array of shape {rho.shape}")
        return self.reader.read(observation), rho, over, lost

    def _look(self, episode: Episode) -> Moment:
        assert episode.last is not None
        return episode.last


def _listed(batch: Any) -> list[int]:
    """Plain numbers: to take them out of a JAX array one by one costs more than a step of many an environment."""
    return np.asarray(batch).reshape(-1).tolist()


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

    def _shapes(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        return (
            jax.ShapeDtypeStruct((self.slots,), self.host.reader.dtype),
            jax.ShapeDtypeStruct((self.space.size,), jnp.float32),
            jax.ShapeDtypeStruct((), jnp.bool_),
            jax.ShapeDtypeStruct((), jnp.bool_),
        )

    def reset(self, key: PRNGKeyArray) -> HostState:
        ticket = jax.random.randint(key, (), 0, 2**31 - 1)
        seen = jax.pure_callback(self.workers.reset, self._shapes(), ticket, vmap_method="broadcast_all")
        return HostState(ticket, jnp.int32(0), *seen)

    def step(self, key: PRNGKeyArray, state: HostState, action: Int[Array, ""]) -> HostState:
        asked = state.ticket, state.clock, action.astype(jnp.int32)
        seen = jax.pure_callback(self.workers.step, self._shapes(), *asked, vmap_method="broadcast_all")
        return HostState(state.ticket, state.clock + 1, *seen)

    def lost(self, state: HostState) -> Bool[Array, ""]:
        return state.lost

    def described(self) -> dict[str, Any]:
        world = {"space": space_to_json(self.space), "actions": self.host.actions, "slots": self.slots,
                 "vocabulary": self.vocabulary, "picture": list(self.picture or ())}  # fmt: skip
        return self.as_described(world)

    def frame(self, state: HostState) -> np.ndarray:
        """The environment's own picture of a state that was played here, not in a pool."""
        return self.host.picture(int(state.ticket), int(state.clock))


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

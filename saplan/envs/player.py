"""One Gymnasium environment, played move by move: a move may last several steps of the environment."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from saplan.algebra import Product
from saplan.envs.external import validate_rho, validate_size
from saplan.envs.readers import Reader, reader_of
from saplan.errors import InputError

GymAttributes = Callable[[Any, dict[str, Any], Any], Sequence[float]]
"""(observation, info, unwrapped environment) → ρ."""
SAMPLED = 20
"""Episodes in a sample of observations."""


class Snapshot(NamedTuple):
    """Observation, attributes and end of an episode at one step."""

    seen: np.ndarray
    rho: np.ndarray
    over: bool = False
    lost: bool = False
    """The episode ended by the rules, not by its time limit."""


class GymPlayer:
    """An environment with its attributes and the reader of its observations."""

    def __init__(
        self,
        make: Callable[[], gymnasium.Env[Any, Any]],
        attributes: GymAttributes,
        space: Product,
        endless: bool = False,
        hold: int | Sequence[int] = 1,
        reader: Reader | None = None,
    ) -> None:
        """Makes the environment. A move repeats its action for `hold` steps, of all or of each, or until ρ changes."""
        self.env, self.attributes, self.space, self.endless = make(), attributes, space, endless
        if not isinstance(self.env.action_space, spaces.Discrete):
            raise InputError(f"actions must be discrete, these are {self.env.action_space}")
        self.actions, self.first = int(self.env.action_space.n), int(self.env.action_space.start)
        self.hold = (hold,) * self.actions if isinstance(hold, int) else tuple(hold)
        if len(self.hold) != self.actions or min(self.hold) < 1:
            raise InputError(f"hold must be a number of steps, or one for each of {self.actions} actions, got {hold}")
        self.reader: Reader = reader or reader_of(self.env.observation_space)

    def reset(self, seed: int) -> Snapshot:
        """The first step of an episode."""
        return self._perceive(*self.env.reset(seed=seed))

    def step(self, action: int, rho: np.ndarray) -> Snapshot:
        """The step after a move from ρ: two changes never become one, unless one step of the environment makes both."""
        for _ in range(self.hold[action]):
            observation, _, terminated, truncated, info = self.env.step(self.first + action)
            ends = (False, False) if self.endless else (bool(terminated or truncated), bool(terminated))
            after = self._rho(observation, info)
            if ends[0] or np.any((after != rho) & ~self.space.exogenous):
                break
        return Snapshot(self.reader.read(observation), after, *ends)

    def sample(self, moves: int) -> list[Any]:
        """Observations of random moves, always the same."""
        rng, seen = np.random.default_rng(0), []
        for k in range(moves):
            if k % -(-moves // SAMPLED) == 0:
                self.env.reset(seed=k)
            action = int(rng.integers(self.actions))
            for _ in range(self.hold[action]):
                observation, _, terminated, truncated, _ = self.env.step(self.first + action)
                if terminated or truncated:
                    self.env.reset(seed=moves + k)
            seen.append(observation)
        return seen

    def picture(self) -> np.ndarray:
        """The environment's own picture."""
        picture = self.env.render() if self.env.render_mode == "rgb_array" else None
        if not isinstance(picture, np.ndarray):
            raise InputError("the environment returns no pictures: make it with render_mode='rgb_array'")
        return picture

    def _perceive(self, observation: Any, info: dict[str, Any]) -> Snapshot:
        return Snapshot(self.reader.read(observation), self._rho(observation, info))

    def _rho(self, observation: Any, info: dict[str, Any]) -> np.ndarray:
        rho = np.asarray(self.attributes(observation, info, self.env.unwrapped), np.float32)
        validate_size(self.space, rho.shape)
        return rho


def checked_player(make: Callable[[], GymPlayer]) -> GymPlayer:
    """A player whose first attributes lie in its space."""
    player = make()
    validate_rho(player.space, player.reset(0).rho)
    return player

"""Any saplan game as a Gymnasium environment with goals."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from numpy.typing import NDArray

from saplan.algebra import Product
from saplan.envs.goal_boxes import GoalBox, achieved_box, box_reached, goal_box
from saplan.errors import InputError, unknown_name
from saplan.games import make_game
from saplan.games.game import Game, State
from saplan.games.grid import SIDE
from saplan.games.scene import Scene
from saplan.goals import Goal, parse_goal
from saplan.render.ansi import scene_text
from saplan.render.pixels import paint

Observation = dict[str, NDArray[Any]]
Info = dict[str, Any]


LIMIT = 64.0
"""Largest attribute value that goals can express, if none goes round a larger circle."""


class GoalEnv(gymnasium.Env[Observation, np.int64]):
    """A game with one goal at a time, by the convention of Gymnasium's goal environments.

    - `observation`: the bag of words, int16. Words are names, not quantities: embed them and sum.
    - `achieved_goal`, `desired_goal`: boxes `(low_1..low_K, high_1..high_K)`, see `saplan.envs.goal_boxes`.
    - Reward: 0 where the goal is reached, else -1. The episode terminates there, or when the game is over.
    - `reset(options={"goal": "red=2 blue=1"})` sets a goal, as text or as a `Goal`. The default is `goal` of the
      constructor, or else a task that the game draws. The map depends on the seed alone, unless `options` holds a
      `state` of the game to begin from.
    - `info`: `rho` (text), `attributes` (ρ), `is_success`, `is_over`.

    The registered ids truncate after 150 steps.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium declares it so)
        "render_modes": ["rgb_array", "ansi"],
        "render_fps": 8,
    }

    def __init__(
        self,
        game: Game[Any] | str = "switches",
        *,
        goal: Goal | str | None = None,
        limit: float | None = None,
        render_mode: str | None = None,
        **rules: Any,
    ) -> None:
        """Accepts a game's name, with any of its rules changed (`kinds=2`), or a game of your own.

        `goal` is the goal of every episode; `limit` is the largest attribute value that goals can express: 64, or
        a whole turn of a circle, unless it is given.
        """
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise unknown_name("render mode", render_mode, self.metadata["render_modes"])
        if not isinstance(game, str) and rules:
            raise InputError(f"rules ({', '.join(rules)}) need a game's name: a game object already has its rules")
        self.game: Game[Any] = make_game(game, **rules) if isinstance(game, str) else game
        self.space = self.game.space
        turns = [block.period for block in self.space.blocks if np.isfinite(block.period)]
        self.limit = limit = max([LIMIT, *turns]) if limit is None else limit
        self.render_mode = render_mode
        self.default_goal = self._as_goal(goal)
        bounds = spaces.Box(-limit, limit, (2 * self.space.size,), np.float32)
        words = spaces.Box(0, self.game.vocabulary - 1, (self.game.slots,), np.int16)
        self.observation_space = cast(
            spaces.Space[Observation], spaces.Dict(observation=words, achieved_goal=bounds, desired_goal=bounds)
        )
        self.action_space = spaces.Discrete(len(self.game.actions))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """A fresh map and a goal."""
        super().reset(seed=seed)
        options = options or {}
        for name in options.keys() - {"goal", "state"}:
            raise unknown_name("reset option", name, ["goal", "state"])
        wanted = self._as_goal(options.get("goal", self.default_goal))
        key = jax.random.key(int(self.np_random.integers(2**31)))
        self._key, self.state, drawn, *seen = _begin(self.game, key)
        if "state" in options:
            self.state = options["state"]
            seen = [self.game.observe(self.state), self.game.attributes(self.state), self.game.over(self.state)]
        self.goal: Goal = jax.tree.map(np.asarray, drawn) if wanted is None else wanted
        self._desired = goal_box(self.space, self.goal, self.limit)
        return self._perceive(*seen)

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, Info]:
        """One action."""
        self._key, self.state, *seen = _advance(self.game, self._key, self.state, int(action))
        observation, info = self._perceive(*seen)
        reward = 0.0 if info["is_success"] else -1.0
        return observation, reward, info["is_success"] or info["is_over"], False, info

    def compute_reward(
        self, achieved_goal: GoalBox, desired_goal: GoalBox, info: Info | Sequence[Info]
    ) -> float | Float[np.ndarray, "..."]:
        """0 where the desired goal is reached, else -1: a number for one goal, an array for a batch."""
        del info
        rewards = np.where(box_reached(self.space, achieved_goal, desired_goal), np.float32(0), np.float32(-1))
        return rewards if rewards.ndim else float(rewards)

    def compute_terminated(
        self, achieved_goal: GoalBox, desired_goal: GoalBox, info: Info | Sequence[Info]
    ) -> bool | Bool[np.ndarray, "..."]:
        """True where the desired goal is reached or the game is over."""
        over = info.get("is_over", False) if isinstance(info, Mapping) else [i.get("is_over", False) for i in info]
        ends = box_reached(self.space, achieved_goal, desired_goal) | np.asarray(over, bool)
        return ends if ends.ndim else bool(ends)

    def compute_truncated(
        self, achieved_goal: GoalBox, desired_goal: GoalBox, info: Info | Sequence[Info]
    ) -> bool | Bool[np.ndarray, "..."]:
        """Never: the clock is Gymnasium's `TimeLimit`."""
        del info
        never = np.zeros(np.broadcast_shapes(achieved_goal.shape, desired_goal.shape)[:-1], bool)
        return never if never.ndim else False

    def render(self) -> Any:
        """The state as a picture or as text."""
        if self.render_mode == "rgb_array":
            return paint(self.scene(), least=(SIDE, SIDE))
        return scene_text(self.scene()) if self.render_mode == "ansi" else None

    def scene(self) -> Scene:
        """The state as people see it."""
        return self.game.scene(self.state)

    def _as_goal(self, goal: Goal | str | None) -> Goal | None:
        return parse_goal(self.space, goal) if isinstance(goal, str) else goal

    def _perceive(self, words: Array, rho: Array, over: Array) -> tuple[Observation, Info]:
        attributes = np.array(rho)
        achieved = achieved_box(self.space, attributes, self.limit)
        observation = {
            "observation": np.array(words),
            "achieved_goal": achieved,
            "desired_goal": self._desired.copy(),
        }
        info = {
            "rho": rho_text(self.space, attributes),
            "attributes": attributes,
            "is_success": bool(box_reached(self.space, achieved, self._desired)),
            "is_over": bool(over),
        }
        return observation, info


def rho_text(space: Product, rho: Float[np.ndarray, "K"]) -> str:
    """`red=2 blue=1`, the same as `Product.format` gives, and five times faster on NumPy arrays."""
    return " ".join(f"{n}={b.format(float(x))}" for n, b, x in zip(space.names, space.blocks, rho, strict=True))


# Compiled once per game, for any number of environments: a game is hashable and static.
@partial(jax.jit, static_argnums=0)
def _begin(game: Game[State], key: PRNGKeyArray) -> tuple[PRNGKeyArray, State, Goal, Array, Array, Array]:
    task_key, key = jax.random.split(key)
    state, goal = game.tasks(task_key)
    return key, state, goal, game.observe(state), game.attributes(state), game.over(state)


@partial(jax.jit, static_argnums=0)
def _advance(
    game: Game[State], key: PRNGKeyArray, state: State, action: Int[Array, ""]
) -> tuple[PRNGKeyArray, State, Array, Array, Array]:
    step_key, key = jax.random.split(key)
    state = game.step(step_key, state, action)
    return key, state, game.observe(state), game.attributes(state), game.over(state)

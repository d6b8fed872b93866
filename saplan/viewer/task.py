"""One task being carried out step by step: a map, a goal and a method. The page and the films show nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from saplan.baselines.methods import AnyAgent
from saplan.envs.arithmetic import why_not
from saplan.envs.thought import Thought, name_of, think
from saplan.errors import InputError
from saplan.games import Game
from saplan.games.scene import Scene
from saplan.goals import Goal, format_goal, parse_goal
from saplan.model.walk import IMPROVED, Planning, Walker, usual_planning
from saplan.viewer.maps import BUDGET, Rho, Start

PATIENCE = 10.0
"""Seconds that a person waits for a search. What is cut short says so."""


@partial(jax.jit, static_argnums=0)
def _over(game: Game[Any], state: Any) -> Bool[Array, ""]:
    return game.over(state)


@dataclass(frozen=True)
class Tried:
    """An attempt that has ended."""

    step: int
    """When it ended."""
    name: str
    change: str
    success: bool | None
    """None for a change that a method without attempts happened to make."""
    steps: int
    chance: float | None
    """What had been expected."""


@dataclass(frozen=True)
class Moment:
    """What there is to see after a step."""

    step: int
    scene: Scene
    rho: Rho
    tried: tuple[Tried, ...]
    """Attempts that this step ended."""
    thought: Thought | None
    """What the method thinks; None where it still thinks the same."""
    reached: bool
    ended: bool
    """Whether there is no further step: the goal is reached, the budget spent, or nothing can change any more."""


class Task:
    """A goal on a map, and how far a method has come with it."""

    def __init__(self, agent: AnyAgent, begin: Start, goal: str, seed: int) -> None:
        """`InputError` with a reason if the text is no goal, or none that could ever be reached."""
        self.game, self.seen = agent.game, agent.seen
        self.goal: Goal = parse_goal(self.game.space, goal)
        reason = why_not(self.game, np.array(begin.rho), self.goal)
        if reason is not None:
            raise InputError(f"out of reach: {reason}")
        one = Goal(np.asarray(self.goal.low)[None], np.asarray(self.goal.high)[None])
        states = jax.tree.map(lambda x: x[None], begin.state)
        self.walker: Walker = agent.walker(states, one, planning_of(agent))
        self._moves: Iterator[Any] = self.walker.moves(BUDGET, seed)
        self._told, self._scene = 0, begin.scene
        self.step = 0
        self.tried: list[Tried] = []
        self.trail: list[Rho] = [begin.rho]
        """ρ after every change."""
        self.walker.settle()
        self.thought = think(self.walker)
        """What the method thought when it last decided."""

    @property
    def text(self) -> str:
        """The goal as people write it."""
        return format_goal(self.game.space, self.goal)

    @property
    def reached(self) -> bool:
        """Whether the goal holds."""
        return bool(self.walker.done[0])

    @property
    def ended(self) -> bool:
        """Whether there is no further step."""
        return self.reached or self.step >= BUDGET or bool(_over(self.game, self._state))

    @property
    def _state(self) -> Any:
        return jax.tree.map(lambda x: x[0], self.walker.state)

    def now(self, thought: Thought | None = None, tried: tuple[Tried, ...] = ()) -> Moment:
        """What there is to see."""
        return Moment(self.step, self._scene, self.trail[-1], tried, thought, self.reached, self.ended)

    def forward(self) -> Moment:
        """One step, and what is decided after it."""
        if self.ended:
            return self.now()
        before = self._rho()
        next(self._moves)
        self.step += 1
        self._scene = self.game.scene(jax.device_get(self._state))
        rho = self._rho()
        if rho != before:
            self.trail.append(rho)
        decides = not self.reached and bool(self.walker.undecided[0] | self.walker.late()[0])
        self.walker.settle()
        tried = self._book(before, rho)
        if decides:
            self.thought = think(self.walker)
        return self.now(self.thought if decides else None, tried)

    def skip_to(self, step: int) -> None:
        """Goes on to a step at once, as after a reload."""
        while self.step < step and not self.ended:
            self.forward()

    def _rho(self) -> Rho:
        """The true ρ: people see the world as it is."""
        return tuple(map(float, _attributes(self.game, self._state)))

    def _book(self, before: Rho, after: Rho) -> tuple[Tried, ...]:
        """The attempts that have ended since the last look."""
        chosen = next((option for option in self.thought.options if option.chosen), None)
        chance = None if chosen is None else chosen.chance
        attempts = self.walker.walked.attempts[self._told :]
        self._told += len(attempts)
        tried = [self._named(attempt.delta, attempt.success, attempt.steps, chance) for attempt in attempts]
        if not attempts and after != before:
            delta = tuple(map(float, self.game.space.difference(jnp.array(after), jnp.array(before))))
            tried.append(self._named(delta, None, 0, None))
        self.tried += tried
        return tuple(tried)

    def _named(self, delta: Rho, success: bool | None, steps: int, chance: float | None) -> Tried:
        change = np.array(delta)
        return Tried(
            self.step, name_of(self.game, change), self.seen.space.format_delta(change), success, steps, chance
        )


@partial(jax.jit, static_argnums=0)
def _attributes(game: Game[Any], state: Any) -> Float[Array, "K"]:
    return game.truth(state)


def planning_of(agent: AnyAgent) -> Planning:
    """How an agent's plans are made: as in its evaluation, but within a few seconds."""
    settings = getattr(agent, "settings", None)
    return replace(IMPROVED if settings is None else usual_planning(settings), max_seconds=PATIENCE)

"""One task being carried out step by step: a map, a goal and a method. The page and the films show nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from saplan.errors import InputError
from saplan.games import Game
from saplan.games.scene import Scene
from saplan.goals import Goal, format_goal, parse_goal
from saplan.methods.executor import DEFAULT_PLANNER, Executor, PlannerSettings, planner_settings_for
from saplan.methods.registry import AnyAgent
from saplan.planning.certificate import why_not
from saplan.render.start import BUDGET, Rho, Start
from saplan.render.trace import Explanation, explain, name_of

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
    explanation: Explanation | None
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
        self.executor: Executor = agent.executor(states, one, planner_settings_of(agent))
        self._moves: Iterator[Any] = self.executor.moves(BUDGET, seed)
        self._told, self._scene = 0, begin.scene
        self.step = 0
        self.tried: list[Tried] = []
        self.history: list[Rho] = [begin.rho]
        """ρ after every change."""
        self.executor.settle()
        self.explanation = explain(self.executor)
        """What the method thought when it last decided."""

    @property
    def text(self) -> str:
        """The goal as people write it."""
        return format_goal(self.game.space, self.goal)

    @property
    def reached(self) -> bool:
        """Whether the goal holds."""
        return bool(self.executor.done[0])

    @property
    def ended(self) -> bool:
        """Whether there is no further step."""
        return self.reached or self.step >= BUDGET or bool(_over(self.game, self._state))

    @property
    def _state(self) -> Any:
        return jax.tree.map(lambda x: x[0], self.executor.state)

    def now(self, explanation: Explanation | None = None, tried: tuple[Tried, ...] = ()) -> Moment:
        """What there is to see."""
        return Moment(self.step, self._scene, self.history[-1], tried, explanation, self.reached, self.ended)

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
            self.history.append(rho)
        decides = not self.reached and bool(self.executor.undecided[0] | self.executor.late()[0])
        self.executor.settle()
        tried = self._book(before, rho)
        if decides:
            self.explanation = explain(self.executor)
        return self.now(self.explanation if decides else None, tried)

    def skip_to(self, step: int) -> None:
        """Goes on to a step at once, as after a reload."""
        while self.step < step and not self.ended:
            self.forward()

    def _rho(self) -> Rho:
        """The true ρ: people see the world as it is."""
        return tuple(map(float, _attributes(self.game, self._state)))

    def _book(self, before: Rho, after: Rho) -> tuple[Tried, ...]:
        """The attempts that have ended since the last look."""
        chosen = next((option for option in self.explanation.options if option.chosen), None)
        chance = None if chosen is None else chosen.chance
        attempts = self.executor.result.attempts[self._told :]
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


def planner_settings_of(agent: AnyAgent) -> PlannerSettings:
    """How an agent's plans are made: as in its evaluation, but within a few seconds."""
    settings = getattr(agent, "settings", None)
    return replace(DEFAULT_PLANNER if settings is None else planner_settings_for(settings), max_seconds=PATIENCE)

"""One task, carried out step by step: a map, a goal and an agent. The page and the films show it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from saplan.errors import InputError
from saplan.games.game import Game, State, change_between
from saplan.games.rule_cards import name_of
from saplan.games.scene import Scene
from saplan.goals import Goal, format_goal, parse_goal
from saplan.interpreter.program import interpretable
from saplan.methods.agent import DEFAULT_PLANNER, Agent, PlannerSettings, one_goal, planner_settings_for
from saplan.planning.certificate import why_not
from saplan.render.explanation import Explanation, explain
from saplan.render.failure import why_failed
from saplan.render.start import BUDGET, Rho, Start

LARGEST_SEED = 2**31
PATIENCE = 10.0
"""Seconds that a search may take while a person waits; a search that is cut short says so."""


@interpretable
@partial(jax.jit, static_argnums=0)
def _over(game: Game[State], state: State) -> Bool[Array, ""]:
    return game.over(state)


@dataclass(frozen=True)
class Tried:
    """An attempt that has ended."""

    step: int
    """The step that ended it."""
    name: str
    change: str
    success: bool | None
    """None for a change made by a method without attempts."""
    steps: int
    chance: float | None
    """Probability of success that the agent had estimated."""


@dataclass(frozen=True)
class Moment:
    """A task after one step, as it is shown."""

    step: int
    scene: Scene
    rho: Rho
    tried: tuple[Tried, ...]
    """Attempts that this step ended."""
    explanation: Explanation | None
    """The decision that followed the step; None if none was due."""
    reached: bool
    ended: bool
    """Whether this is the last step: the goal is reached, the budget is spent, or no attribute can change any more."""
    failure: tuple[str, ...] = ()
    """Why the task ended without its goal, in sentences."""


class Task:
    """A goal on a map, and the agent's progress towards it."""

    def __init__(self, agent: Agent, begin: Start, goal: str, seed: int) -> None:
        """Make the first decision. `InputError` if the text is not a goal, or if the goal is out of reach."""
        self.agent, self.game, self.seed = agent, agent.game, seed
        self.goal: Goal = parse_goal(self.game.space, goal)
        reason = why_not(self.game, np.array(begin.rho), self.goal)
        if reason is not None:
            raise InputError(f"out of reach: {reason}")
        states = jax.tree.map(lambda x: x[None], begin.state)
        self.executor = agent.executor(states, one_goal(self.game.space, self.goal), planner_settings_of(agent))
        self._moves: Iterator[Any] = self.executor.moves(BUDGET, seed)
        self._recorded, self._scene = 0, begin.scene
        self.step = 0
        self.tried: list[Tried] = []
        self.history: list[Rho] = [begin.rho]
        """ρ after every change."""
        self.executor.settle()
        self.explanation = explain(agent, self.executor.decisions[0])
        """The last decision in words."""

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
        """The task as it stands."""
        ended = self.ended
        failure = self._failure() if ended and not self.reached else ()
        return Moment(self.step, self._scene, self.history[-1], tried, explanation, self.reached, ended, failure)

    def turned_to(self, goal: str) -> "Task":
        """Another goal from the present state, with a budget of its own. `InputError` as for a first goal."""
        begin = Start(self._state, self._scene, self.history[-1])
        return Task(self.agent, begin, goal, (self.seed + self.step) % LARGEST_SEED)

    def forward(self) -> Moment:
        """Take one step, and make the decision that follows it."""
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
        tried = self._record(before, rho)
        if decides:
            self.explanation = explain(self.agent, self.executor.decisions[0])
        return self.now(self.explanation if decides else None, tried)

    def skip_to(self, step: int) -> None:
        """Step until a given step, as after a reload of the page."""
        while self.step < step and not self.ended:
            self.forward()

    def _failure(self) -> tuple[str, ...]:
        ending = "The budget is spent" if self.step >= BUDGET else "No change is possible any more"
        attempts = ((tried.name, tried.success) for tried in self.tried)
        return why_failed(self.game, self.history[-1], self.goal, attempts, self.explanation, ending)

    def _rho(self) -> Rho:
        """The true ρ: people see the world as it is."""
        return tuple(map(float, _attributes(self.game, self._state)))

    def _record(self, before: Rho, after: Rho) -> tuple[Tried, ...]:
        """Record the attempts that the last step ended, as expected by the decision before it."""
        chance = next((option.chance for option in self.explanation.options if option.chosen), None)
        attempts = self.executor.result.attempts[self._recorded :]
        self._recorded += len(attempts)
        tried = [self._named(attempt.delta, attempt.success, attempt.steps, chance) for attempt in attempts]
        if not attempts and after != before:
            delta = tuple(
                map(float, change_between(self.game.space, np.array(before, np.float32), np.array(after, np.float32)))
            )
            tried.append(self._named(delta, None, 0, None))
        self.tried += tried
        return tuple(tried)

    def _named(self, delta: Rho, success: bool | None, steps: int, chance: float | None) -> Tried:
        change = np.array(delta)
        text = self.agent.perceived.space.format_delta(change)
        return Tried(self.step, name_of(self.game, change), text, success, steps, chance)


@interpretable
@partial(jax.jit, static_argnums=0)
def _attributes(game: Game[State], state: State) -> Float[Array, "K"]:
    return game.truth(state)


def planner_settings_of(agent: Agent) -> PlannerSettings:
    """Planner settings of an agent's evaluation, with a bound on the seconds of a search."""
    settings = getattr(agent, "settings", None)
    return replace(DEFAULT_PLANNER if settings is None else planner_settings_for(settings), max_seconds=PATIENCE)

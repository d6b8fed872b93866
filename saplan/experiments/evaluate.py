"""Success on a fixed set of tasks: all of them carried out side by side, planned and replanned on the host."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from saplan.games import task_set
from saplan.goals import Goal
from saplan.model.agent import IMPROVED, Agent, Planning, choose_actions, price_first
from saplan.planning import Route
from saplan.planning.graph import NO_NODE

GROUP = 64
"""Tasks whose searches share a graph: enough to fill batches, few enough to fit in memory."""


@dataclass(frozen=True)
class Attempt:
    """One try at one transition while carrying out a task."""

    task: int
    rho: tuple[float, ...]
    transition: int
    success: bool
    steps: int


@dataclass
class Walk:
    """How the tasks of an evaluation went."""

    success: Bool[np.ndarray, "tasks"]
    steps: Int[np.ndarray, "tasks"]
    """Steps until success, or the whole budget."""
    attempts: list[Attempt] = field(default_factory=list)


def evaluate(
    agent: Agent,
    tasks: int = 1000,
    task_seed: int = 0,
    budget: int = 150,
    planning: Planning = IMPROVED,
    seed: int = 0,
) -> Walk:
    """Carries out fixed tasks; a task succeeds at the first moment its goal holds, within the budget of steps."""
    states, goals = task_set(agent.game, tasks, task_seed)
    return Walker(agent, states, goals, planning).walk(budget, seed)


class Walker:
    """Tasks being carried out side by side."""

    def __init__(self, agent: Agent, state: Any, goals: Goal, planning: Planning) -> None:
        """Everybody at the start, nothing planned."""
        self.agent, self.planning, self.state = agent, planning, state
        self.low, self.high = np.asarray(goals.low), np.asarray(goals.high)
        self.rho = np.asarray(jax.jit(jax.vmap(agent.game.attributes))(state))
        tasks = len(self.rho)
        self.routes: list[Route | None] = [None] * tasks
        self.transition = np.zeros(tasks, np.int32)
        self.clock = np.zeros(tasks, np.int32)
        self.done = self._reached()
        self.walked = Walk(self.done, np.zeros(tasks, int))
        self.random = np.random.default_rng(0)

    def walk(self, budget: int, seed: int) -> Walk:
        """Steps until all goals are reached or the budget is spent."""
        for _ in self.moves(budget, seed):
            pass
        return self.walked

    def moves(self, budget: int, seed: int) -> Iterator[Bool[np.ndarray, "tasks"]]:
        """The same, one step at a time: says where an attempt has just ended."""
        self.walked.steps[:] = np.where(self.done, 0, budget)
        moved = np.ones(len(self.rho), bool)
        for time, key in enumerate(jax.random.split(jax.random.key(seed), budget)):
            if self.done.all():
                break
            late = ~self.done & (self.clock >= self.planning.attempt_steps)
            self._close(late, np.zeros_like(late))
            self._decide(np.flatnonzero(~self.done & (moved | late)))
            moved = self._step(key)
            reached = ~self.done & self._reached()
            self.walked.steps[reached] = time + 1
            self.done |= reached
            yield moved | late

    def _reached(self) -> Bool[np.ndarray, "tasks"]:
        return np.all((self.rho >= self.low) & (self.rho <= self.high), axis=1)

    def _step(self, key: PRNGKeyArray) -> Bool[np.ndarray, "tasks"]:
        """One action everywhere; says where ρ has changed, which ends an attempt."""
        self.state, new_rho, hit = advance(
            self.agent, key, self.state, jnp.asarray(self.transition), jnp.asarray(self.clock)
        )
        after, self.clock = np.asarray(new_rho), self.clock + 1
        moved = np.any(after != self.rho, axis=1)
        self._close(moved & ~self.done, np.asarray(hit))
        self.rho = after
        return moved

    def _close(self, ended: Bool[np.ndarray, "tasks"], success: Bool[np.ndarray, "tasks"]) -> None:
        """Books the attempts that ended, and prices up the edges that failed."""
        for k in np.flatnonzero(ended):
            transition, steps = int(self.transition[k]), int(self.clock[k])
            attempt = Attempt(int(k), tuple(map(float, self.rho[k])), transition, bool(success[k]), steps)
            self.walked.attempts.append(attempt)
            route = self.routes[k]
            if not attempt.success and route is not None:
                route.penalise(self.rho[k], transition, self.planning.penalty)
        self.clock[ended] = 0

    def _decide(self, tasks: Int[np.ndarray, "m"]) -> None:
        """Chooses the next transition of these tasks, searching anew only where a route does not know ρ."""
        lost = [k for k in tasks if (route := self.routes[k]) is None or route.node(self.rho[k]) == NO_NODE]
        for start in range(0, len(lost), GROUP):
            group = np.array(lost[start : start + GROUP])
            goals = Goal(self.low[group], self.high[group])
            for k, route in zip(group, self.agent.routes(self.rho[group], goals, self.planning), strict=True):
                self.routes[k] = route
        first = None
        if self.planning.critic and len(tasks):
            first = np.asarray(price_first(self.agent, self.state, self.planning))
        for k in tasks:
            self.transition[k] = self._choose(self.routes[k], self.rho[k], None if first is None else first[k])

    def _choose(self, route: Route | None, rho: Float[np.ndarray, "K"], first: Float[np.ndarray, "C"] | None) -> int:
        assert route is not None
        node = route.node(rho)
        used = np.asarray(self.agent.memory.used, float)
        if node == NO_NODE:  # the search was spent before it began
            return self._draw(used)
        cost = route.field.graph.cost[node]
        options = route.options(node)
        best = options.min()
        if np.isfinite(best):
            if first is None:
                return int(np.argmin(options))
            # Only what leads nearer to the goal: else the present, seen as it is, would always look worse than the
            # average future, and the agent would put off what it has to do.
            remaining = route.field.remaining
            nearer = remaining[np.maximum(route.field.graph.ends[node], 0)] < remaining[node]
            close = (options <= best + self.planning.critic) & nearer
            return int(np.argmin(np.where(close, options - np.where(close, cost, 0) + first, np.inf)))
        # No known way leads there. Any change that can be made may open one: on ℝ the next draw differs.
        weights = np.exp(-cost)
        return self._draw(weights if weights.sum() > 0 else used)

    def _draw(self, weights: Float[np.ndarray, "C"]) -> int:
        """One of the transitions, all alike where nothing is known of any."""
        weights = weights if weights.sum() > 0 else np.ones(len(weights))
        return int(self.random.choice(len(weights), p=weights / weights.sum()))


def causes_of_failure(agent: Agent, walked: Walk, budget: int) -> dict[str, int]:
    """How many tasks failed for which reason, judged by the true rules of the game.

    A task that lost a fifth of its budget or more in failed attempts failed by them: by *navigation* if most of that
    was spent on transitions that were possible, else because the *edge detector was wrong*. Any other is *out of
    steps*.
    """
    wasted = np.zeros((len(walked.success), 2))
    failed = [attempt for attempt in walked.attempts if not attempt.success]
    if failed:
        rho = jnp.array([attempt.rho for attempt in failed])
        delta = agent.memory.delta[jnp.array([attempt.transition for attempt in failed])]
        possible = np.asarray(jax.vmap(agent.game.feasible)(rho, delta)) > 0
        for attempt, could in zip(failed, possible, strict=True):
            wasted[attempt.task, int(could)] += attempt.steps
    lost = ~walked.success
    by_attempts = lost & (wasted.sum(axis=1) >= budget / 5)
    navigation = by_attempts & (wasted[:, 1] >= wasted[:, 0])
    return {
        "navigation": int(navigation.sum()),
        "edge detector wrong": int((by_attempts & ~navigation).sum()),
        "out of steps": int((lost & ~by_attempts).sum()),
    }


@eqx.filter_jit
def advance(
    agent: Agent, key: PRNGKeyArray, state: Any, transition: Int[Array, "n"], clock: Int[Array, "n"]
) -> tuple[Any, Float[Array, "n K"], Bool[Array, "n"]]:
    """One step of every task: the new states, their ρ, and whether the change made was the wished one."""
    game, (act_key, step_key) = agent.game, jax.random.split(key)
    action = choose_actions(agent, act_key, state, transition, clock)
    following = jax.vmap(game.step)(jax.random.split(step_key, action.shape[0]), state, action)
    before, after = jax.vmap(game.attributes)(state), jax.vmap(game.attributes)(following)
    hit = game.space.same_change(game.space.difference(after, before), agent.memory.delta[transition])
    return following, after, hit

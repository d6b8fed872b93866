"""Plans carried out: one transition at a time, replanning by look-up, with failed transitions made costlier."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from saplan.games import Game
from saplan.goals import Goal, meets
from saplan.methods.agent import PlannerSettings
from saplan.methods.decision import Alternatives, Decision
from saplan.methods.executor import PolicyExecutor
from saplan.methods.policy import Policy
from saplan.planning import AnyRoute, Outcome, Raised, Successors, successors_of
from saplan.rl.settings import Settings

GRACE = 5
"""Steps that an attempt may always take longer than expected."""


BATCH = 128
"""Tasks whose first edges are priced together."""


class FirstEdges(NamedTuple):
    """All transitions from several present states, as the policy values them."""

    cost: Float[np.ndarray, "n C"] | None
    """None if the route alone prices first edges."""
    steps: Float[np.ndarray, "n C"]
    """Expected environment steps."""


@runtime_checkable
class RouteFinder(Protocol):
    """A search for routes."""

    def __call__(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planner: PlannerSettings, raised: Sequence[Raised] = ()
    ) -> Sequence[AnyRoute]:
        """Routes from several ρ to a goal each; `raised` names, for each, edges with an added cost."""


@runtime_checkable
class TransitionModel(Protocol):
    """The transitions that an agent knows, and the policy that executes them."""

    policy: Policy
    settings: Any

    @property
    def game(self) -> Game[Any]:
        """The game as it is."""

    @property
    def perceived(self) -> Game[Any]:
        """The game as the agent perceives it."""

    def first_edges(self, state: Any, planner: PlannerSettings) -> FirstEdges:
        """Cost and expected steps of every first transition, by the policy's value of the present states."""

    def known(self, rho: Float[np.ndarray, "K"]) -> Float[np.ndarray, "C"]:
        """Weight of each transition for a random choice at ρ, where no plan is known; zero for unknown ones."""

    def change(
        self, rho: Float[np.ndarray, "*n K"], transition: int | Int[np.ndarray, "*n"]
    ) -> Float[np.ndarray, "*n K"]:
        """The change δρ of a transition at ρ, or of several, one at each ρ."""

    def subgoal(
        self, rho: Float[np.ndarray, "*n K"], transition: int | Int[np.ndarray, "*n"]
    ) -> Float[np.ndarray, "*n W"]:
        """The subgoal by which the policy executes a transition at ρ, or several, one at each ρ."""

    @property
    def action_mask(self) -> Bool[np.ndarray, "C actions"] | None:
        """Actions that execution does not take while it attempts each transition; None for no mask."""

    def after_success(self, raised: Raised, rho: Float[np.ndarray, "K"], transition: int) -> Raised:
        """The added costs that remain after a success of a transition at ρ."""


class PlanExecutor(PolicyExecutor[Any]):
    """Follows plans."""

    def __init__(
        self, model: TransitionModel, find_routes: RouteFinder, state: Any, goals: Goal, planner: PlannerSettings
    ) -> None:
        """Start without plans."""
        settings: Settings = model.settings
        settings = replace(settings, temperature=planner.temperature or settings.temperature)
        super().__init__(model.policy, settings, model.game, model.perceived, state, goals)
        self.model, self.find_routes, self.planner = model, find_routes, planner
        self.mask = model.action_mask
        self._change = model.change
        tasks = len(self.rho)
        self.routes: list[AnyRoute | None] = [None] * tasks
        self.raised: list[list[tuple[np.ndarray, int, float]]] = [[] for _ in range(tasks)]
        """Transitions that failed so far, and the cost added to each."""
        self.limit = np.full(tasks, float(planner.attempt_steps))
        """Steps after which the present attempt of every task has failed."""
        self.random = np.random.default_rng(0)

    def late(self) -> Bool[np.ndarray, "tasks"]:
        return self.clock >= self.limit

    def ended(self, task: int, success: bool) -> None:
        """Record the attempt, and raise the cost of the edge if it failed."""
        super().ended(task, success)
        if success and self.raised[task]:
            kept = self.model.after_success(self.raised[task], self.rho[task], int(self.transition[task]))
            self.raised[task] = list(kept)
        elif not success:
            # A new search has to look beyond the edges that it knows, now that one costs more. Where the search found
            # no path, higher costs change nothing.
            self.raised[task].append((self.rho[task], int(self.transition[task]), self.planner.penalty))
            route = self.routes[task]
            if route is not None and route.outcome is Outcome.FOUND:
                self.routes[task] = None

    def decide(self, tasks: Int[np.ndarray, "m"]) -> list[Decision]:
        """Choose the next transition of these tasks; search only where the last search does not cover ρ."""
        if not len(tasks):
            return []
        self._search([k for k in map(int, tasks) if self._needs_search(k)])
        cost, steps = self._first_edges(tasks)
        rho, routes = self.rho[tasks], [route for k in tasks if (route := self.routes[k]) is not None]
        weighed = zip(tasks, routes, successors_of(routes, rho), steps, strict=True)
        found = [
            self._decide(int(k), route, successors, None if cost is None else cost[place], expected)
            for place, (k, route, successors, expected) in enumerate(weighed)
        ]
        chosen = np.array([decision.chosen for decision in found])
        patience = GRACE + self.planner.patience * steps[np.arange(len(tasks)), chosen]
        self.limit[tasks] = np.minimum(patience, self.planner.attempt_steps)
        self.transition[tasks] = chosen
        self.delta[tasks], self.subgoal[tasks] = self._change(rho, chosen), self.model.subgoal(rho, chosen)
        return found

    def _first_edges(self, tasks: Int[np.ndarray, "m"]) -> FirstEdges:
        """First edges of some tasks. Few of many tasks decide in the same step: those are taken out, in batches."""
        if len(self.rho) <= BATCH:
            first = self.model.first_edges(self.state, self.planner)
            return FirstEdges(None if first.cost is None else first.cost[tasks], first.steps[tasks])
        parts = []
        for start in range(0, len(tasks), BATCH):
            places = tasks[np.minimum(np.arange(start, start + BATCH), len(tasks) - 1)]
            parts.append(self.model.first_edges(take(self.state, places), self.planner))
        cost = [part.cost for part in parts if part.cost is not None]
        steps = np.concatenate([part.steps for part in parts])[: len(tasks)]
        return FirstEdges(np.concatenate(cost)[: len(tasks)] if cost else None, steps)

    def _needs_search(self, task: int) -> bool:
        """Whether the route of a task does not say how to continue from its ρ, and a new search may."""
        route, rho = self.routes[task], self.rho[task]
        return route is None or not route.knows(rho) or route.stale(rho)

    def _search(self, tasks: list[int]) -> None:
        """Find new routes."""
        if not tasks:
            return
        # Copies: costs that are raised later must not reach routes that were found without them.
        raised = [tuple(self.raised[k]) for k in tasks]
        goals = Goal(self.low[tasks], self.high[tasks])
        for k, route in zip(tasks, self.find_routes(self.rho[tasks], goals, self.planner, raised), strict=True):
            self.routes[k] = route

    def _decide(
        self,
        task: int,
        route: AnyRoute,
        successors: Successors | None,
        first: Float[np.ndarray, "C"] | None,
        steps: Float[np.ndarray, "C"],
    ) -> Decision:
        """Choose a transition by the route and by the policy's value of the present state."""
        rho = self.rho[task]
        if successors is None:  # the search was cut short at once, or the goal holds as the agent perceives it
            holds = np.all(meets(self.low[task], self.high[task], rho))
            return Decision(Outcome.HOLDS if holds else route.failure, self._draw(self.model.known(rho)))
        cost = successors.total if first is None else successors.with_first(first) + successors.raised
        chosen = self._choose(rho, successors, cost)
        outcome = Outcome.FOUND if np.isfinite(cost[chosen]) else route.failure
        weighed = (rho, successors.probability, steps.copy(), cost)
        alternatives = Alternatives(*weighed, self._change, "nats", self.planner.floor, self.planner.time_weight)
        return Decision(outcome, chosen, alternatives, route)

    def _choose(self, rho: Float[np.ndarray, "K"], successors: Successors, cost: Float[np.ndarray, "C"]) -> int:
        """The cheapest of the transitions whose paths are nearly the best; a random one without a path."""
        best = successors.total.min()
        if not np.isfinite(best):
            # Any change that can be made may open a path: on ℝ the next draw differs.
            weights = np.exp(-successors.cost)
            return self._draw(weights if weights.sum() > 0 else self.model.known(rho))
        # Only transitions that lead nearer to the goal: else the present, seen as it is, would always look worse than
        # the average future, and the agent would postpone the transition it needs.
        close = (successors.total <= best + self.planner.critic) & successors.nearer
        return int(np.argmin(np.where(close, cost, np.inf)))

    def _draw(self, weights: Float[np.ndarray, "C"]) -> int:
        """A random transition; uniform where all weights are zero."""
        weights = weights if weights.sum() > 0 else np.ones(len(weights))
        return int(self.random.choice(len(weights), p=weights / weights.sum()))


@eqx.filter_jit
def take(state: Any, places: Int[Array | np.ndarray, "m"]) -> Any:
    """Some of many states."""
    return jax.tree.map(lambda x: x[places], state)

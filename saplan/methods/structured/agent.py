"""A trained agent: names any goal in attributes, finds a path to it, and walks it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from saplan.games import Game
from saplan.games.game import uncertain_attributes
from saplan.goals import Goal, parse_goal
from saplan.methods.executor import DEFAULT_PLANNER, FirstEdges, PlanExecutor, PlannerSettings, choose_actions
from saplan.methods.policy import Policy
from saplan.methods.structured.edge_detector import EdgeDetector
from saplan.methods.structured.memory import Memory, Visited, marginals
from saplan.methods.structured.settings import StructuredSettings
from saplan.planning import ExpectedRoute, Landscape, Plan, Raised, Route, search
from saplan.rl.history import empty_history

BATCHES = (64, 256, 1024)
"""Sizes that edges are scored in: few, so that few programs are compiled; small, so that they stay in cache."""


class Agent(eqx.Module):
    """Policy, edge detector and memory of a game, trained or not."""

    policy: Policy
    detector: EdgeDetector
    memory: Memory
    visited: Visited
    game: Game[Any] = eqx.field(static=True)
    settings: StructuredSettings = eqx.field(static=True)
    transition_model: ClassVar[str | None] = "edge detector"

    def goal(self, text: str) -> Goal:
        """Reads a goal such as `"red=2 blue=1"`."""
        return parse_goal(self.game.space, text)

    def plan(self, state: Any, goal: Goal | str, planning: PlannerSettings = DEFAULT_PLANNER) -> Plan:
        """The cheapest path of transitions from a state's attributes to a goal."""
        goal = self.goal(goal) if isinstance(goal, str) else goal
        rho = np.asarray(self.game.attributes(state))
        one = Goal(np.asarray(goal.low)[None], np.asarray(goal.high)[None])
        route = self.planner(planning).routes(rho[None], one, planning)[0]
        return replace(route.plan(rho), uncertain_attributes=uncertain_attributes(self.game, state))

    def outlook(self, plan: Plan, planning: PlannerSettings = DEFAULT_PLANNER) -> list[tuple[float, float]]:
        """The probability and the expected steps of every transition of a plan."""
        if not plan.transitions:
            return []
        log_success, steps = edge_outlook(self, jnp.array(plan.rho[:-1]), planning)
        rows = zip(plan.transitions, np.exp(np.asarray(log_success)), np.asarray(steps), strict=True)
        return [(float(p[t]), float(n[t])) for t, p, n in rows]

    def act(self, key: PRNGKeyArray, state: Any, transition: int) -> int:
        """An action towards one transition of 𝓑, by the present state alone; a walker also heeds its trail."""
        states, label = jax.tree.map(lambda x: x[None], state), jnp.array([transition])
        subgoal, history = self.memory.delta[label], empty_history(1, 1)
        action, _ = choose_actions(self.policy, self.game, self.settings, key, states, subgoal, label, history)
        return int(action[0])

    def executor(self, state: Any, goals: Goal, planning: PlannerSettings = DEFAULT_PLANNER) -> PlanExecutor:
        """Several tasks, ready to be carried out side by side."""
        return PlanExecutor(self.planner(planning), state, goals, planning)

    def planner(self, planning: PlannerSettings) -> "Agent | InExpectation":
        """What makes the plans: the agent itself, or a planner in expectation where changes are uncertain."""
        return InExpectation(self, planning) if planning.outcomes > 1 and self.uncertain else self

    @property
    def uncertain(self) -> bool:
        """Whether some change in 𝓑 is not always the same."""
        grain = jnp.array(self.game.space.grain)
        return bool(jnp.any((self.memory.spread > grain) & self.trusted[:, None]))

    @property
    def trusted(self) -> Bool[Array, "C"]:
        """The entries of 𝓑 that plans are made of."""
        return self.memory.trusted(self.settings.rare)

    @property
    def seen(self) -> Game[Any]:
        """The game as this agent perceives it: as it is."""
        return self.game

    def first_edges(self, state: Any, planning: PlannerSettings) -> FirstEdges:
        """What every first transition costs, and how long it takes, by the policy's own value of the present states."""
        cost, steps = price_first(self, state, planning)
        return np.asarray(cost) if planning.critic else None, np.asarray(steps)

    def known(self, rho: Float[np.ndarray, "K"]) -> Float[np.ndarray, "C"]:
        """One for every entry of 𝓑 in use."""
        return np.asarray(self.trusted, float)

    def change(self, rho: Float[np.ndarray, "K"], transition: int) -> Float[np.ndarray, "K"]:
        """The change of an entry of 𝓑, the same everywhere: that is what an algebra is for."""
        return np.asarray(self.memory.delta)[transition]

    def subgoal(self, rho: Float[np.ndarray, "K"], transition: int) -> Float[np.ndarray, "K"]:
        """The policy is told the change."""
        return self.change(rho, transition)

    def routes(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planning: PlannerSettings, raised: Raised = ()
    ) -> list[Route]:
        """Searches from several ρ to a goal each; `raised` names edges whose cost is higher than it seems."""
        return search(
            rho,
            np.asarray(goals.low),
            np.asarray(goals.high),
            np.asarray(self.game.space.grain, np.float32),
            lambda nodes: self.edges(nodes, planning),
            planning.max_nodes,
            planning.max_seconds,
            raised,
        )

    def edges(self, rho: Float[np.ndarray, "n K"], planning: PlannerSettings) -> tuple[np.ndarray, np.ndarray]:
        """Ends and costs of all transitions from a batch of nodes, scored in batches of few sizes."""
        parts = in_batches(rho, lambda batch: price_edges(self, batch, planning))
        ends, cost = (np.concatenate([np.asarray(part[k]) for part in parts]) for k in (0, 1))
        return ends[: len(rho)], cost[: len(rho)]


CELL = 2
"""Grains per cell of the grid that plans in expectation are made on."""


class InExpectation:
    """The planner of an agent whose changes are uncertain: the agent itself, but for its routes."""

    def __init__(self, agent: Agent, planning: PlannerSettings) -> None:
        """Nothing met yet."""
        self.agent = agent
        discrete = np.asarray(agent.memory.spread).max(axis=0) <= np.asarray(agent.game.space.grain)
        cells = np.asarray(agent.game.space.grain, np.float32) * np.where(discrete, 1, CELL)
        self.begin = lambda: Landscape(
            cells.astype(np.float32), partial(spread_edges, agent, planning), planning.max_nodes, planning.max_seconds
        )
        self.landscape = self.begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "agent"), name)

    def routes(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planning: PlannerSettings, raised: Raised = ()
    ) -> list[ExpectedRoute]:
        """The ways from several ρ to a goal each, in expectation."""
        if self.landscape.full and not self.landscape.complete:
            self.landscape = self.begin()  # what lies around these ρ has no room in the old one
        return self.landscape.routes(rho, np.asarray(goals.low), np.asarray(goals.high), raised)


def spread_edges(
    agent: Agent, planning: PlannerSettings, rho: Float[np.ndarray, "n K"]
) -> tuple[Float[np.ndarray, "n C Q K"], Bool[np.ndarray, "n C Q"], Float[np.ndarray, "n C"]]:
    """Ends and costs of all uncertain transitions from a batch of nodes, scored in batches of few sizes."""
    parts = in_batches(rho, lambda batch: price_spread(agent, batch, planning))
    ends, real, cost = (np.concatenate([np.asarray(part[k]) for part in parts])[: len(rho)] for k in range(3))
    return ends, real, cost


def in_batches(rho: Float[np.ndarray, "n K"], ask: Callable[[np.ndarray], Any]) -> list[Any]:
    """Asks about many ρ in batches of few sizes; only the last is padded. Nothing is waited for."""
    parts = []
    for start in range(0, len(rho), BATCHES[-1]):
        part = rho[start : start + BATCHES[-1]]
        size = next(b for b in BATCHES if b >= len(part))
        parts.append(ask(np.concatenate([part, np.repeat(part[:1], size - len(part), axis=0)])))
    return parts


@partial(jax.jit, static_argnames="planning")
def price_spread(
    agent: Agent, rho: Float[Array, "n K"], planning: PlannerSettings
) -> tuple[Float[Array, "n C Q K"], Bool[Array, "n C Q"], Float[Array, "n C"]]:
    """The ends that transitions may have, equally likely, which of them can be, and costs; infinite where cut.

    A change is taken to be spread evenly, as wide as its standard deviation says.
    """
    space, memory = agent.game.space, agent.memory
    places = (2 * jnp.arange(planning.outcomes) + 1) / planning.outcomes - 1
    # Rounding leaves a trace of spread also where there is none, and a hammer less a thousandth is no hammer.
    spread = jnp.where(memory.spread > jnp.array(space.grain), memory.spread, 0.0)
    changes = memory.delta[:, None] + jnp.sqrt(3.0) * places[:, None] * spread[:, None]
    ends = space.compose(rho[:, None, None], changes)
    log_success, steps = edge_outlook(agent, rho, planning)
    cost = -log_success + planning.time_weight * steps
    # The detector knows nothing of places that training never visited.
    real = agent.trusted[:, None] & space.contains(ends) & agent.visited(space, ends)
    likely = agent.trusted & (log_success > jnp.log(planning.floor))
    return ends, real & likely[:, :, None], jnp.where(likely, cost, jnp.inf)


@partial(jax.jit, static_argnames="planning")  # a third of the overhead of `filter_jit`, paid per batch
def price_edges(
    agent: Agent, rho: Float[Array, "n K"], planning: PlannerSettings
) -> tuple[Float[Array, "n C K"], Float[Array, "n C"]]:
    """The ends of all transitions, and -log of their success with the price of their time; infinite where cut."""
    space, memory = agent.game.space, agent.memory
    # Changes are rounded to the grain of the graph: two that nearly cancel would else spin ever new nodes.
    grain = jnp.array(space.grain)
    ends = space.compose(rho[:, None], jnp.round(memory.delta / grain) * grain)
    log_success, steps = edge_outlook(agent, rho, planning)
    cost = -log_success + planning.time_weight * steps
    # A value that training never met is not trusted: the detector knows nothing there, and ℕ has no end.
    known = jnp.all(marginals(memory.explored + memory.executed, space, ends) > 0, axis=-1)
    real = agent.trusted & space.contains(ends) & known & (log_success > jnp.log(planning.floor))
    return ends, jnp.where(real, cost, jnp.inf)


def edge_outlook(
    agent: Agent, rho: Float[Array, "n K"], planning: PlannerSettings
) -> tuple[Float[Array, "n C"], Float[Array, "n C"]]:
    """The logarithm of the success and the expected steps of every transition at every ρ."""
    scores = agent.detector(agent.game.space, rho[:, None], agent.memory.delta[None])
    logit = scores.success if planning.calibrated else scores.feasible
    return jax.nn.log_sigmoid(logit), jnp.exp(jnp.clip(scores.log_steps, 0.0, 5.0))


@eqx.filter_jit
def price_first(agent: Agent, state: Any, planning: PlannerSettings) -> tuple[Float[Array, "n C"], Float[Array, "n C"]]:
    """The cost and the steps of a first transition from a present state, by the policy's own value: it sees how far
    things are.
    """
    settings = agent.settings
    rho = jax.vmap(agent.game.attributes)(state)
    log_success, _ = edge_outlook(agent, rho, planning)
    trunk = agent.policy.trunk(jax.vmap(agent.game.observe)(state), rho)
    logits = jax.vmap(lambda d: agent.policy.execution(trunk, d), out_axes=1)(agent.memory.delta)
    value = jax.nn.log_sigmoid(jnp.max(logits, axis=-1))
    steps = jnp.clip(1 + (value - log_success) / jnp.log(settings.discount), 1.0, settings.attempt_steps)
    return -log_success + planning.time_weight * steps, steps

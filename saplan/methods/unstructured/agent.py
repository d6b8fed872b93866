"""The unstructured planner in use: its table, sorted on the host, as a graph to plan in."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from saplan.algebra.hashing import hashed_rho
from saplan.games import Game
from saplan.goals import Goal, parse_goal
from saplan.methods.executor import DEFAULT_PLANNER, FirstEdges, PlanExecutor, PlannerSettings
from saplan.methods.policy import Policy
from saplan.methods.unstructured.rounding import rounded
from saplan.methods.unstructured.settings import UnstructuredSettings
from saplan.methods.unstructured.table import Table
from saplan.planning import Plan, Raised, Route, search
from saplan.planning.search import FREE
from saplan.rl.settings import Settings


class UnstructuredAgent(eqx.Module):
    """Policy and table of a game."""

    policy: Policy
    table: Table
    game: Game[Any] = eqx.field(static=True)
    settings: UnstructuredSettings = eqx.field(static=True)
    transition_model: ClassVar[str | None] = "table"

    @property
    def seen(self) -> Game[Any]:
        """The game as this agent perceives it: in whole numbers."""
        return rounded(self.game)

    def executor(self, state: Any, goals: Goal, planning: PlannerSettings = DEFAULT_PLANNER) -> PlanExecutor:
        """Several tasks, ready to be carried out side by side."""
        return PlanExecutor(TablePlanner(self), state, goals, planning)

    def plan(self, state: Any, goal: Goal | str, planning: PlannerSettings = DEFAULT_PLANNER) -> Plan:
        """The likeliest path of attribute sets, by the table."""
        goal = parse_goal(self.game.space, goal) if isinstance(goal, str) else goal
        rho = np.asarray(self.seen.attributes(state))[None]
        one = Goal(np.asarray(goal.low)[None], np.asarray(goal.high)[None])
        return TablePlanner(self).routes(rho, one, planning)[0].plan(rho[0])


class TablePlanner:
    """The table on the host, sorted, for planning."""

    def __init__(self, agent: UnstructuredAgent) -> None:
        """Takes the nodes that are in use."""
        self.agent, self.policy, self.game, self.seen = agent, agent.policy, agent.game, agent.seen
        self.settings: Settings = agent.settings
        table = jax.tree.map(np.asarray, agent.table)
        used = np.flatnonzero(table.tag)
        hashes = hashed_rho(table.rho[used])
        order = np.argsort(hashes)
        self.hashes, self.place = hashes[order], used[order]
        self.rho, self.edge, self.explored = table.rho, table.edge, table.explored
        with np.errstate(divide="ignore", invalid="ignore"):
            self.cost = np.where(table.tried > 0, -np.log(table.won / table.tried), np.inf).astype(np.float32)

    def find(self, rho: Float[np.ndarray, "n K"]) -> np.ndarray:
        """The places of ρ in the table, -1 where it was never seen."""
        hashes = hashed_rho(np.asarray(rho, np.float32))
        if not len(self.hashes):
            return np.full(len(hashes), -1)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, self.place[at], -1)

    def edges(self, rho: Float[np.ndarray, "n K"], planning: PlannerSettings) -> tuple[np.ndarray, np.ndarray]:
        """Ends and costs of all edges of a batch of nodes."""
        place = self.find(rho)
        edge = self.edge[place]
        there = (edge > 0) & (place >= 0)[:, None]
        cost = np.where(there & (self.cost[place] < -np.log(planning.floor)), self.cost[place] + FREE, np.inf)
        return self.rho[edge - 1], cost.astype(np.float32)

    def routes(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planning: PlannerSettings, raised: Raised = ()
    ) -> list[Route]:
        """Searches from several ρ to a goal each; `raised` names edges whose cost is higher than it seems."""
        grain = np.asarray(self.seen.space.grain, np.float32)
        low, high, edges = np.asarray(goals.low), np.asarray(goals.high), lambda nodes: self.edges(nodes, planning)
        bounds = planning.max_nodes, planning.max_seconds
        return search(np.asarray(rho, np.float32), low, high, grain, edges, *bounds, raised)

    def first_edges(self, state: Any, planning: PlannerSettings) -> FirstEdges:
        """The table alone decides; how long an attempt may take is the policy's to say."""
        return None, np.asarray(expected_steps(self.agent, state))

    def known(self, rho: Float[np.ndarray, "K"]) -> Float[np.ndarray, "D"]:
        """How often every change from ρ was seen."""
        place = int(self.find(rho[None])[0])
        return self.explored[place].astype(float) if place >= 0 else np.zeros(self.edge.shape[1])

    def subgoal(self, rho: Float[np.ndarray, "K"], transition: int) -> Float[np.ndarray, "K"]:
        """The target of an edge."""
        place = int(self.find(rho[None])[0])
        return self.rho[self.edge[place, transition] - 1] if place >= 0 and self.edge[place, transition] else rho

    def change(self, rho: Float[np.ndarray, "K"], transition: int) -> Float[np.ndarray, "K"]:
        """The change towards the target of an edge."""
        target = jnp.asarray(self.subgoal(rho, transition))
        return np.asarray(self.seen.space.difference(target, jnp.asarray(rho)))


@eqx.filter_jit
def expected_steps(agent: UnstructuredAgent, state: Any) -> Float[Array, "n D"]:
    """How long every change from the present states should take, by the policy's value of it."""
    game, settings = agent.seen, agent.settings
    rho = jax.vmap(game.attributes)(state)
    trunk = agent.policy.trunk(jax.vmap(game.observe)(state), rho)
    targets, _ = agent.table.targets(agent.table.find(rho))
    logits = jax.vmap(lambda subgoal: agent.policy.execution(trunk, subgoal), in_axes=1, out_axes=1)(targets)
    value = jax.nn.log_sigmoid(jnp.max(logits, axis=-1))
    return jnp.clip(1 + value / jnp.log(settings.discount), 1.0, settings.attempt_steps)

"""The unstructured agent: plans in the graph of its table, sorted on the host."""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from saplan.algebra.hashing import hashed_rho
from saplan.games import Game
from saplan.games.game import change_between
from saplan.goals import Goal
from saplan.interpreter.program import interpretable
from saplan.methods.agent import DEFAULT_PLANNER, PlannerSettings, first_action, in_words, one_goal
from saplan.methods.executor import choose_actions
from saplan.methods.plan_executor import FirstEdges, PlanExecutor
from saplan.methods.policy import Policy
from saplan.methods.unstructured.rounding import rounded
from saplan.methods.unstructured.settings import UnstructuredSettings
from saplan.methods.unstructured.table import Table
from saplan.planning import Edges, Graph, Plan, Raised, Route
from saplan.planning.route import FREE
from saplan.planning.search import search_in
from saplan.rl.repeated_actions import empty_history


class UnstructuredAgent(eqx.Module):
    """Policy and table of a game."""

    policy: Policy
    table: Table
    game: Game[Any] = eqx.field(static=True)
    settings: UnstructuredSettings = eqx.field(static=True)
    transition_model: ClassVar[str | None] = "table"

    @property
    def perceived(self) -> Game[Any]:
        """The game as this agent perceives it: in whole numbers."""
        return rounded(self.game)

    def plan(self, state: Any, goal: Goal | str, planner: PlannerSettings = DEFAULT_PLANNER) -> Plan:
        """Likeliest path of attribute sets, by the table."""
        rho = np.asarray(self.perceived.attributes(state))
        (route,) = TablePlanner(self).routes(rho[None], one_goal(self.game.space, goal), planner)
        return in_words(self.perceived, route.plan(rho))

    def act(self, key: PRNGKeyArray, state: Any, goal: Goal | str, planner: PlannerSettings = DEFAULT_PLANNER) -> int:
        """Next action from a state towards a goal. An executor is faster over several steps: it keeps its search."""
        return first_action(self, key, state, goal, planner)

    def execute(self, key: PRNGKeyArray, state: Any, transition: int) -> int:
        """An action towards one edge of the present node, by the present state alone."""
        states, game = jax.tree.map(lambda x: x[None], state), self.perceived
        subgoal = TablePlanner(self).subgoal(np.asarray(game.attributes(state)), transition)[None]
        label, history = jnp.array([transition]), empty_history(1, 1)
        action, _ = choose_actions(self.policy, game, self.settings, key, states, jnp.asarray(subgoal), label, history)
        return int(action[0])

    def executor(self, state: Any, goals: Goal, planner: PlannerSettings = DEFAULT_PLANNER) -> PlanExecutor:
        """Executor of several tasks side by side, one state and one goal each."""
        table = TablePlanner(self)
        return PlanExecutor(table, table.routes, state, goals, planner)


class TablePlanner:
    """The table on the host, sorted, for planning."""

    def __init__(self, agent: UnstructuredAgent) -> None:
        """Take the nodes that are in use."""
        self.agent, self.policy, self.settings = agent, agent.policy, agent.settings
        self.game, self.perceived = agent.game, agent.perceived
        self.graph: Graph | None = None
        table = jax.tree.map(np.asarray, agent.table)
        used = np.flatnonzero(table.tag)
        hashes = hashed_rho(table.rho[used])
        order = np.argsort(hashes)
        self.hashes, self.place = hashes[order], used[order]
        self.rho, self.edge, self.explored = table.rho, table.edge, table.explored
        with np.errstate(divide="ignore", invalid="ignore"):
            self.probability = np.where(table.tried > 0, table.won / table.tried, 0).astype(np.float32)
            self.cost = np.where(table.tried > 0, -np.log(table.won / table.tried), np.inf).astype(np.float32)

    def find(self, rho: Float[np.ndarray, "n K"]) -> np.ndarray:
        """Places of ρ in the table; -1 for ρ that was never seen."""
        hashes = hashed_rho(np.asarray(rho, np.float32))
        if not len(self.hashes):
            return np.full(len(hashes), -1)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, self.place[at], -1)

    def edges(self, rho: Float[np.ndarray, "n K"], planner: PlannerSettings) -> Edges:
        """All edges of a batch of nodes."""
        place = self.find(rho)
        edge = self.edge[place]
        there = (edge > 0) & (place >= 0)[:, None]
        likely = self.probability[place] > planner.floor
        cost = np.where(there & likely, self.cost[place] + FREE, np.inf)
        probability = np.where(there, self.probability[place], np.float32(np.nan))
        return Edges(self.rho[edge - 1], cost.astype(np.float32), probability)

    def routes(
        self, rho: Float[np.ndarray, "n K"], goals: Goal, planner: PlannerSettings, raised: Sequence[Raised] = ()
    ) -> list[Route]:
        """Routes from several ρ to a goal each; `raised` names edges with an added cost."""
        if self.graph is None or self.graph.full:
            grain = np.asarray(self.perceived.space.grain, np.float32)
            self.graph = Graph(grain, lambda nodes: self.edges(nodes, planner))
        low, high, bounds = np.asarray(goals.low), np.asarray(goals.high), (planner.max_nodes, planner.max_seconds)
        return search_in(self.graph, np.asarray(rho, np.float32), low, high, *bounds, raised)

    def first_edges(self, state: Any, planner: PlannerSettings) -> FirstEdges:
        """Expected steps by the policy; the table alone prices the edges."""
        return FirstEdges(None, np.asarray(expected_steps(self.agent, state)))

    def known(self, rho: Float[np.ndarray, "K"]) -> Float[np.ndarray, "D"]:
        """How often every change from ρ was seen."""
        place = int(self.find(rho[None])[0])
        return self.explored[place].astype(float) if place >= 0 else np.zeros(self.edge.shape[1])

    @property
    def action_mask(self) -> None:
        """No mask: its transitions are pairs of values, each seen too seldom to know what never leads to it."""
        return None

    def after_success(self, raised: Raised, rho: Float[np.ndarray, "K"], transition: int) -> Raised:
        """All of them: a table does not generalise, so a success says nothing about other places."""
        return raised

    def subgoal(
        self, rho: Float[np.ndarray, "*n K"], transition: int | Int[np.ndarray, "*n"]
    ) -> Float[np.ndarray, "*n K"]:
        """The target of an edge; ρ itself where there is none."""
        place = self.find(rho.reshape(-1, rho.shape[-1])).reshape(rho.shape[:-1])
        edge = self.edge[place, transition]
        return np.where(((place >= 0) & (edge > 0))[..., None], self.rho[edge - 1], rho)

    def change(
        self, rho: Float[np.ndarray, "*n K"], transition: int | Int[np.ndarray, "*n"]
    ) -> Float[np.ndarray, "*n K"]:
        """The change towards the target of an edge."""
        return np.asarray(change_between(self.perceived.space, rho, self.subgoal(rho, transition)))


@interpretable
@eqx.filter_jit
def expected_steps(agent: UnstructuredAgent, state: Any) -> Float[Array, "n D"]:
    """Expected steps of every change from the present states, by the policy's value of it."""
    game, settings = agent.perceived, agent.settings
    rho = jax.vmap(game.attributes)(state)
    trunk = agent.policy.trunk(jax.vmap(game.observe)(state), rho)
    targets, _ = agent.table.targets(agent.table.find(rho))
    value = jax.vmap(lambda target: agent.policy.execution_log_value(trunk, target), in_axes=1, out_axes=1)(targets)
    return jnp.clip(1 + value / jnp.log(settings.discount), 1.0, settings.attempt_steps)

"""The oracle: a reference that knows the rules and sees the whole state, hidden parts included.

Its attribute graph is exact and priced in steps; its navigation is breadth-first search. On mining it sees the yield of
the hammer in hand and minimises the expected number of steps over the hammers still to be bought, by value iteration
over amounts of minerals, hammer and place. It is not an upper bound: the fewest expected steps are not the highest
probability of arriving in time, and it guesses the length of walks, or rounds amounts, before it compares orders.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from saplan.errors import InputError
from saplan.games import GAMES, Game, Mining
from saplan.games.game import ItemFacts
from saplan.games.wrapper import GameWrapper
from saplan.goals import Goal
from saplan.interpreter.program import interpretable
from saplan.methods.agent import DEFAULT_PLANNER, PlannerSettings, first_action, in_words, one_goal
from saplan.methods.oracle.executor import SLACK, GraphOracle, OracleExecutor
from saplan.methods.oracle.mining import MiningOracle
from saplan.planning import Edges, Graph, Plan, Route
from saplan.planning.search import search_in

WALK = 4.0
"""Assumed steps of a change that needs a walk, before the map is looked at."""


def knowledge(game: Game[Any]) -> ItemFacts:
    """Facts about the items of a game; `InputError` if it has none, or if it is wrapped and so are its states."""
    facts = None if isinstance(game, GameWrapper) else game.item_facts()
    if facts is None:
        raise InputError(f"the oracle does not know the rules of {game.name} (it knows {', '.join(GAMES)})")
    return facts


class Oracle:
    """Knows the rules of a game."""

    transition_model: ClassVar[str | None] = None

    def __init__(self, game: Game[Any]) -> None:
        """`InputError` if it does not."""
        self.game, self.perceived, self.knowledge = game, game, knowledge(game)
        self.delta = np.array([delta for _, delta in game.admissible()], np.float32)
        self.graph = Graph(np.asarray(game.space.grain, np.float32), self.edges)

    def executor(self, state: Any, goals: Goal, planner: PlannerSettings = DEFAULT_PLANNER) -> OracleExecutor:
        """Executor of several tasks side by side, one state and one goal each."""
        return MiningOracle(self, state, goals) if isinstance(self.game, Mining) else GraphOracle(self, state, goals)

    def plan(self, state: Any, goal: Goal | str, planner: PlannerSettings = DEFAULT_PLANNER) -> Plan:
        """Path with the fewest steps, as assumed before the map is looked at."""
        rho = np.asarray(self.game.attributes(state))
        return in_words(self.game, self.routes(rho[None], one_goal(self.game.space, goal))[0].plan(rho))

    def act(self, key: PRNGKeyArray, state: Any, goal: Goal | str, planner: PlannerSettings = DEFAULT_PLANNER) -> int:
        """Next action from a state towards a goal. An executor is faster over several steps: it keeps its search."""
        return first_action(self, key, state, goal, planner)

    def change(self, rho: Float[np.ndarray, "K"], transition: int) -> Float[np.ndarray, "K"]:
        """The change of a transition, the same at every ρ."""
        change: Float[np.ndarray, "K"] = self.delta[transition]
        return change

    def routes(self, rho: Float[np.ndarray, "n K"], goals: Goal) -> list[Route]:
        """Exact routes from several ρ to a goal each."""
        if self.graph.full:
            self.graph = Graph(self.graph.grain, self.edges)
        return search_in(self.graph, rho, np.asarray(goals.low), np.asarray(goals.high), margin=SLACK)

    def edges(self, rho: Float[np.ndarray, "n K"]) -> Edges:
        """All admissible changes of a batch of nodes."""
        size = 2 ** int(np.ceil(np.log2(max(64, len(rho)))))
        padded = np.concatenate([rho, np.repeat(rho[:1], size - len(rho), axis=0)])
        ends, chance = (np.asarray(x)[: len(rho)] for x in exact_edges(self.game, padded, self.delta))
        cost = np.where(self.knowledge.served.any(axis=1), WALK, 1.0)
        with np.errstate(divide="ignore"):
            return Edges(ends, np.where(chance > 0, cost / chance, np.inf).astype(np.float32), chance)


@interpretable
@eqx.filter_jit
def exact_edges(
    game: Game[Any], rho: Float[Array, "n K"], delta: Float[Array, "T K"]
) -> tuple[Float[Array, "n T K"], Float[Array, "n T"]]:
    """Ends of all changes, and the probability by the rules that each is possible."""
    ends = game.space.compose(rho[:, None], delta[None])
    chance = jax.vmap(jax.vmap(game.feasible, (None, 0)), (0, None))(rho, delta)
    return ends, jnp.where(game.space.contains(ends), chance, 0.0)

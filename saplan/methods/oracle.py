"""The oracle: a reference that knows the rules and sees the whole state, hidden parts included.

Its attribute graph is exact and priced in steps; its navigation is breadth-first search. On mining it sees the yield of
the hammer in hand and minimises the expected number of steps over the hammers still to be bought, by value iteration
over amounts of minerals, hammer and place. It is not an upper bound: the fewest expected steps are not the highest
probability of arriving in time, and it guesses the length of walks, or rounds amounts, before it compares orders.
"""

import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float16, Int, Int32, PRNGKeyArray

from saplan.errors import InputError
from saplan.games import GAMES, Game, Mining
from saplan.games.game import ItemFacts
from saplan.games.grid import NOWHERE, GridState, Map, Places, to_cell, to_place
from saplan.games.wrapper import GameWrapper
from saplan.goals import Goal
from saplan.interpreter.program import AnyKey, interpretable
from saplan.methods.agent import DEFAULT_PLANNER, PlannerSettings, first_action, in_words, one_goal
from saplan.methods.decision import Alternatives, Decision
from saplan.methods.executor import Executor
from saplan.planning import Edges, Graph, Outcome, Plan, Route
from saplan.planning.search import search_in

FAR = 10_000
"""More steps than any walk takes."""
WALK = 4.0
"""Assumed steps of a change that needs a walk, before the map is looked at."""
SLACK = 6.0
"""First edges whose paths cost at most this much more than the best are compared by the true length of their walk."""


def knowledge(game: Game[Any]) -> ItemFacts:
    """Facts about the items of a game; `InputError` if it has none, or if it is wrapped and so are its states."""
    facts = None if isinstance(game, GameWrapper) else game.item_facts()
    if facts is None:
        raise InputError(f"the oracle does not know the rules of {game.name} (it knows {', '.join(GAMES)})")
    return facts


def items(state: GridState) -> Places:
    """Places of all items of a state, in the order of the facts."""
    return state.items


def walks(ground: Map, places: Int[Array, "items"], side: int) -> Int32[Array, "items cells"]:
    """The length of the shortest walk from every cell to every place, FAR where there is none."""
    cell = jnp.arange(side * side)
    free = (cell // side < ground.height) & (cell % side < ground.width)
    free &= ~jnp.any(to_place(cell, side)[:, None] == ground.walls, axis=1)
    start = jnp.where((to_place(cell, side) == places[:, None]) & free, 0, FAR)

    def spread(length: Array) -> Array:
        around = jnp.pad(length.reshape(-1, side, side), ((0, 0), (1, 1), (1, 1)), constant_values=FAR)
        near = jnp.minimum(
            jnp.minimum(around[:, :-2, 1:-1], around[:, 2:, 1:-1]),
            jnp.minimum(around[:, 1:-1, :-2], around[:, 1:-1, 2:]),
        )
        return jnp.where(free, jnp.minimum(length, near.reshape(length.shape) + 1), FAR)

    return jax.lax.while_loop(
        lambda pair: jnp.any(pair[0] != pair[1]), lambda pair: (pair[1], spread(pair[1])), (start, spread(start))
    )[1]


def step_towards(length: Int32[Array, "cells"], cell: Int[Array, ""]) -> Int[Array, ""]:
    """The move that shortens a walk most."""
    side = side_of(length)
    row, column = cell // side, cell % side
    around = jnp.pad(length.reshape(side, side), 1, constant_values=FAR)
    return jnp.argmin(
        jnp.stack(
            [around[row, column + 1], around[row + 2, column + 1], around[row + 1, column], around[row + 1, column + 2]]
        )
    )


def side_of(length: Int32[Array, "... cells"]) -> int:
    """The number of columns of an array of walks."""
    return math.isqrt(length.shape[-1])


def all_walks(state: Any) -> Int32[Array | np.ndarray, "tasks items cells"]:
    """The walks of every task's map; they never change. The arrays are as wide as the largest map."""
    ground = state.ground
    return _all_walks(state, int(max(np.max(ground.height), np.max(ground.width))))


@interpretable
@eqx.filter_jit
def _all_walks(state: Any, side: int) -> Int32[Array, "tasks items cells"]:
    found: Array = jax.lax.map(lambda one: walks(one.ground, items(one), side), state, batch_size=64)
    return found


@interpretable
@eqx.filter_jit
def lengths(state: Any, walk: Int32[Array, "tasks items cells"]) -> Int32[Array, "tasks items"]:
    """How far every item that is still there is from the agent."""

    def one(state: Any, walk: Array) -> Array:
        return jnp.where(items(state) == NOWHERE, FAR, walk[:, cell_of(state, side_of(walk))])

    return jax.vmap(one)(state, walk)


def cell_of(state: GridState, side: int) -> Int[Array, ""]:
    """The cell the agent stands in."""
    return to_cell(state.ground.agent, side).astype(jnp.int32)


@interpretable
@eqx.filter_jit
def walk_on(
    state: Any, walk: Int32[Array, "tasks items cells"], item: Int[Array, "tasks"], action: Int[Array, "tasks"]
) -> Int[Array, "tasks"]:
    """One step towards an item, and its action once there; an item of -1 means that here is as good as anywhere."""

    def one(state: Any, walk: Array, item: Array, action: Array) -> Array:
        cell = cell_of(state, side_of(walk))
        there = (item < 0) | (walk[item, cell] == 0)
        return jnp.where(there, action, step_towards(walk[item], cell))

    return jax.vmap(one)(state, walk, item, action)


class Oracle:
    """Knows the rules of a game."""

    transition_model: ClassVar[str | None] = None

    def __init__(self, game: Game[Any]) -> None:
        """`InputError` if it does not."""
        self.game, self.perceived, self.knowledge = game, game, knowledge(game)
        self.delta = np.array([delta for _, delta in game.admissible()], np.float32)
        self.graph = Graph(np.asarray(game.space.grain, np.float32), self.edges)

    def executor(self, state: Any, goals: Goal, planner: PlannerSettings = DEFAULT_PLANNER) -> "OracleExecutor":
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


class OracleExecutor(Executor[Any]):
    """Walks to the item that serves the chosen change."""

    def __init__(self, oracle: Oracle, state: Any, goals: Goal) -> None:
        """Measure all walks on the maps."""
        super().__init__(oracle.game, state, goals)
        self.oracle, self.walk_lengths = oracle, all_walks(state)
        self.change = np.zeros(len(self.rho), np.int32)
        self.item = np.full(len(self.rho), -1, np.int32)

    def late(self) -> Bool[np.ndarray, "tasks"]:
        return np.zeros(len(self.rho), bool)

    def act(self, key: AnyKey) -> Int[Array | np.ndarray, "tasks"]:
        action = self.oracle.knowledge.action[self.change]
        return walk_on(self.state, self.walk_lengths, self.item, action)

    def set_out(self, task: int, change: int, item: int) -> None:
        """Set out for a change, and for the item that serves it (-1 if the change needs none)."""
        self.change[task], self.item[task] = change, item
        self.delta[task] = self.oracle.delta[change]

    def nearest(self) -> tuple[Float[np.ndarray, "tasks T"], Int[np.ndarray, "tasks T"]]:
        """Steps of every change by its nearest item, and that item."""
        served = self.oracle.knowledge.served
        length = np.asarray(lengths(self.state, self.walk_lengths))[:, None, :]
        length = np.where(served, length, FAR)
        anywhere = ~served.any(axis=1)
        return (
            np.where(anywhere, 1, length.min(axis=2) + 1).astype(float),
            np.where(anywhere, -1, length.argmin(axis=2)),
        )


class GraphOracle(OracleExecutor):
    """Follows shortest paths in the exact attribute graph; the true length of the first walk decides between them."""

    def __init__(self, oracle: Oracle, state: Any, goals: Goal) -> None:
        """Start without plans."""
        super().__init__(oracle, state, goals)
        self.routes: list[Route | None] = [None] * len(self.rho)

    def decide(self, tasks: Int[np.ndarray, "m"]) -> list[Decision]:
        """Choose the next change of these tasks."""
        unrouted = [k for k in tasks if (route := self.routes[k]) is None or not route.knows(self.rho[k])]
        if unrouted:
            goals = Goal(self.low[unrouted], self.high[unrouted])
            for k, route in zip(unrouted, self.oracle.routes(self.rho[unrouted], goals), strict=True):
                self.routes[k] = route
        steps, item = self.nearest()
        return [self._decide(int(k), steps[k], item[k]) for k in tasks]

    def _decide(self, task: int, steps: Float[np.ndarray, "T"], item: Int[np.ndarray, "T"]) -> Decision:
        route, rho = self.routes[task], self.rho[task]
        assert route is not None
        successors = route.successors(rho)
        if successors is None:
            return Decision(route.failure)
        cost = successors.with_first(steps)
        alternatives = Alternatives(
            rho, successors.probability, steps.copy(), cost, self.oracle.change, "steps", step_price=1.0
        )
        close = successors.nearer & np.isfinite(cost) & (successors.total <= successors.total.min() + SLACK)
        if not close.any():
            return Decision(route.failure, None, alternatives, route)
        chosen = int(np.argmin(np.where(close, cost, np.inf)))
        self.set_out(task, chosen, int(item[chosen]))
        return Decision(Outcome.FOUND, chosen, alternatives, route)


FINE = 8
"""Cells per unit of a mineral: a dump is exactly one unit."""
YIELDS = 5
"""Levels of yield in value iteration."""
SWEEPS = 120
"""Passes of value iteration, more than changes in any sensible plan."""
SETTLED = 0.01
"""Steps that values may still change by when iteration ends."""


class MiningOracle(OracleExecutor):
    """Takes the fewest steps in expectation, by value iteration over amounts, hammer and place."""

    def __init__(self, oracle: Oracle, state: Any, goals: Goal) -> None:
        """Solve every task beforehand."""
        super().__init__(oracle, state, goals)
        assert isinstance(oracle.game, Mining)
        low, high = jnp.asarray(self.low), jnp.asarray(self.high)
        self.values = np.asarray(solve_mining(oracle.game, state, jnp.asarray(self.walk_lengths), low, high))

    def decide(self, tasks: Int[np.ndarray, "m"]) -> list[Decision]:
        """Choose the item that leads to the goal soonest."""
        length = np.asarray(lengths(self.state, self.walk_lengths))
        return [self._decide(int(k), length[k]) for k in tasks]

    def _decide(self, task: int, length: Int[np.ndarray, "items"]) -> Decision:
        """Choose an item by the steps that are left by way of each. There is no path: every value stands for many."""
        remaining, served = self.remaining(task, length), self.oracle.knowledge.served
        item = int(np.argmin(remaining))
        chosen = int(np.argmax(served[:, item]))
        self.set_out(task, chosen, item)
        by_change = np.where(served, remaining, FAR)
        nearest, cost = by_change.argmin(axis=1), by_change.min(axis=1)
        leads, unknown = cost < FAR, np.full(len(cost), np.nan)
        steps, cost = np.where(leads, length[nearest] + 1, np.nan), np.where(leads, cost, np.inf)
        alternatives = Alternatives(self.rho[task], unknown, steps, cost, self.oracle.change, "steps", step_price=1.0)
        return Decision(Outcome.FOUND if leads.any() else Outcome.UNREACHABLE, chosen, alternatives)

    def remaining(self, task: int, length: Int[np.ndarray, "items"]) -> Float[np.ndarray, "items"]:
        """Expected steps to the goal by way of every item; `FAR` without a path."""
        game = self.oracle.game
        assert isinstance(game, Mining)
        q, amounts = game.minerals, self.rho[task, : game.minerals]
        yields, level = float(self.state.yields[task]), 0
        if self.rho[task, -1] > 0:
            level = 1 + int(np.argmin(np.abs(yield_levels(game) - yields)))
        cell = tuple(np.rint(amounts * FINE).astype(int))
        total: Float[np.ndarray, "items"] = length + self.values[(task, level, slice(None), *cell)].astype(float)
        # Whether a blow or a dump is allowed from here is known exactly.
        blows, dumps = amounts + yields * np.eye(q), amounts - game.dumps * np.eye(q)
        allowed = np.asarray(game.inside(jnp.asarray(np.concatenate([blows, dumps]))))
        total[: q * game.deposits][~np.repeat(allowed[:q], game.deposits)] = FAR
        total[q * game.deposits + 1 :][~allowed[q:]] = FAR
        return total


def yield_levels(game: Mining) -> Float[np.ndarray, "levels"]:
    """Levels of yield in value iteration: the middles of equally likely ranges."""
    return game.yield_low + (game.yield_high - game.yield_low) * (np.arange(YIELDS) + 0.5) / YIELDS


@eqx.filter_jit
def solve_mining(
    game: Mining, state: Any, walk: Int32[Array, "tasks items cells"], low: Array, high: Array
) -> Float16[Array, "tasks levels items ..."]:
    """Expected steps to the goal after arriving at every item, by hammer (none, or one of each yield) and amounts."""

    def one(task: tuple[Any, Array, Array, Array]) -> Array:
        return _solve(game, *task).astype(jnp.float16)

    solved: Array = jax.lax.map(one, (state, walk, jnp.asarray(low), jnp.asarray(high)), batch_size=16)
    return solved


def _solve(game: Mining, state: Any, walk: Array, low: Array, high: Array) -> Array:
    q, d = game.minerals, game.deposits
    sides = [int(np.ceil((c + game.outer) * FINE)) + 1 for c in game.centre]
    points = jnp.stack(jnp.meshgrid(*[jnp.arange(n) / FINE for n in sides], indexing="ij"), axis=-1)
    inside = game.inside(points)
    at_goal = jnp.all((points >= low[:q]) & (points <= high[:q]), axis=-1) & inside
    goal = jnp.stack([at_goal & (low[q] <= h) & (h <= high[q]) for h in (0, *[1] * YIELDS)])
    cells = to_cell(items(state), side_of(walk))
    between = walk[:, cells.astype(jnp.int32)].T.astype(jnp.float32)  # from item, to item
    drop = -round(game.dumps * FINE)
    blows = [round(float(x) * FINE) for x in yield_levels(game)]

    def moved(value: Array, axis: int, by: int) -> Array:
        """Values after a change of one mineral, FAR where it is not allowed."""
        index = jnp.arange(value.shape[axis]) + by
        valid = ((index >= 0) & (index < value.shape[axis])).reshape([-1 if k == axis else 1 for k in range(q)])
        return jnp.where(jnp.roll(inside, -by, axis) & valid, jnp.roll(value, -by, axis), FAR)

    def arrive(value: Array) -> Array:
        """Expected steps once one stands on an item: (hammer, item, amounts)."""
        nothing = jnp.full(tuple(sides), float(FAR))
        rows: list[list[Array]] = [[] for _ in range(1 + YIELDS)]
        for item in range(game.items):
            for level, row in enumerate(rows):
                if item < q * d:
                    row.append(moved(value[0, item], item // d, blows[level - 1]) if level else nothing)
                elif item == q * d:
                    row.append(nothing if level else jnp.mean(value[1:, item], axis=0))
                else:
                    row.append(moved(value[level, item], item - q * d - 1, drop))
        return jnp.minimum(jnp.stack([jnp.stack(row) for row in rows]) + 1, FAR)

    def sweep(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        value, _, k = carry
        best = jnp.min(between.reshape(1, game.items, game.items, *(1,) * q) + arrive(value)[:, None], axis=2)
        new = jnp.where(goal[:, None], 0.0, jnp.minimum(jnp.where(inside, best, FAR), FAR))
        return new, jnp.max(jnp.abs(new - value)), k + 1

    start = jnp.where(goal[:, None], 0.0, jnp.full((1 + YIELDS, game.items, *sides), float(FAR)))
    goes_on = lambda carry: (carry[1] > SETTLED) & (carry[2] < SWEEPS)  # noqa: E731
    value, _, _ = jax.lax.while_loop(goes_on, sweep, (start, jnp.float32(FAR), jnp.int32(0)))
    return arrive(value)

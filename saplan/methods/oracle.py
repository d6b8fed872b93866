"""The oracle: a reference that knows the rules and sees everything, also what is hidden from agents.

Its attribute graph is exact and priced in steps, its navigation is breadth-first search. On mining it sees the yield of
the hammer in hand and minimises the expected number of steps over the hammers still to be bought: value iteration over
amounts of minerals, hammer and place. It is not an upper bound: fewest steps in expectation is not the highest chance
of arriving in time, and it prices walks, or rounds amounts, before it has looked at every order of changes.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float16, Int, Int32, PRNGKeyArray

from saplan.errors import InputError
from saplan.games import GAMES, Game, Mining
from saplan.games.game import ItemFacts
from saplan.games.grid import CELLS, NOWHERE, PITCH, SIDE, GridState, Map, Places, to_place
from saplan.games.wrapper import GameWrapper
from saplan.goals import Goal, parse_goal
from saplan.methods.executor import DEFAULT_PLANNER, GROUP, Executor, PlannerSettings
from saplan.planning import Plan, Route, search

FAR = 10_000
"""More steps than any walk takes."""
WALK = 4.0
"""What a change that needs a walk is thought to cost in steps, before the map is looked at."""
SLACK = 6.0
"""First edges whose paths cost at most this much more than the best are compared by the real length of their walk."""


def knowledge(game: Game[Any]) -> ItemFacts:
    """Facts about the items of a game; `InputError` if it has none, or if it is wrapped and so are its states."""
    facts = None if isinstance(game, GameWrapper) else game.item_facts()
    if facts is None:
        raise InputError(f"the oracle does not know the rules of {game.name} (it knows {', '.join(GAMES)})")
    return facts


def items(state: GridState) -> Places:
    """Places of all items of a state, in the order of the facts."""
    return state.items


def walks(ground: Map, places: Int[Array, "items"]) -> Int32[Array, "items cells"]:
    """The length of the shortest walk from every cell to every place, FAR where there is none."""
    cell = jnp.arange(CELLS)
    free = (cell // SIDE < ground.height) & (cell % SIDE < ground.width)
    free &= ~jnp.any(to_place(cell)[:, None] == ground.walls, axis=1)
    start = jnp.where((to_place(cell) == places[:, None]) & free, 0, FAR)

    def spread(length: Array) -> Array:
        around = jnp.pad(length.reshape(-1, SIDE, SIDE), ((0, 0), (1, 1), (1, 1)), constant_values=FAR)
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
    row, column = cell // SIDE, cell % SIDE
    around = jnp.pad(length.reshape(SIDE, SIDE), 1, constant_values=FAR)
    return jnp.argmin(
        jnp.stack(
            [around[row, column + 1], around[row + 2, column + 1], around[row + 1, column], around[row + 1, column + 2]]
        )
    )


@eqx.filter_jit
def all_walks(state: Any) -> Int32[Array, "tasks items cells"]:
    """The walks of every task's map; they never change."""
    return jax.lax.map(lambda one: walks(one.ground, items(one)), state, batch_size=64)


@eqx.filter_jit
def lengths(state: Any, walk: Int32[Array, "tasks items cells"]) -> Int32[Array, "tasks items"]:
    """How far every item that is still there is from the agent."""

    def one(state: Any, walk: Array) -> Array:
        return jnp.where(items(state) == NOWHERE, FAR, walk[:, cell_of(state)])

    return jax.vmap(one)(state, walk)


def cell_of(state: Any) -> Int[Array, ""]:
    """The cell the agent stands in."""
    return (state.ground.agent // PITCH * SIDE + state.ground.agent % PITCH).astype(jnp.int32)


@eqx.filter_jit
def walk_on(
    state: Any, walk: Int32[Array, "tasks items cells"], item: Int[Array, "tasks"], action: Int[Array, "tasks"]
) -> Int[Array, "tasks"]:
    """One step towards an item, and its action once there; an item of -1 means that here is as good as anywhere."""

    def one(state: Any, walk: Array, item: Array, action: Array) -> Array:
        cell = cell_of(state)
        there = (item < 0) | (walk[item, cell] == 0)
        return jnp.where(there, action, step_towards(walk[item], cell))

    return jax.vmap(one)(state, walk, item, action)


class Oracle:
    """Knows the rules of a game."""

    def __init__(self, game: Game[Any]) -> None:
        """`InputError` if it does not."""
        self.game, self.seen, self.knowledge = game, game, knowledge(game)
        self.delta = np.array([delta for _, delta in game.admissible()], np.float32)

    def executor(self, state: Any, goals: Goal, planning: PlannerSettings = DEFAULT_PLANNER) -> "OracleExecutor":
        """Several tasks, ready to be carried out side by side."""
        return MiningOracle(self, state, goals) if isinstance(self.game, Mining) else GraphOracle(self, state, goals)

    def plan(self, state: Any, goal: Goal | str, planning: PlannerSettings = DEFAULT_PLANNER) -> Plan:
        """The path that is thought to take the fewest steps."""
        goal = parse_goal(self.game.space, goal) if isinstance(goal, str) else goal
        rho = np.asarray(self.game.attributes(state))[None]
        one = Goal(np.asarray(goal.low)[None], np.asarray(goal.high)[None])
        return self.routes(rho, one)[0].plan(rho[0])

    def routes(self, rho: Float[np.ndarray, "n K"], goals: Goal) -> list[Route]:
        """Exact searches from several ρ to a goal each."""
        grain = np.asarray(self.game.space.grain, np.float32)
        low, high = np.asarray(goals.low), np.asarray(goals.high)
        return search(rho.astype(np.float32), low, high, grain, self.edges)

    def edges(self, rho: Float[np.ndarray, "n K"]) -> tuple[np.ndarray, np.ndarray]:
        """Ends and costs of all admissible changes of a batch of nodes."""
        size = 2 ** int(np.ceil(np.log2(max(64, len(rho)))))
        padded = np.concatenate([rho, np.repeat(rho[:1], size - len(rho), axis=0)])
        ends, chance = (
            np.asarray(x)[: len(rho)] for x in exact_edges(self.game, jnp.asarray(padded), jnp.asarray(self.delta))
        )
        cost = np.where(self.knowledge.served.any(axis=1), WALK, 1.0)
        with np.errstate(divide="ignore"):
            return ends, np.where(chance > 0, cost / chance, np.inf).astype(np.float32)


@eqx.filter_jit
def exact_edges(
    game: Game[Any], rho: Float[Array, "n K"], delta: Float[Array, "T K"]
) -> tuple[Float[Array, "n T K"], Float[Array, "n T"]]:
    """The ends of all changes, and by the rules how likely they are possible."""
    ends = game.space.compose(rho[:, None], delta[None])
    chance = jax.vmap(jax.vmap(game.feasible, (None, 0)), (0, None))(rho, delta)
    return ends, jnp.where(game.space.contains(ends), chance, 0.0)


class OracleExecutor(Executor):
    """Walks to the item that serves the change it has decided on."""

    def __init__(self, oracle: Oracle, state: Any, goals: Goal) -> None:
        """Looks at the maps."""
        super().__init__(oracle.game, state, goals)
        self.oracle, self.walk_lengths = oracle, all_walks(state)
        self.change = np.zeros(len(self.rho), np.int32)
        self.item = np.full(len(self.rho), -1, np.int32)

    def late(self) -> Bool[np.ndarray, "tasks"]:
        return np.zeros(len(self.rho), bool)

    def act(self, key: PRNGKeyArray) -> Int[Array, "tasks"]:
        action = jnp.asarray(self.oracle.knowledge.action[self.change])
        return walk_on(self.state, self.walk_lengths, jnp.asarray(self.item), action)

    def set_out(self, task: int, change: int, item: int) -> None:
        """Decides on a change, and on the item that serves it (-1: none has to)."""
        self.change[task], self.item[task] = change, item
        self.delta[task] = self.oracle.delta[change]

    def nearest(self) -> tuple[Float[np.ndarray, "tasks T"], Int[np.ndarray, "tasks T"]]:
        """Steps until every change is made by its nearest item, and which item that is."""
        served = self.oracle.knowledge.served
        length = np.asarray(lengths(self.state, self.walk_lengths))[:, None, :]
        length = np.where(served, length, FAR)
        anywhere = ~served.any(axis=1)
        return (
            np.where(anywhere, 1, length.min(axis=2) + 1).astype(float),
            np.where(anywhere, -1, length.argmin(axis=2)),
        )


class GraphOracle(OracleExecutor):
    """Follows shortest paths in the exact attribute graph, of several good ones the one whose first walk is shorter."""

    def __init__(self, oracle: Oracle, state: Any, goals: Goal) -> None:
        """Nothing planned yet."""
        super().__init__(oracle, state, goals)
        self.routes: list[Route | None] = [None] * len(self.rho)

    def decide(self, tasks: Int[np.ndarray, "m"]) -> None:
        """Chooses the next change of these tasks."""
        lost = [k for k in tasks if (route := self.routes[k]) is None or not route.knows(self.rho[k])]
        for start in range(0, len(lost), GROUP):
            group = np.array(lost[start : start + GROUP])
            goals = Goal(self.low[group], self.high[group])
            for k, route in zip(group, self.oracle.routes(self.rho[group], goals), strict=True):
                self.routes[k] = route
        steps, item = self.nearest()
        for k in tasks:
            route = self.routes[k]
            assert route is not None
            ways = route.ways(self.rho[k])
            if ways is None:
                continue
            close = ways.nearer & np.isfinite(ways.total) & (ways.total <= ways.total.min() + SLACK)
            if close.any():
                cost = np.where(close, ways.cost, 0.0)
                real = np.where(close, ways.total - cost + steps[k], np.inf)
                self.set_out(int(k), int(np.argmin(real)), int(item[k, np.argmin(real)]))


FINE = 8
"""Cells per unit of a mineral: a dump is exactly one unit."""
YIELDS = 5
"""Yields that value iteration tells apart."""
SWEEPS = 120
"""Passes of value iteration, more than changes in any sensible plan."""
SETTLED = 0.01
"""Steps that values may still change by when iteration ends."""


class MiningOracle(OracleExecutor):
    """Takes the fewest steps in expectation, by value iteration over amounts, hammer and place."""

    def __init__(self, oracle: Oracle, state: Any, goals: Goal) -> None:
        """Solves every task beforehand."""
        super().__init__(oracle, state, goals)
        assert isinstance(oracle.game, Mining)
        low, high = jnp.asarray(self.low), jnp.asarray(self.high)
        self.values = np.asarray(solve_mining(oracle.game, state, self.walk_lengths, low, high))

    def decide(self, tasks: Int[np.ndarray, "m"]) -> None:
        """Chooses the item that leads to the goal soonest."""
        length = np.asarray(lengths(self.state, self.walk_lengths))
        for k in tasks:
            best = int(np.argmin(self.remaining(int(k), length[k])))
            self.set_out(int(k), int(self.change_of[best]), best)

    @property
    def change_of(self) -> Int[np.ndarray, "items"]:
        """The change that every item serves."""
        return self.oracle.knowledge.served.argmax(axis=0)

    def remaining(self, task: int, length: Int[np.ndarray, "items"]) -> Float[np.ndarray, "items"]:
        """The steps to the goal that are expected by way of every item, `FAR` where there is no way."""
        game = self.oracle.game
        assert isinstance(game, Mining)
        q, amounts = game.minerals, self.rho[task, : game.minerals]
        yields, level = float(self.state.yields[task]), 0
        if self.rho[task, -1] > 0:
            level = 1 + int(np.argmin(np.abs(yield_levels(game) - yields)))
        cell = tuple(np.rint(amounts * FINE).astype(int))
        total = length + self.values[(task, level, slice(None), *cell)].astype(float)
        # Whether a blow or a dump is allowed from here is known exactly.
        blows, dumps = amounts + yields * np.eye(q), amounts - game.dumps * np.eye(q)
        allowed = np.asarray(game.inside(jnp.asarray(np.concatenate([blows, dumps]))))
        total[: q * game.deposits][~np.repeat(allowed[:q], game.deposits)] = FAR
        total[q * game.deposits + 1 :][~allowed[q:]] = FAR
        return total


def yield_levels(game: Mining) -> Float[np.ndarray, "levels"]:
    """The yields that value iteration tells apart, in the middle of equally likely ranges."""
    return game.yield_low + (game.yield_high - game.yield_low) * (np.arange(YIELDS) + 0.5) / YIELDS


@eqx.filter_jit
def solve_mining(
    game: Mining, state: Any, walk: Int32[Array, "tasks items cells"], low: Array, high: Array
) -> Float16[Array, "tasks levels items ..."]:
    """Expected steps to the goal after arriving at every item, by hammer (none, or one of each yield) and amounts."""

    def one(task: tuple[Any, Array, Array, Array]) -> Array:
        return _solve(game, *task).astype(jnp.float16)

    return jax.lax.map(one, (state, walk, jnp.asarray(low), jnp.asarray(high)), batch_size=16)


def _solve(game: Mining, state: Any, walk: Array, low: Array, high: Array) -> Array:
    q, d = game.minerals, game.deposits
    sides = [int(np.ceil((c + game.outer) * FINE)) + 1 for c in game.centre]
    points = jnp.stack(jnp.meshgrid(*[jnp.arange(n) / FINE for n in sides], indexing="ij"), axis=-1)
    inside = game.inside(points)
    at_goal = jnp.all((points >= low[:q]) & (points <= high[:q]), axis=-1) & inside
    goal = jnp.stack([at_goal & (low[q] <= h) & (h <= high[q]) for h in (0, *[1] * YIELDS)])
    cells = items(state) // PITCH * SIDE + items(state) % PITCH
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

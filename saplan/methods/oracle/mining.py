"""The oracle's executor for mining, where changes are uncertain: value iteration over amounts, hammer and place."""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float16, Int, Int32

from saplan.games import Mining
from saplan.games.grid import to_cell
from saplan.goals import Goal
from saplan.methods.decision import Alternatives, Decision
from saplan.methods.oracle.executor import OracleExecutor
from saplan.methods.oracle.walks import FAR, lengths, side_of
from saplan.planning import Outcome

if TYPE_CHECKING:
    from saplan.methods.oracle.agent import Oracle

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

    def __init__(self, oracle: "Oracle", state: Any, goals: Goal) -> None:
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
    cells = to_cell(state.items, side_of(walk))
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

"""Gymnasium's FrozenLake 4x4 on slippery ice: reach any cell, after training without any task.

    python examples/frozen_lake.py --steps 300000 --seeds 3 --json results/frozen-lake.json

Prints, for every cell as a goal, the share of tasks that reach it within 150 steps, and the greatest probability that
any policy has, by value iteration on the environment's own table.
"""

import argparse
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import saplan
from saplan import Natural, Product

SIDE, BUDGET, START = 4, 150, 0
ACTIONS = ("left", "down", "right", "up")
SPACE = Product.of(row=Natural(bins=SIDE), column=Natural(bins=SIDE))


class Lake:
    """FrozenLake as a functional environment: it draws from the table of Gymnasium's own environment."""

    def __init__(self) -> None:
        table = exact_table()
        ends = [[list(zip(*ends, strict=True)) for ends in actions.values()] for actions in table.values()]
        size = max(len(one[0]) for row in ends for one in row)
        filled = np.zeros((3, len(ends), len(ends[0]), size))
        for cell, row in enumerate(ends):
            for action, (chance, end, _, done) in enumerate(row):
                filled[:, cell, action, : len(end)] = chance, end, done
        self.chance, self.end, self.done = (jnp.asarray(part) for part in filled)

    def reset_env(self, key: Array, params: Any) -> tuple[Array, Array]:
        return self.seen(jnp.int32(START)), jnp.int32(START)

    def step_env(self, key: Array, cell: Array, action: Array, params: Any) -> tuple[Array, Array, float, Array, Any]:
        drawn = jax.random.categorical(key, jnp.log(self.chance[cell, action]))
        end = self.end[cell, action, drawn].astype(jnp.int32)
        return self.seen(end), end, 0.0, self.done[cell, action, drawn] > 0, {}

    @staticmethod
    def seen(cell: Array) -> Array:
        """One number per cell, as in Gymnasium's `Discrete`."""
        return jax.nn.one_hot(cell, SIDE * SIDE)


def exact_table() -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:
    """Probability, end, reward and termination of every action in every cell."""
    env: Any = gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True).unwrapped
    table: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = env.P
    return table


def attributes(observation: Array, cell: Array) -> Float[Array, "2"]:
    """Row and column of the agent."""
    return jnp.stack([cell // SIDE, cell % SIDE]).astype(jnp.float32)


def goal_of(cell: int) -> str:
    """A cell as a goal."""
    row, column = divmod(cell, SIDE)
    return f"row={row} column={column}"


def frozen_lake() -> saplan.JaxWorld:
    """The world: slippery ice, and every cell but the first as a goal."""
    goals = [goal_of(cell) for cell in range(SIDE * SIDE) if cell != START]
    return saplan.jax_world(Lake(), SPACE, attributes, goals, ACTIONS, name="FrozenLake-v1")


def best_success() -> dict[str, float]:
    """The greatest probability of reaching every cell within the budget, by value iteration on the exact table."""
    table, best = exact_table(), {}
    for goal in range(SIDE * SIDE):
        value = np.zeros(SIDE * SIDE)
        value[goal] = 1
        for _ in range(BUDGET):
            after = np.array([[sum(p * value[end] for p, end, _, _ in ends) for ends in table[cell].values()]
                              for cell in table])  # fmt: skip
            value = np.where(np.arange(SIDE * SIDE) == goal, 1, after.max(axis=1))
        best[goal_of(goal)] = float(value[START])
    return best


def main() -> None:
    """Trains, evaluates, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=6000)
    parser.add_argument("--task-seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="without the outcomes of actions, for comparison")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world, best = frozen_lake(), best_success()
    settings = saplan.StructuredSettings(lanes=64, minibatches=8, random_moves=not options.plain)
    rows = []
    for seed in range(options.seeds):
        agent = saplan.train(world, options.steps, seed, settings, eval_points=0, progress=saplan.ProgressBar())
        success = saplan.evaluate(agent, options.tasks, options.task_seed, BUDGET).success
        goals = saplan.success_by_goal(world, success, options.task_seed)
        rows.append({"seed": seed, "steps": options.steps, "tasks": options.tasks, "random_moves": not options.plain,
                     "goals": goals, "best": {goal: round(best[goal], 4) for goal in goals}})  # fmt: skip
        for goal, share in goals.items():
            print(f"seed {seed}, {goal}: {share:.1%} of {best[goal]:.1%}", flush=True)
        worst = min(share / best[goal] for goal, share in goals.items())
        print(f"seed {seed}: at least {worst:.1%} of the best on every goal", flush=True)
        saplan.write_result(options.json, {"rows": rows}, "gymnasium")


if __name__ == "__main__":
    main()

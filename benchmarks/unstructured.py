"""Two questions about the unstructured planner.

    python benchmarks/unstructured.py table --json results/benchmark-table.json
    python benchmarks/unstructured.py distance RUN --json results/distance-unstructured.json

`table`: the cost of its table per update, by size. One compiled call adds a rollout of changes (8,192 steps, each of
them a change, four times the usual rate) to a table that is well filled, and looks them up again, as training does. The
time of a call should hardly grow with the table.

`distance`: success on exchange by the distance of goals, the length of the shortest path of changes. Tasks draw a
distance uniformly up to `--farthest`. RUN is a run of exchange, or `exchange` for the shipped agent.
"""

import argparse
import statistics
import time
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from common import describe, make_parser, setting, text_table

from saplan.experiments.result_file import write_result
from saplan.methods.unstructured.learner import rare_pairs
from saplan.methods.unstructured.table import Table, count_changes, count_tries, empty_table
from saplan.training.evaluate import evaluate
from saplan.training.store import open_agent

STEPS, DEGREE, ATTRIBUTES, FLOOR = 8192, 16, 6, 0.001
ROUNDS, REPETITIONS = 16, 5


def draw_changes(key: jax.Array, side: int, count: int) -> tuple[jax.Array, jax.Array]:
    """Changes by one in one of the attributes, each attribute with `side` values."""
    place_key, axis_key = jax.random.split(key)
    before = jax.random.randint(place_key, (count, ATTRIBUTES), 0, side).astype(jnp.float32)
    step = jax.nn.one_hot(jax.random.randint(axis_key, (count,), 0, ATTRIBUTES), ATTRIBUTES)
    return before, (before + step) % side


def add_rollout(known: Table, before: jax.Array, after: jax.Array) -> tuple[Table, jax.Array]:
    """Counts the changes and attempts of a rollout, and weighs how rare the changes are, as training does."""
    yes = jnp.ones(len(before), bool)
    known, column = count_changes(known, before, after, yes)
    node = known.find(before)
    known = count_tries(known, node, column, yes, yes, jnp.ones(()))
    return known, jnp.sum(rare_pairs(known, node, column, FLOOR)) + known.pairs


def measure_table(nodes: int) -> dict[str, float]:
    """Fills up to half of a table, then times the next rollouts."""
    side = int((nodes / 2) ** (1 / ATTRIBUTES))
    keys = iter(jax.random.split(jax.random.key(0), 100_000))
    known = empty_table(nodes, DEGREE, ATTRIBUTES)

    # Many rollouts in one program, as in training, so that the table is changed in place and not copied.
    @jax.jit
    def chunk(known: Table, key: jax.Array) -> tuple[Table, jax.Array]:
        def one(known: Table, key: jax.Array) -> tuple[Table, jax.Array]:
            return add_rollout(known, *draw_changes(key, side, STEPS))

        return jax.lax.scan(one, known, jax.random.split(key, ROUNDS))

    for _ in range(2 * nodes * ATTRIBUTES // (STEPS * ROUNDS) + 1):
        known, _ = chunk(known, next(keys))
    times = []
    for _ in range(REPETITIONS + 1):
        began = time.perf_counter()
        known, _ = jax.block_until_ready(chunk(known, next(keys)))
        times.append((time.perf_counter() - began) / ROUNDS)
    return {
        "nodes": int(known.nodes), "room": nodes, "pairs": int(known.pairs), "overflow": int(known.overflow),
        "milliseconds": 1000 * statistics.median(times[1:]),
    }  # fmt: skip


def table_cost(options: argparse.Namespace) -> dict[str, Any]:
    """The cost of tables of several sizes."""
    facts = setting()
    print(describe(facts), flush=True)
    rows = [measure_table(2**power) for power in options.powers]
    numbers = [[f"{row[name]:,}" for name in ("room", "nodes", "pairs", "overflow")] for row in rows]
    cells = [(*each, f"{row['milliseconds']:.2f}") for each, row in zip(numbers, rows, strict=True)]
    print(text_table(("room for nodes", "nodes", "pairs", "overflow", "ms per 8,192 changes"), cells))
    return {"setting": facts, "entries": rows}


def success_by_distance(options: argparse.Namespace) -> dict[str, Any]:
    """Success of a run on goals up to several distances."""
    agent, config, _ = open_agent(options.run)
    rows = []
    for farthest in options.farthest:
        nearer: Any = agent
        nearer = replace(nearer, game=replace(nearer.game, farthest=farthest))
        success = float(evaluate(nearer, options.tasks).success.mean())
        rows.append({"farthest": farthest, "success": success})
        print(f"goals up to {farthest} changes away: {success:.1%}", flush=True)
    return {"config": None if config is None else config.to_json(), "tasks": options.tasks, "by_distance": rows}


def main() -> None:
    """Answers the question that the command line names."""
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("table", "distance"))
    parser.add_argument("run", nargs="?", default="exchange", help="for distance")
    parser.add_argument("--powers", type=int, nargs="+", default=[12, 14, 16, 18], help="for table: log2 of its sizes")
    parser.add_argument("--farthest", type=int, nargs="+", default=[2, 3, 5, 8, 12, 30], help="for distance")
    parser.add_argument("--tasks", type=int, default=500, help="for distance")
    options = parser.parse_args()
    write_result(options.json, table_cost(options) if options.what == "table" else success_by_distance(options))


if __name__ == "__main__":
    main()

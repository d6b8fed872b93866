"""What the unstructured planner's table costs per update, by its size: python benchmarks/table.py [--json FILE].

A rollout's worth of changes (8,192 steps, all of them changes, four times what is usual) is taken into tables that are
already well filled, and looked up again, in one compiled call, as training does. The time of such a call should hardly
grow with the table.
"""

import argparse
import statistics
import time
from pathlib import Path

import jax
import jax.numpy as jnp
from report import describe, save, setting, table

from saplan.methods.unstructured.learner import rare_pairs
from saplan.methods.unstructured.table import Table, count_attempts, count_changes, empty_table

STEPS, DEGREE, ATTRIBUTES, FLOOR = 8192, 16, 6, 0.001


def draw(key: jax.Array, side: int, count: int) -> tuple[jax.Array, jax.Array]:
    """Changes by one in one of the attributes, each attribute with `side` values."""
    place_key, axis_key = jax.random.split(key)
    before = jax.random.randint(place_key, (count, ATTRIBUTES), 0, side).astype(jnp.float32)
    step = jax.nn.one_hot(jax.random.randint(axis_key, (count,), 0, ATTRIBUTES), ATTRIBUTES)
    return before, (before + step) % side


@jax.jit
def take_in(known: Table, before: jax.Array, after: jax.Array) -> tuple[Table, jax.Array]:
    """What training does with a rollout: it counts changes and attempts, and weighs how rare the changes are."""
    yes = jnp.ones(len(before), bool)
    known = count_changes(known, before, after, yes)
    known = count_attempts(known, before, after, yes, yes, jnp.ones(()))
    return known, jnp.sum(rare_pairs(known, before, after, FLOOR)) + known.pairs


def measure(nodes: int, repetitions: int) -> dict[str, float]:
    """Fills up to half of a table, then times the next rollouts."""
    side = int((nodes / 2) ** (1 / ATTRIBUTES))
    keys = iter(jax.random.split(jax.random.key(0), 100_000))
    known = empty_table(nodes, DEGREE, ATTRIBUTES)
    # As in training: many rollouts in one program, so that the table is changed in place and not copied.
    rounds = 16

    @jax.jit
    def chunk(known: Table, key: jax.Array) -> tuple[Table, jax.Array]:
        def one(known: Table, key: jax.Array) -> tuple[Table, jax.Array]:
            return take_in(known, *draw(key, side, STEPS))

        return jax.lax.scan(one, known, jax.random.split(key, rounds))

    for _ in range(2 * nodes * ATTRIBUTES // (STEPS * rounds) + 1):
        known, _ = chunk(known, next(keys))
    times = []
    for _ in range(repetitions + 1):
        begin = time.perf_counter()
        known, _ = jax.block_until_ready(chunk(known, next(keys)))
        times.append((time.perf_counter() - begin) / rounds)
    return {
        "nodes": int(known.nodes), "room": nodes, "pairs": int(known.pairs), "overflow": int(known.overflow),
        "milliseconds": 1000 * statistics.median(times[1:]),
    }  # fmt: skip


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="Cost of the unstructured planner's table.")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--powers", type=int, nargs="+", default=[12, 14, 16, 18])
    options = parser.parse_args()
    facts = setting()
    print(describe(facts), flush=True)
    rows = [measure(2**power, 5) for power in options.powers]
    cells = [
        (
            f"{row['room']:,}",
            f"{row['nodes']:,}",
            f"{row['pairs']:,}",
            str(row["overflow"]),
            f"{row['milliseconds']:.2f}",
        )
        for row in rows
    ]
    print(table(("room for nodes", "nodes", "pairs", "overflow", "ms per 8,192 changes"), cells))
    if options.json:
        save(options.json, {"setting": facts, "entries": rows})


if __name__ == "__main__":
    main()

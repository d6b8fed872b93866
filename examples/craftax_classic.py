"""Craftax-Classic: wood, tables, pickaxes, stone and iron, after training without any task. It wants a GPU.

    pip install craftax
    python examples/craftax_classic.py --seeds 3 --out runs/craftax --json results/craftax.json

Prints the share of goals, by their depth, that are reached within 500 steps in worlds never seen. The opponent is
benchmarks/craftax_ppo.py.
"""

import argparse
import platform
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from craftax.craftax_classic.constants import Action, BlockType
from craftax.craftax_classic.envs.craftax_symbolic_env import CraftaxClassicSymbolicEnvNoAutoReset
from craftax.craftax_classic.game_logic import is_near_block
from jaxtyping import Array, Float

import saplan
from saplan.algebra import Cyclic, Exogenous, Natural, Product
from saplan.envs.foreign import success_by_goal
from saplan.envs.functional import JaxWorld, jax_world
from saplan.experiments.show import Progress
from saplan.experiments.train import hardware, train_seeds
from saplan.runs.config import write_json
from saplan.runs.store import MANIFEST

ITEMS = ("wood", "stone", "coal", "iron", "diamond", "wood_pickaxe", "stone_pickaxe", "iron_pickaxe")
BODY = ("health", "food", "drink", "energy")
SPACE = Product.of(
    **{item: Natural(bins=10) for item in ITEMS}, near_table=Cyclic(2), near_furnace=Cyclic(2),
    **{part: Exogenous(Natural(bins=10)) for part in BODY},
)  # fmt: skip
GOALS = (
    "wood>=1", "wood>=2", "near_table=1", "wood_pickaxe>=1", "wood_pickaxe>=1 stone>=1",
    "wood_pickaxe>=1 wood>=3 stone>=2", "stone_pickaxe>=1", "near_furnace=1", "coal>=1", "iron>=1", "iron_pickaxe>=1",
    "diamond>=1",
)  # fmt: skip
"""From shallow to deep."""
BUDGET = 500
PLANNING = saplan.Planning(attempt_steps=80, patience=3.0, max_nodes=20_000, max_seconds=2.0)
"""What is looked for may lie out of sight: attempts last longer. And a search that finds no way shall not take long."""


def attributes(observation: Array, state: Any) -> Float[Array, "K"]:
    """What is carried, whether a table and a furnace are at hand, and how the body feels."""
    near = [is_near_block(state, block.value) for block in (BlockType.CRAFTING_TABLE, BlockType.FURNACE)]
    carried = [getattr(state.inventory, item) for item in ITEMS]
    body = [jnp.clip(getattr(state, f"player_{part}"), 0) for part in BODY]
    return jnp.stack([jnp.asarray(x, jnp.float32) for x in (*carried, *near, *body)])


def craftax() -> JaxWorld:
    """The world."""
    env = CraftaxClassicSymbolicEnvNoAutoReset()
    names = [action.name.lower() for action in Action]
    return jax_world(env, SPACE, attributes, GOALS, names, env.default_params, name="Craftax-Classic-Symbolic-v1")


def trained(world: JaxWorld, options: argparse.Namespace) -> list[Any]:
    """An agent per seed: those of the runs that are there, or new ones."""
    outs = [options.out / str(seed) for seed in range(options.seeds)] if options.out else None
    if outs and all((out / MANIFEST).exists() for out in outs):
        return [saplan.load(out, world) for out in outs]
    settings = saplan.Settings(
        lanes=options.lanes, hidden=256, learning_rate=1e-3, capacity=32, attempt_steps=80, game_steps=400
    )

    def show(progress: Progress) -> None:
        print(progress.line(), flush=True)

    return train_seeds(world, options.steps, range(options.seeds), settings, outs, looks=3, look_tasks=0, show=show)


def main() -> None:
    """Trains, tests, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=24_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=600, help="0: only train")
    parser.add_argument("--lanes", type=int, default=1024)
    parser.add_argument("--out", type=Path, help="keep the runs here; those that are there are not trained again")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world, rows = craftax(), []
    for seed, agent in enumerate(trained(world, options)):
        if not options.tasks:
            continue
        success = saplan.evaluate(agent, options.tasks, budget=BUDGET, planning=PLANNING).success
        goals = success_by_goal(world, success)
        rows.append({"seed": seed, "steps": options.steps, "tasks": options.tasks, "goals": goals})
        print(f"seed {seed}: " + ", ".join(f"{text}: {share:.0%}" for text, share in goals.items()), flush=True)
        if options.json:
            versions = {"python": platform.python_version(), "jax": jax.__version__}
            write_json(options.json, {"rows": rows, "hardware": hardware(), "versions": versions})


if __name__ == "__main__":
    main()

"""Craftax-Classic: wood, tables, pickaxes, stone and iron, after training without any task. It needs a GPU.

    pip install craftax
    python examples/craftax_classic.py --seeds 0 1 2 --out runs/craftax --json results/craftax.json

Prints the share of goals, from shallow to deep, reached within 500 steps in new worlds. The opponent is
benchmarks/craftax_ppo.py.
"""

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from craftax.craftax_classic.constants import BLOCK_PIXEL_SIZE_IMG, Action, BlockType
from craftax.craftax_classic.envs.craftax_symbolic_env import CraftaxClassicSymbolicEnvNoAutoReset
from craftax.craftax_classic.game_logic import is_near_block
from craftax.craftax_classic.renderer import make_craftax_pixel_renderer
from jaxtyping import Array, Float

import saplan
from saplan import Cyclic, Exogenous, JaxWorld, Natural, Product

ITEMS = ("wood", "stone", "coal", "iron", "diamond", "wood_pickaxe", "stone_pickaxe", "iron_pickaxe")
BODY = ("health", "food", "drink", "energy")
SPACE = Product.of(
    **{item: Natural(bins=10) for item in ITEMS}, near_table=Cyclic(2), near_furnace=Cyclic(2),
    **{part: Exogenous(Natural(bins=10)) for part in BODY}, row=Exogenous(Natural(bins=64)),
    column=Exogenous(Natural(bins=64)), direction=Exogenous(Natural(bins=5)),
)  # fmt: skip
GOALS = (
    "wood>=1", "wood>=2", "near_table=1", "wood_pickaxe>=1", "wood_pickaxe>=1 stone>=1",
    "wood_pickaxe>=1 wood>=3 stone>=2", "stone_pickaxe>=1", "near_furnace=1", "coal>=1", "iron>=1", "iron_pickaxe>=1",
    "diamond>=1",
)  # fmt: skip
"""From shallow to deep."""
ACTIONS = (
    "LEFT", "RIGHT", "UP", "DOWN", "DO", "PLACE_STONE", "PLACE_TABLE", "PLACE_FURNACE", "MAKE_WOOD_PICKAXE",
    "MAKE_STONE_PICKAXE", "MAKE_IRON_PICKAXE",
)  # fmt: skip
"""Actions that can change an attribute: not sleeping, plants, swords, or standing still."""
ROLLOUT = 64
"""Steps per lane between two updates."""
BUDGET = 500
PLANNING = saplan.PlannerSettings(attempt_steps=20, patience=0.7, floor=0.02, max_nodes=20_000)
"""Attempts end early, since zombies attack an agent that waits. Unlikely transitions stay, since they may be the only
way, and a search without result should not take long: it is bounded by nodes, so that success does not depend on the
speed of the machine."""


def attributes(observation: Array, state: Any) -> Float[Array, "K"]:
    """The inventory, whether a table and a furnace are near, the state of the body, and the position."""
    near = [is_near_block(state, block.value) for block in (BlockType.CRAFTING_TABLE, BlockType.FURNACE)]
    carried = [getattr(state.inventory, item) for item in ITEMS]
    body = [jnp.clip(getattr(state, f"player_{part}"), 0) for part in BODY]
    place = *state.player_position, state.player_direction
    return jnp.stack([jnp.asarray(x, jnp.float32) for x in (*carried, *near, *body, *place)])


@functools.cache
def renderer() -> Callable[[Any], Array]:
    """The renderer, made once since it reads many small pictures."""
    return jax.jit(make_craftax_pixel_renderer(BLOCK_PIXEL_SIZE_IMG))


def draw(state: Any) -> Array:
    """The game's own picture."""
    return renderer()(state)


def craftax() -> JaxWorld:
    """The world."""
    env = CraftaxClassicSymbolicEnvNoAutoReset()
    actions = {name.lower(): Action[name].value for name in ACTIONS}
    name, places = "Craftax-Classic-Symbolic-v1", ("row", "column", "direction")
    return saplan.jax_world(
        env, SPACE, attributes, GOALS, actions, env.default_params, name=name, places=places, vital=("health",),
        draw=draw,
    )  # fmt: skip


def trained(world: JaxWorld, options: argparse.Namespace) -> list[Any]:
    """One agent per seed: from existing runs, there after `--after` steps if given, or newly trained."""
    outs = [options.out / str(seed) for seed in options.seeds] if options.out else None
    if outs and options.after:
        return [saplan.load(out / "evaluations" / str(options.after), world) for out in outs]
    if outs and all((out / "manifest.json").exists() for out in outs):
        return [saplan.load(out, world) for out in outs]
    settings = saplan.StructuredSettings(
        lanes=options.lanes, rollout=ROLLOUT, minibatches=64, hidden=512, learning_rate=1e-3, capacity=64,
        edge_steps=64, attempt_steps=80, game_steps=400, credit_to_game=True, interleave=0.1,
    )  # fmt: skip
    configs = [saplan.run_config(world, options.steps, seed, settings, "structured", 3, 0) for seed in options.seeds]
    return saplan.train_runs(configs, outs, saplan.RunOptions(saplan.ProgressBar()))


def whole_updates(options: argparse.Namespace) -> int:
    """The training steps in whole updates."""
    size = int(options.lanes) * ROLLOUT
    return int(options.steps) // size * size


def main() -> None:
    """Trains, evaluates, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=90_000_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tasks", type=int, default=600, help="0: train only")
    parser.add_argument("--lanes", type=int, default=2048)
    parser.add_argument("--out", type=Path, help="directory for the runs; existing ones are not trained again")
    parser.add_argument("--after", type=int, metavar="STEPS", help="evaluate the agents that the runs kept after STEPS")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.after and not options.out:
        parser.error("--after needs --out, the directory of the runs")
    world = craftax()
    rows: list[dict[str, Any]] = []
    for seed, agent in zip(options.seeds, trained(world, options), strict=True):
        if not options.tasks:
            continue
        success = saplan.evaluate(agent, options.tasks, budget=BUDGET, planning=PLANNING).success
        goals = saplan.success_by_goal(world, success)
        steps = options.after or whole_updates(options)
        rows.append({"seed": seed, "steps": steps, "tasks": options.tasks, "goals": goals})
        print(f"seed {seed}: " + ", ".join(f"{text}: {share:.0%}" for text, share in goals.items()), flush=True)
        saplan.write_result(options.json, {"rows": rows}, "craftax")


if __name__ == "__main__":
    main()

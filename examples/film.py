r"""A film of a task in an external world, in the environment's own pictures.

    python examples/film.py mini_grid.py:corridor_world runs/corridor 'door=open ball=1' docs/pictures/corridor.gif
    python examples/film.py taxi.py:taxi runs/taxi/0 'row=0 column=0 passenger=blue' docs/pictures/taxi.gif --seed 3
    python examples/film.py craftax_classic.py:craftax runs/craftax/0/evaluations/46137344 'stone_pickaxe>=1' \
        docs/pictures/craftax.gif --budget 300 --attempt-steps 20 --patience 0.7 --width 144

The first argument names a file beside this one and a function in it that makes the world, the second a run in that
world.
"""

import argparse
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

import saplan
from saplan.cli.worlds import load_world


def frames(
    world: saplan.ExternalWorld[Any], agent: Any, text: str, seed: int, budget: int, planning: saplan.PlannerSettings
) -> list[np.ndarray]:
    """A picture of every step until the goal holds."""
    state = jax.vmap(world.reset)(jax.random.split(jax.random.key(seed), 1))
    goal = saplan.parse_goal(world.space, text)
    goals = saplan.Goal(jnp.asarray(goal.low)[None], jnp.asarray(goal.high)[None])
    executor = agent.executor(state, goals, planning)
    pictures = [world.frame(jax.tree.map(lambda x: x[0], executor.state))]
    for _ in executor.moves(budget, seed):
        pictures.append(world.frame(jax.tree.map(lambda x: x[0], executor.state)))
    return pictures


def main() -> None:
    """Executes the task and writes the film."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world")
    parser.add_argument("run", type=Path)
    parser.add_argument("goal")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=int, default=150)
    parser.add_argument("--attempt-steps", type=int, default=saplan.PlannerSettings.attempt_steps)
    parser.add_argument("--patience", type=float, default=saplan.PlannerSettings.patience)
    parser.add_argument("--width", type=int, default=240)
    parser.add_argument("--milliseconds", type=int, default=160, help="per step")
    options = parser.parse_args()
    world = load_world(str(Path(__file__).parent / options.world))
    planning = saplan.PlannerSettings(attempt_steps=options.attempt_steps, patience=options.patience)
    agent = saplan.load(options.run, world)
    pictures = frames(world, agent, options.goal, options.seed, options.budget, planning)
    height = round(pictures[0].shape[0] * options.width / pictures[0].shape[1])
    small = [Image.fromarray(picture).resize((options.width, height)).quantize(32) for picture in pictures]
    pauses = [options.milliseconds] * (len(small) - 1) + [2000]
    small[0].save(options.out, save_all=True, append_images=small[1:], duration=pauses, loop=0)
    print(f"{len(pictures) - 1} steps are in {options.out}")


if __name__ == "__main__":
    main()

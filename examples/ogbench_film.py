"""A film of the arm that carries out a plan, with the buttons that the plan still has to press.

    python examples/ogbench_film.py 4x6 runs/ogbench-4x6-0 arm.gif --task 1

The board shows the buttons as they are, a square around those that the goal wants different, and a dot on those that
the plan presses. Rendering without a display needs `MUJOCO_GL=egl`.
"""

import argparse
import dataclasses
import itertools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import ogbench_puzzle as example
from PIL import Image, ImageDraw

import saplan

CELL, EVERY = 22, 4
"""Pixels of a button on the board, and control steps between two frames."""
COLOURS = ((245, 66, 84), (89, 140, 232))
"""Of a button in state 0 and in state 1, as in the benchmark."""


def board(shape: tuple[int, int], rho: np.ndarray, goal: np.ndarray, planned: set[int], height: int) -> Image.Image:
    """The buttons, the goal and the plan."""
    rows, columns = shape
    picture = Image.new("RGB", (CELL * columns + 12, height), (24, 26, 32))
    draw = ImageDraw.Draw(picture)
    top = (height - CELL * rows) // 2
    for k, state in enumerate(rho.astype(int)):
        x, y = 6 + CELL * (k % columns), top + CELL * (k // columns)
        draw.rectangle((x + 4, y + 4, x + CELL - 4, y + CELL - 4), fill=COLOURS[state])
        if goal[k] != state:
            draw.rectangle((x + 1, y + 1, x + CELL - 2, y + CELL - 2), outline=(255, 255, 255), width=2)
        if k in planned:
            draw.ellipse((x + 9, y + 9, x + CELL - 9, y + CELL - 9), fill=(255, 255, 255))
    return picture


def pressed_by(change: np.ndarray, shape: tuple[int, int]) -> int:
    """The button in the middle of a change: those beside it change with it."""
    places = np.array(np.unravel_index(np.flatnonzero(change), shape)).T
    near = np.abs(np.indices(shape).reshape(2, -1).T[:, None] - places[None]).sum(axis=-1) <= 1
    return int(np.argmax(near.all(axis=1) & change.astype(bool)))


def main() -> None:
    """Plays one task, renders every other control step of it, and writes the film."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=example.LIMITS)
    parser.add_argument("run", type=Path)
    parser.add_argument("film", type=Path)
    parser.add_argument("--task", type=int, default=1, choices=range(1, 6))
    options = parser.parse_args()
    trained: Any = saplan.load(options.run, example.puzzle(options.size, 0))
    world = example.puzzle(options.size, 0, example.Tasks, trained.game)
    agent = dataclasses.replace(trained, game=world)
    host: Any = world.host
    env = host.player.env
    rows, columns = map(int, options.size.split("x"))
    shape = rows, columns
    states = jax.vmap(world.begin)(jnp.array([options.task - 1]))
    goal = np.array(env.task(options.task - 1)["goal_button_states"], np.float32)
    execution = agent.executor(states, saplan.Goal(goal[None], goal[None]), example.PLANNER)
    steps = [states]
    for _ in execution.moves(example.LIMITS[options.size], seed=0):
        steps.append(execution.state)
    frames, clock = [], 0
    keys = [tuple(int(x[0]) for x in (step.ticket, step.clock, step.path)) for step in steps]
    for before, after in itertools.pairwise(keys):
        kept = host.kept[before]
        plan = agent.plan(jax.tree.map(lambda x: x[0], steps[keys.index(before)]), saplan.Goal(goal, goal))
        planned = {pressed_by(np.asarray(agent.memory.delta)[k], shape) for k in plan.transitions}
        action = host.kept[after].actions[1]
        env.set_state(kept.state)
        for _ in range(example.HOLD[action]):
            env.step(action)
            clock += 1
            if clock % EVERY == 0:
                frame = Image.fromarray(env.render())
                side = board(shape, env.unwrapped._cur_button_states, goal, planned, frame.height)
                both = Image.new("RGB", (frame.width + side.width, frame.height))
                both.paste(frame, (0, 0))
                both.paste(side, (frame.width, 0))
                frames.append(both.quantize(40))
            if np.any(env.unwrapped._cur_button_states != kept.snapshot.rho):
                break
    frames[0].save(options.film, save_all=True, append_images=frames[1:], duration=160, loop=0)
    print(f"{len(frames)} frames, {clock} control steps, success {bool(execution.state.lost[0])}")


if __name__ == "__main__":
    main()

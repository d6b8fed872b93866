"""MiniGrid's BlockedUnlockPickup and KeyCorridor: keys, doors, balls and boxes, after training without any task.

    python examples/mini_grid.py --seeds 3 --json results/minigrid.json
    python examples/mini_grid.py --seeds 3 --ppo --json results/minigrid-ppo.json

Prints the share of goals reached within 150 steps on new maps. The second command trains the opponent with as many
steps: PPO of Stable-Baselines3 (the extra `sb3`), which has the same observations and is rewarded for one goal.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import minigrid
import numpy as np

import saplan
from saplan import Categorical, Cyclic, Exogenous, Natural, Product

gymnasium.register_envs(minigrid)
KINDS = {"wall": 1, "key": 2, "ball": 3, "box": 4}
DOOR = Categorical(("open", "closed", "locked"))
BOX = Categorical(("there", "held", "gone"))
BUDGET = 150
REWARDED = "door=open ball=1"
"""The goal that the opponent is rewarded for."""


def kind_of(thing: Any) -> int:
    """The number of a cell's content; doors by their state."""
    if thing.type == "door":
        return 5 if thing.is_open else 7 if thing.is_locked else 6
    return KINDS.get(thing.type, 0)


class Around(gymnasium.ObservationWrapper[Any, Any, Any]):
    """The cells around the agent, relative to its position and direction, each as one of a few kinds."""

    def __init__(self, env: gymnasium.Env[Any, Any], reach: int) -> None:
        """Observes `reach` cells in every direction."""
        super().__init__(env)
        self.reach = reach
        # The environment's own view is not needed, and costs most of a step.
        self.unwrapped.gen_obs = lambda: None  # type: ignore[attr-defined]
        self.observation_space = gymnasium.spaces.MultiDiscrete([8] * (2 * reach + 1) ** 2)

    def observation(self, observation: Any) -> np.ndarray:
        env: Any = self.unwrapped
        cells = np.zeros((env.width + 2 * self.reach, env.height + 2 * self.reach), np.int16)
        for k, thing in enumerate(env.grid.grid):
            if thing is not None:
                row, column = divmod(k, env.width)
                cells[column + self.reach, row + self.reach] = kind_of(thing)
        x, y = env.agent_pos
        window = cells[x : x + 2 * self.reach + 1, y : y + 2 * self.reach + 1]
        return np.rot90(window, env.agent_dir).reshape(-1)


@dataclass(frozen=True)
class Task:
    """An environment with its attributes."""

    env: str
    space: Product
    attributes: Callable[[Any, dict[str, Any], Any], tuple[float, ...]]
    goals: tuple[str, ...]
    reach: int
    """Cells that the agent observes in every direction."""
    steps: int
    """Training steps."""
    settings: saplan.Settings

    def make(self) -> gymnasium.Env[Any, Any]:
        """The environment with the agent's own view."""
        return Around(gymnasium.make(self.env, render_mode="rgb_array").unwrapped, self.reach)

    def world(self, processes: int = 0) -> saplan.GymWorld:
        """The environment as a world."""
        return saplan.gym_world(self.make, self.space, self.attributes, self.goals, endless=True, processes=processes,
                         name=self.env)  # fmt: skip


def where(env: Any) -> tuple[int, int, int]:
    """Position and direction of the agent."""
    x, y = env.agent_pos
    return int(x), int(y), int(env.agent_dir)


def held(env: Any, kind: str) -> int:
    """Whether the agent carries an object of this kind."""
    return int(env.carrying is not None and env.carrying.type == kind)


def unlocking(observation: Any, info: dict[str, Any], env: Any) -> tuple[float, ...]:
    """BlockedUnlockPickup: the room, the carried object, the door, whether the ball still blocks it, and the state of
    the box, which disappears for good when the agent opens it.
    """
    column = env.room_size - 1
    row = next(y for y in range(env.height) if (cell := env.grid.get(column, y)) is not None and cell.type == "door")
    before = env.grid.get(column - 1, row)
    blocked = int(before is not None and before.type == "ball")
    door = env.grid.get(column, row).encode()[2]
    room = int(env.agent_pos[0] >= column)
    there = any(thing is not None and thing.type == "box" for thing in env.grid.grid)
    box = BOX.labels.index("there" if there else "held" if held(env, "box") else "gone")
    return *where(env), room, held(env, "key"), held(env, "ball"), box, blocked, door


def corridor(observation: Any, info: dict[str, Any], env: Any) -> tuple[float, ...]:
    """KeyCorridor: the room, the carried object, the row of the key, and state and row of the locked door."""
    x, y, direction = where(env)
    size = env.room_size - 1
    lock = next(row for row in range(env.num_rows) if env.get_room(2, row).locked)
    lying = [k // env.width for k, thing in enumerate(env.grid.grid) if thing is not None and thing.type == "key"]
    key_row = lying[0] // size if lying else env.num_rows
    door = env.get_room(2, lock).doors[2]
    return (x, y, direction, x // size, y // size, held(env, "key"), key_row, held(env, "ball"), door.encode()[2], lock)


PLACE = {"x": Exogenous(Natural(bins=16)), "y": Exogenous(Natural(bins=16)), "direction": Exogenous(Cyclic(4))}
TASKS = (
    Task(
        "MiniGrid-BlockedUnlockPickup-v0",
        Product.of(
            **PLACE, room=Natural(bins=2), key=Natural(bins=2), ball=Natural(bins=2), box=BOX,
            blocked=Cyclic(2), door=DOOR,
        ),
        unlocking,
        ("key=1", "ball=1", "blocked=0 ball=0", "door=open", "door=open ball=1", "door=open key=0 ball=0", "box=held",
         "door=closed box=held"),
        7,
        1_500_000,
        saplan.StructuredSettings(lanes=64, minibatches=16, capacity=32, interleave=0.3),
    ),
    Task(
        "MiniGrid-KeyCorridorS3R3-v0",
        Product.of(
            **PLACE, column=Natural(bins=3), row=Natural(bins=3), key=Natural(bins=2),
            key_row=Categorical(("top", "middle", "bottom", "held")), ball=Natural(bins=2), door=DOOR,
            lock_row=Natural(bins=3),
        ),
        corridor,
        ("key=1", "door=open", "door=open key=0 ball=0", "ball=1", "door=open ball=1", "door=closed key=0 ball=0"),
        6,
        800_000,
        saplan.StructuredSettings(lanes=64, minibatches=8, capacity=32),
    ),
)  # fmt: skip


def unlocking_world() -> saplan.GymWorld:
    """BlockedUnlockPickup, for `saplan check` and films."""
    return TASKS[0].world()


def corridor_world() -> saplan.GymWorld:
    """KeyCorridor."""
    return TASKS[1].world()


def ours(task: Task, seed: int, options: argparse.Namespace) -> dict[str, float]:
    """Success on every goal after training without any task."""
    world = task.world(options.processes)
    steps, bar = options.steps or task.steps, saplan.ProgressBar()
    agent = saplan.train(world, steps, seed, task.settings, options.out, eval_points=0, progress=bar)
    success = saplan.evaluate(agent, options.tasks, budget=BUDGET).success
    return saplan.success_by_goal(world, success)


class Rewarded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One goal as a task: reward 1 and the end when it holds. Observations include the attributes."""

    def __init__(self, task: Task, text: str) -> None:
        super().__init__(task.make())
        self.task, self.goal = task, saplan.parse_goal(task.space, text)
        cells = self.env.observation_space.nvec.tolist()  # type: ignore[attr-defined]
        self.observation_space = gymnasium.spaces.MultiDiscrete([*cells, *[16] * task.space.size])

    def rho(self) -> np.ndarray:
        """The attributes."""
        return np.array(self.task.attributes(None, {}, self.unwrapped), np.float32)

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        seen, info = self.env.reset(**given)
        self.steps = 0
        return np.append(seen, self.rho()).astype(int), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, _, _, _, info = self.env.step(int(action))
        rho, self.steps = self.rho(), self.steps + 1
        reached = bool(np.all((rho >= self.goal.low) & (rho <= self.goal.high)))
        return np.append(seen, rho).astype(int), float(reached), reached, self.steps >= BUDGET, info


def ppo(task: Task, seed: int, options: argparse.Namespace) -> dict[str, float]:
    """Success of PPO of Stable-Baselines3, trained on the one goal that it is rewarded for."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(1)
    envs = DummyVecEnv([lambda: Rewarded(task, REWARDED)] * 16)
    agent = PPO("MlpPolicy", envs, n_steps=128, batch_size=256, n_epochs=4, ent_coef=0.01, device="cpu", seed=seed,
                policy_kwargs={"net_arch": [128, 128]})  # fmt: skip
    agent.learn(options.steps or task.steps)
    env, reached = Rewarded(task, REWARDED), 0
    for episode in range(200):
        seen, _ = env.reset(seed=10_000_000 + episode)
        done, reward = False, 0.0
        while not done:
            action, _ = agent.predict(seen, deterministic=False)
            seen, reward, terminated, truncated, _ = env.step(int(action))
            done = terminated or truncated
        reached += reward > 0
    return {REWARDED: reached / 200}


def main() -> None:
    """Trains, evaluates, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ppo", action="store_true", help="train the opponent instead of ours")
    parser.add_argument("--envs", nargs="*", default=[task.env for task in TASKS])
    parser.add_argument("--steps", type=int, default=0, help="instead of each environment's own number")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="to train the seeds side by side in several programs")
    parser.add_argument("--tasks", type=int, default=600)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--out", type=Path, help="directory for the run of a single environment and seed")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for task in TASKS:
            if task.env not in options.envs:
                continue
            goals = (ppo if options.ppo else ours)(task, seed, options)
            steps, method = options.steps or task.steps, "PPO" if options.ppo else "structured"
            rows.append({"env": task.env, "method": method, "seed": seed, "steps": steps, "goals": goals})
            print(f"{task.env}, {method}, seed {seed}: {goals}", flush=True)
            saplan.write_result(options.json, {"rows": rows}, "minigrid")


if __name__ == "__main__":
    main()

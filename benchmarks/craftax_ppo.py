"""The opponent on Craftax-Classic: PPO rewarded for one goal, with as many steps as ours trains without any.

    python benchmarks/craftax_ppo.py --goals 'wood_pickaxe>=1' 'stone_pickaxe>=1' --json results/craftax-ppo.json

PPO in the style of PureJaxRL (see `peers.py`), with hidden layers as wide as ours. It has the same observations, ρ
included, and gets a reward of 1 when the goal holds, which ends the game. Success is measured in new worlds, within the
same number of steps.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from common import make_parser
from jaxtyping import Array, PRNGKeyArray
from peers import Params, PpoRules, Training, act_and_judge, init_params, learn, roll_out

from saplan.experiments.result_file import write_result
from saplan.games import Game
from saplan.goals import Goal, parse_goal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from craftax_classic import BUDGET, SPACE, craftax

TEST_SEED = 1_000_003


class GoalStep(NamedTuple):
    """The state of all lanes, in the form that PPO needs."""

    state: Any
    age: Array
    key: PRNGKeyArray
    observation: Array
    reward: Array
    ended: Array

    def last(self) -> Array:
        """Whether a game has just ended."""
        return self.ended


def inputs_of(world: Game[Any], state: Any) -> Array:
    """The inputs of our agent: the observation and the features of ρ."""
    rho = jax.vmap(world.attributes)(state)
    return jnp.concatenate([jax.vmap(world.observe)(state), SPACE.encode(rho)], axis=-1)


def play_step(world: Game[Any], goal: Goal, fresh: Any, now: GoalStep, action: Array) -> GoalStep:
    """One step of every lane; a game ends with the goal, with death, or with time."""
    key, step_key = jax.random.split(now.key)
    state = jax.vmap(world.step)(jax.random.split(step_key, len(action)), now.state, action)
    reached = goal.reached(jax.vmap(world.attributes)(state))
    ended = reached | jax.vmap(world.over)(state) | (now.age + 1 >= BUDGET)
    state = jax.tree.map(lambda a, b: jnp.where(ended.reshape(-1, *(1,) * (a.ndim - 1)), a, b), fresh, state)
    age = jnp.where(ended, 0, now.age + 1)
    return GoalStep(state, age, key, inputs_of(world, state), reached.astype(jnp.float32), ended)


def begin(world: Game[Any], key: PRNGKeyArray, lanes: int) -> GoalStep:
    """Every lane in a new world."""
    reset_key, key = jax.random.split(key)
    state = jax.vmap(world.reset)(jax.random.split(reset_key, lanes))
    none = jnp.zeros(lanes)
    return GoalStep(state, jnp.zeros(lanes, jnp.int32), key, inputs_of(world, state), none, none.astype(bool))


def trainer(
    world: Game[Any], goal: Goal, rules: PpoRules
) -> tuple[Callable[[PRNGKeyArray], Training], Callable[[Training], tuple[Training, Array]]]:
    """The start of a training, and its update, which also returns the share of ended games that reached the goal."""
    optimiser = optax.chain(optax.clip_by_global_norm(rules.norm), optax.adam(rules.rate, eps=1e-5))

    def start(key: PRNGKeyArray) -> Training:
        params_key, lanes_key, key = jax.random.split(key, 3)
        now = begin(world, lanes_key, rules.lanes)
        params = init_params(rules, params_key, now.observation.shape[-1], len(world.actions))
        return Training(params, optimiser.init(params), now, key)

    def update(training: Training) -> tuple[Training, Array]:
        key, fresh_key, play_key, learn_key = jax.random.split(training.key, 4)
        fresh = jax.vmap(world.reset)(jax.random.split(fresh_key, rules.lanes))

        def step(now: GoalStep, action: Array) -> GoalStep:
            return play_step(world, goal, fresh, now, action)

        now, batch, share = roll_out(rules, step, training.params, training.timestep, play_key)
        params, moments, _ = learn(rules, optimiser, training.params, training.moments, batch, learn_key)
        return Training(params, moments, now, key), share

    return start, update


def measure_success(world: Game[Any], goal: Goal, rules: PpoRules, tasks: int, params: Params) -> Array:
    """Share of new worlds in which the goal is reached in time."""
    start = begin(world, jax.random.key(TEST_SEED), tasks)

    def one(carry: tuple[GoalStep, Array, Array], key: PRNGKeyArray) -> tuple[Any, None]:
        now, done, dead = carry
        action = jax.random.categorical(key, act_and_judge(rules, params, now.observation)[0])
        now = play_step(world, goal, start.state, now, action)
        done = done | (now.reward > 0) & ~dead
        return (now, done, dead | now.ended), None

    none = jnp.zeros(tasks, bool)
    (_, done, _), _ = jax.lax.scan(one, (start, none, none), jax.random.split(jax.random.key(0), BUDGET))
    return jnp.mean(done)


def main() -> None:
    """Trains, tests, prints and writes."""
    parser = make_parser(__doc__)
    parser.add_argument("--goals", nargs="+", default=["wood_pickaxe>=1", "stone_pickaxe>=1"])
    parser.add_argument("--steps", type=int, default=90_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lanes", type=int, default=2048)
    parser.add_argument("--eval-points", type=int, default=3, help="evaluations, evenly spread over training")
    parser.add_argument("--tasks", type=int, default=500)
    options = parser.parse_args()
    if options.eval_points < 1:
        parser.error("--eval-points must be 1 or more")
    world: Game[Any] = craftax()
    rows: list[dict[str, Any]] = []
    rules = PpoRules(lanes=options.lanes, steps=64, minibatches=8, units=512, rate=3e-4, scale=1.0)
    updates = options.steps // (rules.lanes * rules.steps)
    for text in options.goals:
        goal = parse_goal(SPACE, text)
        start, update = trainer(world, goal, rules)
        keys = jax.vmap(jax.random.key)(jnp.arange(options.seeds))
        training, advance = jax.jit(jax.vmap(start))(keys), jax.jit(jax.vmap(update), donate_argnums=0)
        success_of = jax.jit(jax.vmap(partial(measure_success, world, goal, rules, options.tasks)))
        eval_points = {updates * (point + 1) // options.eval_points for point in range(options.eval_points)}
        for k in range(1, updates + 1):
            training, share = advance(training)
            if k % max(1, updates // 10) == 0:
                print(f"{text}: {k}/{updates} updates, {float(jnp.mean(share)):.1%} of games end with it", flush=True)
            if k not in eval_points:
                continue
            steps, success = k * rules.lanes * rules.steps, success_of(training.params).tolist()
            rows += [{"goal": text, "seed": seed, "steps": steps, "tasks": options.tasks, "success": round(reached, 4)}
                     for seed, reached in enumerate(success)]  # fmt: skip
            print(f"{text}: {steps} steps: reached in {[round(x, 3) for x in success]} of worlds, by seed", flush=True)
            write_result(options.json, {"rows": rows}, "craftax")


if __name__ == "__main__":
    main()

"""Gymnasium's Taxi-v4: drive anywhere, with the passenger anywhere, after training without any task.

    python examples/taxi.py --steps 300000 --seeds 3 --json results/taxi.json

Prints the share of goals (row, column, place of the passenger) reached within 150 steps from random starts, and
compares the learnt edges with the exact ones of the environment's own table.
"""

import argparse
import functools
import itertools
from pathlib import Path
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np

import saplan
from saplan import Categorical, Natural, Product
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.pricing import edge_outlook

PLACES = ("red", "green", "yellow", "blue", "taxi")
SPACE = Product.of(row=Natural(bins=5), column=Natural(bins=5), passenger=Categorical(PLACES))


def attributes(observation: Any, info: dict[str, Any], env: Any) -> tuple[int, int, int]:
    """Row and column of the taxi, and the place of the passenger; the passenger's destination is not used."""
    row, column, passenger, _ = env.decode(observation)
    return row, column, passenger


def taxi() -> saplan.GymWorld:
    """The world: an environment, its attributes, and all possible goals."""
    goals = [f"row={r} column={c} passenger={p}" for r, c, p in itertools.product(range(5), range(5), PLACES)]
    make = functools.partial(gymnasium.make, "Taxi-v4", render_mode="rgb_array")
    return saplan.gym_world(make, SPACE, attributes, goals, endless=True, name="Taxi-v4")


def exact_changes() -> set[tuple[float, ...]]:
    """Every (ρ, δρ) that an action can cause, from the environment's own table."""
    env: Any = gymnasium.make("Taxi-v4").unwrapped
    found = set()
    for state, actions in env.P.items():
        before = np.array(list(env.decode(state))[:3], np.float32)
        for ((_, following, _, _),) in actions.values():
            after = np.array(list(env.decode(following))[:3], np.float32)
            if np.any(before != after):
                delta = SPACE.difference(jnp.asarray(after), jnp.asarray(before))
                found.add((*before.tolist(), *np.asarray(delta).tolist()))
    return found


def edges(agent: StructuredAgent) -> tuple[float, float]:
    """Precision and recall of the learnt edges against the exact ones, over all ρ and all of 𝓑."""
    exact = exact_changes()
    rho = jnp.array(list(itertools.product(range(5), range(5), range(len(PLACES)))), jnp.float32)
    delta = agent.memory.delta[: int(agent.memory.size)]
    ends = SPACE.compose(rho[:, None], delta[None])
    inside = np.asarray(SPACE.contains(ends)) & np.all(np.asarray(ends)[..., :2] < 5, axis=-1)
    log_success, _ = edge_outlook(agent, rho, saplan.PlannerSettings())
    learnt = inside & (np.exp(np.asarray(log_success))[:, : len(delta)] > 0.5)
    true = np.array([[(*r, *d) in exact for d in np.asarray(delta).tolist()] for r in np.asarray(rho).tolist()])
    hits = (learnt & true).sum()
    return float(hits / learnt.sum()), float(hits / len(exact))


def main() -> None:
    """Trains, evaluates, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--lanes", type=int, default=64)
    parser.add_argument("--out", type=Path, help="directory for the runs, a subdirectory per seed")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world = taxi()
    rows: list[dict[str, Any]] = []
    settings = saplan.StructuredSettings(lanes=options.lanes, minibatches=8)
    for seed in range(options.seeds):
        out = options.out / str(seed) if options.out else None
        agent = saplan.train(world, options.steps, seed, settings, out, eval_points=0, progress=saplan.ProgressBar())
        assert isinstance(agent, saplan.StructuredAgent)
        result = saplan.evaluate(agent, options.tasks)
        precision, recall = edges(agent)
        rows.append({"seed": seed, "steps": options.steps, "tasks": options.tasks,
                     "success": float(result.success.mean()), "precision": precision, "recall": recall})  # fmt: skip
        print(f"seed {seed}: {rows[-1]['success']:.1%} of goals reached, edges: precision {precision:.3f}, "
              f"recall {recall:.3f}", flush=True)  # fmt: skip
    saplan.write_result(options.json, {"rows": rows}, "gymnasium")


if __name__ == "__main__":
    main()

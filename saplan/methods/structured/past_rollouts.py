"""Earlier rollouts, kept to learn from them again: a world on the host is slower than learning.

The targets of a step are about what its action leads to, not about the policy that chose it, and returns end at the
first action that the present policy would not take. So old rollouts teach the present policy like new ones.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32, PRNGKeyArray, Shaped

from saplan.games.game import Game
from saplan.methods.targets import Rollout
from saplan.rl.rollout import RolloutState, Trajectory


class PastRollouts(eqx.Module):
    """The latest rollouts in a ring."""

    trajectory: Trajectory
    """Leading axes (rollouts, time, lanes)."""
    last_seen: Shaped[Array, "rollouts lanes slots"]
    last_rho: Float[Array, "rollouts lanes K"]
    """Observation and ρ after the last steps."""
    count: Int32[Array, ""]
    """Rollouts so far."""


def no_rollouts(game: Game[Any], settings: Any, lanes: RolloutState[Any]) -> PastRollouts:
    """An empty ring of the right shape."""
    seen = jax.eval_shape(jax.vmap(game.observe), lanes.state)
    count, flag = jnp.zeros(settings.lanes, jnp.int32), jnp.zeros(settings.lanes, bool)
    rho = jnp.zeros_like(lanes.rho)
    step = Trajectory(
        jnp.zeros(seen.shape, seen.dtype), rho, flag, lanes.subgoal, count, count, rho, rho, flag, flag, flag, count,
        flag, flag,
    )  # fmt: skip
    size = settings.replay_size
    blank: Trajectory = jax.tree.map(lambda x: jnp.zeros((size, settings.rollout, *x.shape), x.dtype), step)
    last_seen, last_rho = (jnp.zeros((size, *x.shape), x.dtype) for x in (step.observation, rho))
    return PastRollouts(blank, last_seen, last_rho, jnp.zeros((), jnp.int32))


def with_past(
    game: Game[Any], past: PastRollouts, rollout: Rollout, key: PRNGKeyArray, number: int
) -> tuple[PastRollouts, Rollout]:
    """Keeps a rollout, and returns it side by side with some drawn from all that are kept."""
    size = len(past.last_rho)
    seen, rho = jax.vmap(game.observe)(rollout.lanes.state), rollout.lanes.rho
    new = (rollout.trajectory, seen, rho)
    rings = (past.trajectory, past.last_seen, past.last_rho)
    kept, last_seen, last_rho = jax.tree.map(lambda ring, x: ring.at[past.count % size].set(x), rings, new)
    count = past.count + 1
    drawn = jax.random.randint(key, (number,), 0, jnp.minimum(count, size))
    # Lanes of different rollouts do not know of each other, so a few rollouts make one with more lanes.
    trajectory = jax.tree.map(lambda ring, x: _beside(ring[drawn], x, 1), kept, rollout.trajectory)
    last = _beside(last_seen[drawn], seen, 0), _beside(last_rho[drawn], rho, 0)
    wide = Rollout.of(trajectory, rollout.lanes)._replace(last=last)
    return PastRollouts(kept, last_seen, last_rho, count), wide


def _beside(rings: Shaped[Array, "number *shape"], x: Shaped[Array, "*shape"], axis: int) -> Shaped[Array, "*wide"]:
    return jnp.concatenate([x, *rings], axis=axis)

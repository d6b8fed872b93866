"""Actions that can only spoil an attempt: execution does not take them.

Training counts which changes every action has led to, over all ρ: the algebra makes a change the same everywhere. An
action that has led to other changes, never to the wanted one, and never to anything else that is seen, is of no use
for the wanted change: at best it wastes a step. On exchange that is every trade while the agent walks to an object.
"""

from functools import partial

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Int32

from saplan.rl.rollout import Trajectory

ENOUGH = 100
"""Changes after which it is known what an action leads to."""


class ActionEffects(eqx.Module):
    """What every action has led to."""

    made: Int32[Array, "actions C"]
    """How often to every change in 𝓑."""
    moved: Int32[Array, "actions"]
    """How often to another observation without a change of ρ."""

    def mask(self) -> Bool[Array, "C actions"]:
        """The actions that execution does not take while it attempts each change."""
        known = jnp.sum(self.made, axis=1) >= ENOUGH
        spoils = (self.made == 0) & (known & (self.moved == 0))[:, None]
        # Of a change that nothing has led to yet, nothing is known.
        return spoils.T & jnp.any(self.made > 0, axis=0)[:, None]


def no_effects(actions: int, capacity: int) -> ActionEffects:
    """Counts of nothing."""
    zeros = partial(jnp.zeros, dtype=jnp.int32)
    return ActionEffects(zeros((actions, capacity)), zeros(actions))


def count_effects(effects: ActionEffects, steps: Trajectory, made: Int[Array, "time lanes"]) -> ActionEffects:
    """Adds the steps of a rollout; `made` is the entry of the change that each of them made."""
    capacity = effects.made.shape[1]
    entry = jnp.where(steps.changed & (made >= 0), made, capacity)
    # The observation after the last step of a rollout is not recorded.
    differs = jnp.any(steps.observation[1:] != steps.observation[:-1], axis=tuple(range(2, steps.observation.ndim)))
    moved = differs & ~steps.changed[:-1] & ~steps.game_over[:-1]
    return ActionEffects(
        effects.made.at[steps.action, entry].add(1, mode="drop"),
        effects.moved.at[steps.action[:-1]].add(moved.astype(jnp.int32)),
    )

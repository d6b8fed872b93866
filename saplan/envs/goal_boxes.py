"""Goals as plain vectors of finite numbers, the form in which Gymnasium and hindsight replay pass them on.

A goal is written as the bounds of its box: `(low_1..low_K, high_1..high_K)`, float32. A free attribute has the bounds
-limit and +limit. What has been achieved is written in the same form, as the goal "exactly this ρ", give or take every
attribute's own tolerance: so hindsight may put the one in the place of the other.
"""

import numpy as np
from jaxtyping import Bool, Float

from saplan.algebra import Product
from saplan.errors import InputError
from saplan.goals import HAIR, Goal

GoalBox = Float[np.ndarray, "... bounds"]
"""(low_1..low_K, high_1..high_K), or a batch of them."""


def goal_box(space: Product, goal: Goal, limit: float) -> GoalBox:
    """The box of a goal; `InputError` if it asks for what lies beyond the limit."""
    low, high = np.asarray(goal.low, np.float32), np.asarray(goal.high, np.float32)
    if low.shape != (space.size,) or high.shape != (space.size,):
        raise InputError(f"the goal has {low.shape} bounds, but there are {space.size} attributes")
    bounds = np.concatenate([low, high])
    if np.isnan(bounds).any() or np.any(np.isfinite(bounds) & (np.abs(bounds) > limit)):
        raise InputError(f"the goal asks for more than ±{limit:g}, the limit here; an environment can have another")
    return np.asarray(np.clip(bounds, -limit, limit))


def achieved_box(space: Product, rho: Float[np.ndarray, "K"], limit: float) -> GoalBox:
    """The box of the goal that ρ has just fulfilled."""
    slack = np.array([block.tolerance * HAIR for block in space.blocks], np.float32)
    return np.asarray(np.clip(np.concatenate([rho - slack, rho + slack]), -limit, limit), np.float32)


def reached(achieved: GoalBox, desired: GoalBox) -> Bool[np.ndarray, "..."]:
    """Whether what has been achieved, the middle of its box, lies in the desired box. Leading axes are a batch."""
    size = achieved.shape[-1] // 2
    # In double precision a count's middle is the count itself, so that nothing is lost by writing it as a box.
    middle = (achieved[..., :size].astype(np.float64) + achieved[..., size:]) / 2
    inside = (middle >= desired[..., :size]) & (middle <= desired[..., size:])
    return np.asarray(np.all(inside, axis=-1))

"""Goals as vectors of finite numbers, the form that Gymnasium and hindsight replay use.

A goal is written as the bounds of its box: `(low_1..low_K, high_1..high_K)`, float32. A free attribute has the bounds
-limit and +limit. The achieved goal has the same form: "exactly this ρ", up to the tolerance of each attribute. So
hindsight can substitute the achieved goal for the desired one.
"""

import numpy as np
from jaxtyping import Bool, Float

from saplan.algebra import Product
from saplan.errors import InputError
from saplan.goals import HAIR, Goal, meets

GoalBox = Float[np.ndarray, "... bounds"]
"""(low_1..low_K, high_1..high_K), or a batch of them."""


def goal_box(space: Product, goal: Goal, limit: float) -> GoalBox:
    """The box of a goal; `InputError` if a bound exceeds the limit."""
    low, high = np.asarray(goal.low, np.float32), np.asarray(goal.high, np.float32)
    if low.shape != (space.size,) or high.shape != (space.size,):
        raise InputError(f"the goal has {low.shape} bounds, but there are {space.size} attributes")
    bounds = np.concatenate([low, high])
    if np.isnan(bounds).any() or np.any(np.isfinite(bounds) & (np.abs(bounds) > limit)):
        raise InputError(f"the goal exceeds ±{limit:g}, the limit of this environment: make it with a larger `limit`")
    return np.asarray(np.clip(bounds, -limit, limit))


def achieved_box(space: Product, rho: Float[np.ndarray, "K"], limit: float) -> GoalBox:
    """The box of the goal that ρ fulfils exactly."""
    bounds = [block.interval(float(x), block.tolerance * HAIR) for block, x in zip(space.blocks, rho, strict=True)]
    return np.asarray(np.clip(np.array(bounds, np.float32).T.reshape(-1), -limit, limit), np.float32)


def box_reached(space: Product, achieved: GoalBox, desired: GoalBox) -> Bool[np.ndarray, "..."]:
    """Whether the middle of the achieved box lies in the desired box. Leading axes are a batch."""
    size = space.size
    # In double precision the middle of a count's box is the count itself.
    low, high = achieved[..., :size].astype(np.float64), achieved[..., size:].astype(np.float64)
    periods = np.array([block.period for block in space.blocks])
    middle = np.where(low > high, (low + high + np.where(np.isfinite(periods), periods, 0.0)) / 2, (low + high) / 2)
    middle = np.where(middle >= periods, middle - periods, middle)
    return np.asarray(np.all(meets(desired[..., :size], desired[..., size:], middle), axis=-1))

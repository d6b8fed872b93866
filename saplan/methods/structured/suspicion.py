"""Failures beyond the range of training: after a few of them, a boundary is suspected there.

A failure inside the range says something about its own ρ alone. Beyond it, nothing but an extrapolation said that the
change is possible. So failures count against the same transition wherever the coordinate lies as far out or farther:
after `ENOUGH` of them it is not planned there any more. A success as far out refutes them.
"""

import numpy as np
from jaxtyping import Bool, Float, Float32

from saplan.planning import Raised

ENOUGH = 3
"""Failures after which a boundary is taken for real."""
Met = Float32[np.ndarray, "2 K"]
"""Least and greatest value of every coordinate that training met; the first is above the second without evidence."""


def blamed(met: Met, delta: Float[np.ndarray, "K"], rho: Float[np.ndarray, "K"]) -> Bool[np.ndarray, "2 K"]:
    """The coordinates, below or above the range, that a failure of a change at ρ is blamed on.

    These are the coordinates that it moves farther out, if there are any, else all that lie beyond the range.
    """
    end = rho + delta
    out = np.stack([np.minimum(rho, end) < met[0], np.maximum(rho, end) > met[1]]) & (met[0] <= met[1])
    moved: Bool[np.ndarray, "2 K"] = out & np.stack([delta < 0, delta > 0])
    return moved if moved.any() else out


def boundaries(met: Met, deltas: Float[np.ndarray, "C K"], raised: Raised) -> Float32[np.ndarray, "2 C K"]:
    """Values from which on each transition has failed often enough, below and above; infinite where it has not."""
    shape = deltas.shape
    failures = np.zeros((2, *shape), int)
    bounds = np.stack([np.full(shape, -np.inf, np.float32), np.full(shape, np.inf, np.float32)])
    for rho, transition, _ in raised:
        below, above = blamed(met, deltas[transition], rho)
        failures[0, transition] += below
        failures[1, transition] += above
        bounds[0, transition, below] = np.maximum(bounds[0, transition], rho)[below]
        bounds[1, transition, above] = np.minimum(bounds[1, transition], rho)[above]
    nowhere = np.array([-np.inf, np.inf], np.float32)[:, None, None]
    return np.where(failures >= ENOUGH, bounds, nowhere).astype(np.float32)


def refuted(
    met: Met, deltas: Float[np.ndarray, "C K"], raised: Raised, rho: Float[np.ndarray, "K"], transition: int
) -> Raised:
    """The failures that remain after a success of a transition at ρ: those of others, and those farther out."""

    def stands(failed: Float[np.ndarray, "K"]) -> bool:
        below, above = blamed(met, deltas[transition], failed)
        return not bool(np.any((below & (rho <= failed)) | (above & (rho >= failed))))

    return [one for one in raised if one[1] != transition or stands(one[0])]

"""Evidence that the edge detector's opinions carry over beyond the values that training met.

The hypothesis is that beyond some value nothing changes any more along a coordinate. It is tested on known outcomes:
the outer third of the range is left out, its values are shown to the detector as the last value that stays, and the
predictions are compared with what happened there. Where they hold, networks see a value beyond the range as the last
value inside it, and plans may go there. Where they fail (a cap, a price that changes), plans stay inside the range.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32

from saplan.algebra import Delta, Product, Rho
from saplan.algebra.base import EXACT
from saplan.algebra.rows import LineRow
from saplan.methods.structured.edge_detector import EdgeDetector, Replay

OUTER = 1 / 3
"""Share of a coordinate's range that is left out by a test."""
RARE = 1e-3
"""Share of the examples beyond which a value is shown to networks as a more common one."""
CELLS = 8
"""Parts of the outer range that are tested by themselves: a cap may lie at its very end."""
LEAST_TESTS, LEAST_IN_CELL = 50, 10
"""Outcomes that a test needs, in all and of one transition in one part of the range."""
MOST_LOST = 0.25
"""Share of right predictions that may be lost anywhere by leaving values out."""


class Evidence(eqx.Module):
    """The range of every coordinate that training met, and how well opinions carried over beyond parts of it."""

    met: Float[Array, "2 K"]
    """Least and greatest value met, or the end of the block; all values where the coordinate has no beyond. The first
    is above the second without evidence.
    """
    shown: Float[Array, "2 K"]
    """Least and greatest value that networks are shown."""
    tested: Int32[Array, "2 K"]
    """Outcomes in the outer part of the range, below and above."""
    right: Float[Array, "2 K"]
    """Share of them that was predicted right without that part, as a mean over transitions and values."""
    lost: Float[Array, "2 K"]
    """The largest share of right predictions that a transition lost somewhere by leaving that part out."""

    @property
    def carries(self) -> Bool[Array, "2 K"]:
        """Whether opinions carry over below and above the range of every coordinate."""
        return (self.tested >= LEAST_TESTS) & (self.lost <= MOST_LOST)

    @property
    def present(self) -> Bool[Array, "K"]:
        """Whether there is evidence at all."""
        return self.met[0] <= self.met[1]

    def beyond(self, rho: Rho) -> Bool[Array, "... 2 K"]:
        """Whether each coordinate lies below and above the range that training met."""
        return jnp.stack([rho < self.met[0], rho > self.met[1]], axis=-2) & self.present

    def sentences(self, space: Product, path: Float[np.ndarray, "n K"]) -> tuple[str, ...]:
        """The values on a path that training never met, the farthest of every coordinate, with the evidence."""
        met, right, tested = np.asarray(self.met), np.asarray(self.right), np.asarray(self.tested)
        found = []
        for k, (name, block) in enumerate(zip(space.names, space.blocks, strict=True)):
            for side, value in ((0, path[:, k].min()), (1, path[:, k].max())):
                if met[0, k] <= met[1, k] and (value < met[0, k] if side == 0 else value > met[1, k]):
                    low, high = (block.format(float(bound)) for bound in met[:, k])
                    share = f"right beyond the range in {right[side, k]:.0%} of {tested[side, k]} tests"
                    doubt = f"the detector has been {share}" if tested[side, k] else "nothing was tested beyond it"
                    value_text = block.format(float(value))
                    found.append(f"{name}={value_text} was never met in training ({low}..{high}); {doubt}")
        return tuple(found)


class Familiar(eqx.Module):
    """Shows a network the last value inside the range of training in place of one beyond it.

    With many values at their ends, a combination is shown that training never met. So a network that has learnt to act
    without them (`DropoutEncoder`) is shown none of the open-ended values where any of them lies beyond the range.
    """

    evidence: Evidence
    hides: bool = eqx.field(static=True, default=False)

    def __call__(self, rho: Float[Array, "... K"]) -> Float[Array, "... K"]:
        """ρ as the network is shown it; NaN where it is hidden."""
        low, high = self.evidence.shown
        inside = jnp.clip(rho, low, high)
        if not self.hides:
            return inside
        beyond, ends = jnp.any(inside != rho, axis=-1, keepdims=True), (low > -EXACT) | (high < EXACT)
        return jnp.where(beyond & ends, jnp.nan, inside)


def no_evidence(space: Product) -> Evidence:
    """Evidence of nothing."""
    # Without arithmetic: agents of older files get this when they are loaded, where nothing should be compiled.
    both = np.repeat(np.array([[EXACT], [-EXACT]], np.float32), space.size, axis=1)
    none, count = (np.zeros((2, space.size), kind) for kind in (np.float32, np.int32))
    return Evidence(*(jax.device_put(each) for each in (both, -both, count, none, none)))


def block_ends(space: Product) -> Float[np.ndarray, "2 K"]:
    """Least and greatest value that each coordinate can have; NaN where its block does not end, or is not a line."""
    rows = [block.row() for block in space.blocks]
    bounds = np.array([[x.low, x.high] if isinstance(x, LineRow) else [np.nan, np.nan] for x in rows]).T
    return np.where(np.abs(bounds) < EXACT, bounds, np.nan)


@eqx.filter_jit
def gather_evidence(detector: EdgeDetector, space: Product, transitions: Delta, outcomes: Replay) -> Evidence:
    """Evidence from the outcomes of execution attempts."""
    valid = jnp.arange(outcomes.success.shape[1]) < outcomes.filled[:, None]
    after = space.compose(outcomes.rho, transitions[:, None])
    reached = valid & outcomes.success

    def extreme(share: float) -> Float[Array, "K"]:
        places = jnp.stack([jnp.where(valid[..., None], outcomes.rho, jnp.nan),
                            jnp.where(reached[..., None], after, jnp.nan)])  # fmt: skip
        return jnp.nanquantile(places.reshape(-1, space.size), share, axis=0, method="nearest")

    nothing = no_evidence(space)
    # On a side where the block itself ends, nothing can lie beyond the range. Circles and labels have no beyond at all:
    # a change may lead from their last value to the first.
    known, closed = jnp.array(block_ends(space)), ~np.any(space.open_sides, axis=0)
    met = jnp.where(jnp.isnan(known), jnp.stack([extreme(0.0), extreme(1.0)]), known)
    met = jnp.where(closed, nothing.shown, met)
    shown = jnp.where(jnp.array(space.open_sides), jnp.stack([extreme(RARE), extreme(1 - RARE)]), nothing.shown)
    full = detector(space, outcomes.rho, transitions[:, None]).success > 0
    test = partial(_test, detector, space, transitions, outcomes, valid, full == outcomes.success, shown)
    pairs = jnp.tile(jnp.arange(space.size), 2), jnp.repeat(jnp.array([False, True]), space.size)
    tested, right, lost = (x.reshape(2, -1) for x in jax.lax.map(lambda pair: test(*pair), pairs))
    sides = jnp.array(space.open_sides)
    found = Evidence(met, shown, jnp.where(sides, tested, 0), jnp.where(sides, right, 0.0), jnp.where(sides, lost, 0.0))
    gathered: Evidence = jax.tree.map(lambda x, y: jnp.where(jnp.any(valid), x, y), found, nothing)
    return gathered


def _test(
    detector: EdgeDetector,
    space: Product,
    transitions: Delta,
    outcomes: Replay,
    valid: Bool[Array, "C n"],
    right_before: Bool[Array, "C n"],
    shown: Float[Array, "2 K"],
    k: Array,
    above: Array,
) -> tuple[Int32[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """One coordinate, one side: the tests, the share of right predictions, and the largest loss of a transition."""
    sign, grain = jnp.where(above, 1.0, -1.0), jnp.array(space.grain)[k]
    value = outcomes.rho[..., k]
    far = jnp.where(above, shown[1, k], -shown[0, k])
    near = jnp.maximum(jnp.where(above, shown[0, k], -shown[1, k]), jnp.min(jnp.where(valid, sign * value, jnp.inf)))
    last = jnp.floor((far - OUTER * (far - near)) / grain) * grain
    # With a long tail of rare values, more than a third is left out: a test needs enough outcomes.
    share = jnp.minimum(1.0, 2 * LEAST_TESTS / jnp.maximum(jnp.sum(valid), 1))
    common = jnp.nanquantile(jnp.where(valid, sign * value, jnp.nan), 1 - share, method="lower")
    last = jnp.minimum(last, jnp.minimum(far, common) - grain)
    test = valid & (sign * value > last)
    limited = outcomes.rho.at[..., k].set(jnp.where(test, sign * last, value))
    # A change that would use up more than the last value has no prediction there: planning masks it.
    test &= space.contains(space.compose(limited, transitions[:, None]))
    right = (detector(space, limited, transitions[:, None]).success > 0) == outcomes.success
    part = jnp.ceil((sign * value - last) / jnp.maximum((far - last) / CELLS, grain)).astype(jnp.int32)
    member = test[..., None] & (jnp.clip(part, 1, CELLS)[..., None] == jnp.arange(1, CELLS + 1))
    count = jnp.sum(member, axis=1)
    share = jnp.sum(member & right[..., None], axis=1) / jnp.maximum(count, 1)
    before = jnp.sum(member & right_before[..., None], axis=1) / jnp.maximum(count, 1)
    enough = count >= LEAST_IN_CELL
    mean = jnp.sum(share * enough) / jnp.maximum(jnp.sum(enough), 1)
    return jnp.sum(count, dtype=jnp.int32), mean, jnp.max(jnp.where(enough, before - share, 0.0))

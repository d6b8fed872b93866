"""What changes by itself: elements are those of the block inside, and there is one change, none."""

import jax.numpy as jnp
import numpy as np

from saplan.algebra import Cyclic, Exogenous, Natural, Product
from saplan.algebra.serialize import space_from_json, space_to_json

SPACE = Product.of(wood=Natural(), hour=Exogenous(Cyclic(12)), hunger=Exogenous(Natural(bins=10)))


def test_changes() -> None:
    before, after = jnp.array([1.0, 3.0, 4.0]), jnp.array([2.0, 4.0, 9.0])
    change = SPACE.difference(after, before)
    assert change.tolist() == [1.0, 0.0, 0.0]
    assert SPACE.compose(before, change).tolist() == [2.0, 3.0, 4.0], "plans keep what they saw"
    assert bool(SPACE.changed(before, after))
    assert not bool(SPACE.changed(before, jnp.array([1.0, 7.0, 0.0])))
    assert bool(SPACE.same_change(change, jnp.array([1.0, 5.0, 5.0])))
    assert SPACE.format_delta(change) == "wood +1"


def test_values_are_seen_and_judged_by_the_block_inside() -> None:
    assert SPACE.width == Natural().width + Cyclic(12).width + Natural(bins=10).width
    assert SPACE.delta_width == Natural().delta_width
    seen = SPACE.encode(jnp.array([[0.0, 3.0, 4.0], [0.0, 4.0, 4.0]]))
    assert not np.array_equal(seen[0], seen[1])
    assert not bool(SPACE.contains(jnp.array([0.0, 12.0, 0.0])))
    assert SPACE.encode_delta(jnp.zeros((5, 3))).shape == (5, SPACE.delta_width)


def test_all_values_are_one_node_and_one_cell() -> None:
    grain = np.array(SPACE.grain, np.float32)
    assert np.rint(np.array([2.0, 11.0, 9.0]) / grain).tolist() == [2.0, 0.0, 0.0]
    assert SPACE.bin(jnp.array([2.0, 11.0, 9.0])).tolist() == [2, 0, 0]


def test_there_and_back() -> None:
    assert space_from_json(space_to_json(SPACE)) == SPACE

"""Attributes that do not decide what is possible: plans and goals use them, networks and counts do not see them."""

import jax.numpy as jnp
import numpy as np
import pytest

from saplan.algebra import Cyclic, Exogenous, Homogeneous, Integer, Natural, Product, Real
from saplan.algebra.serialize import space_from_json, space_to_json
from saplan.errors import InputError
from saplan.goals import format_goal, parse_goal

PLAIN = Product.of(x=Natural(), y=Integer(), heading=Cyclic(4))
SPACE = Product.of(x=Homogeneous(Natural()), y=Homogeneous(Integer()), heading=Cyclic(4))
RHO = jnp.array([[2.0, -3, 1], [0, 5, 3], [4, 4, 0]])


def test_changes_are_those_of_the_block_inside() -> None:
    after = RHO[::-1]
    change = SPACE.difference(after, RHO)
    np.testing.assert_array_equal(change, PLAIN.difference(after, RHO))
    np.testing.assert_array_equal(SPACE.compose(RHO, change), after)
    np.testing.assert_array_equal(SPACE.encode_delta(change), PLAIN.encode_delta(change))
    assert SPACE.format_delta(change[0]) == PLAIN.format_delta(change[0])
    assert not bool(SPACE.contains(jnp.array([-1.0, 0, 0])))
    assert SPACE.grain == PLAIN.grain


def test_networks_and_counts_do_not_see_them() -> None:
    far = RHO.at[:, :2].add(1000)
    np.testing.assert_array_equal(SPACE.encode(RHO), SPACE.encode(far))
    assert SPACE.width == Cyclic(4).width
    np.testing.assert_array_equal(SPACE.bin(RHO), SPACE.bin(far))


def test_goals_and_files() -> None:
    goal = parse_goal(SPACE, "x>=2 y=-3")
    assert format_goal(SPACE, goal) == "x>=2 y=-3"
    assert space_from_json(space_to_json(SPACE)) == SPACE
    posed = SPACE.with_pose("x", "y", "heading")
    assert space_from_json(space_to_json(posed)) == posed
    row = {"name": "x", "block": "Natural", "bins": 4}
    for marks in ({"homogeneous": 1}, {"homogeneous": True, "exogenous": True}):
        with pytest.raises(InputError):
            space_from_json([{**row, **marks}])


def test_marks_exclude_each_other() -> None:
    for block in (Exogenous(Natural()), Homogeneous(Real())):
        with pytest.raises(InputError):
            Homogeneous(block)

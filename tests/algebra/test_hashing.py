"""Hash values, fixed bit by bit: agents on disk and the course of every training depend on them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.algebra import Cyclic, Integer, Natural, Product, Real
from saplan.algebra.hashing import fingerprint, hashed, hashed_rho, joint_cell, marks, mix, mixers

SPACE = Product.of(red=Natural(), switch=Cyclic(3), m1=Real(1.0, low=0.0, high=13.0), debt=Integer())
RHO = np.array([[0, 0, 0, 0], [1, 2, 3.5, -4], [31, 1, 12.9, 30], [7, 0, 6.25, -20]], np.float32)


def test_rows() -> None:
    rows = np.array([[0, 0, 0], [1, 2, 3], [-1, -2, -3], [2**40, -(2**50), 7]], np.int64)
    assert mixers(3).tolist() == [2937467307694268569, 1244171615822312905, 188957027462249007]
    assert mixers(5)[3:].tolist() == [76220265684581385, 3750546991322993743]
    assert hashed(rows, mixers(3)).tolist() == [0, 1307833510108000587, 6032392325062262517, 8981219199389609666]


def test_rho_on_the_host() -> None:
    assert hashed_rho(RHO).tolist() == [0, 5617232325318218080, 6658554059659279629, 7280170668185418539]


@pytest.mark.parametrize(("cells", "expected"), [(1000, [90, 90, 416, 833]), (2**20, [243642, 534098, 627544, 634801])])
def test_joint_cells(cells: int, expected: list[int]) -> None:
    bins = SPACE.bin(jnp.array(RHO))
    assert joint_cell(bins, cells).tolist() == expected
    assert joint_cell(bins.reshape(2, 2, 4), cells).reshape(-1).tolist() == expected
    assert jax.vmap(lambda row: joint_cell(row, cells))(bins).tolist() == expected


def test_fingerprints_of_rho() -> None:
    home, tag = fingerprint(jnp.array(RHO))
    assert home.tolist() == [0, 861793560, 1959294062, 1594140659]
    assert tag.tolist() == [4056740397, 2489627557, 2817123803, 3533752161]


@pytest.mark.parametrize(
    ("place", "one", "several"),
    [
        (
            np.array([[1, 2, 3], [0, 700, 2000]], np.int16),
            [889854693, 1652739947],
            [[3577130023, 1936628005, 296082145], [542299253, 1943408395, 3583952329]],
        ),
        (
            np.array([[0.5, -1.25], [0.0, 3.0]], np.float32),
            [293786553, 2595331351],
            [[2914770891, 1752871829, 112316531], [3605674987, 4232368545, 2591921699]],
        ),
        (
            np.array([[0, 255, 7], [9, 8, 7]], np.uint8),
            [879164591, 2983578915],
            [[4049490957, 2169765705, 529156233], [2537821639, 4178326407, 3551889863]],
        ),
    ],
    ids=["words", "numbers", "pixels"],
)
def test_marks_of_a_step(place: np.ndarray, one: list[int], several: list[list[int]]) -> None:
    assert marks(jnp.array(place), 0, jnp.array([3, 4])).tolist() == one
    assert marks(jnp.array(place), jnp.array([5, 6]), jnp.arange(3)[None]).tolist() == several


def test_one_step_is_the_same_on_the_host_and_on_a_device() -> None:
    x = np.array([0, 1, 2**31, 2**32 - 1], np.uint32)
    assert mix(x, 0x9E3779B1, 15).tolist() == mix(jnp.array(x), 0x9E3779B1, 15).tolist()
    assert mix(x, 0x9E3779B1, 15).dtype == x.dtype

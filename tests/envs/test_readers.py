"""Observations of all kinds as words, numbers or pictures."""

import numpy as np
import pytest
from gymnasium import spaces

from saplan.envs.readers import NumberReader, PictureReader, WordReader, reader_of
from saplan.errors import InputError


def test_names_are_words() -> None:
    reader = reader_of(spaces.MultiDiscrete([9, 2], start=[-1, 3]))
    assert isinstance(reader, WordReader)
    assert (reader.slots, reader.vocabulary) == (2, 12)
    assert reader.read(np.array([-1, 3])).tolist() == [1, 10]
    assert reader.read(np.array([7, 4])).tolist() == [9, 11]
    assert reader_of(spaces.Discrete(500)).read(17).tolist() == [18]
    small = reader_of(spaces.Box(0, 10, (2, 2), np.uint8))
    assert isinstance(small, WordReader)
    assert small.read(np.array([[0, 10], [1, 0]], np.uint8)).tolist() == [1, 22, 24, 34]


def test_parts_that_are_all_names_are_words_too() -> None:
    reader = reader_of(spaces.Dict(a=spaces.Discrete(3), b=spaces.Tuple([spaces.MultiBinary(2), spaces.Discrete(2)])))
    assert isinstance(reader, WordReader)
    assert reader.read({"a": 2, "b": (np.array([1, 0]), 1)}).tolist() == [3, 5, 6, 9]


def test_quantities_are_numbers_of_order_one() -> None:
    reader = reader_of(spaces.Box(np.array([0.0, -np.inf]), np.array([10.0, np.inf]), dtype=np.float64))
    assert isinstance(reader, NumberReader)
    assert reader.read(np.array([10.0, 15.0])).tolist() == [1.0, 1.0]
    assert reader.read(np.array([0.0, -15.0])).tolist() == [-1.0, -1.0]
    assert reader.read(np.array([5.0, 0.0])).tolist() == [0.0, 0.0]


def test_mixed_parts_are_numbers() -> None:
    reader = reader_of(spaces.Dict(kind=spaces.Discrete(3, start=1), far=spaces.Box(0, 2, (1,))))
    assert isinstance(reader, NumberReader)
    assert (reader.slots, reader.vocabulary) == (4, 0)
    *kind, far = reader.read({"kind": 2, "far": np.array([1.0])}).tolist()
    assert (far, kind) == (0.0, [0.0, 1.0, 0.0])


def test_pictures() -> None:
    reader = reader_of(spaces.Box(0, 255, (20, 24, 3), np.uint8))
    assert isinstance(reader, PictureReader)
    assert (reader.picture, reader.slots) == ((20, 24, 3), 1440)
    assert isinstance(reader_of(spaces.Box(0, 255, (7, 7, 3), np.uint8)), NumberReader), "too small for convolutions"
    assert reader_of(spaces.Box(0, 255, (32, 32), np.uint8)).picture == (32, 32, 1)


def test_what_cannot_be_read() -> None:
    with pytest.raises(InputError, match="at 'mission' cannot be read: leave them out"):
        reader_of(spaces.Dict(mission=spaces.Text(8), view=spaces.Discrete(2)))

"""Readers that turn Gymnasium observations into network inputs: words, numbers, or a picture."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from saplan.errors import InputError

FEW = 64
"""Integers with at most this many values are names, not quantities."""
MANY_WORDS = 2**14
SMALLEST_PICTURE = 16
"""Rows and columns below which pixels are read as plain numbers."""
FAR = 5.0
"""Deviations from the mean beyond which normalised numbers are cut off."""
SAME = 1e-6
"""Numbers that deviate less are constant."""
UNBOUNDED = 1e6
"""Quantities with larger bounds are not scaled by them."""
Names = tuple[np.ndarray, np.ndarray]
"""The lowest value and the number of values of every entry."""


@dataclass(frozen=True)
class Leaf:
    """A part of an observation space that has no parts itself."""

    path: tuple[str | int, ...]
    space: spaces.Space[Any]

    def of(self, observation: Any) -> np.ndarray:
        """The entries of an observation at this path, flat."""
        for name in self.path:
            observation = observation[name]
        return np.asarray(observation).reshape(-1)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.space.shape or ()))

    @cached_property
    def names(self) -> Names | None:
        """The values that each entry can have, if these are names; else None."""
        space = self.space
        if isinstance(space, spaces.Discrete):
            return np.array([int(space.start)]), np.array([int(space.n)])
        if isinstance(space, spaces.MultiDiscrete):
            return np.asarray(space.start).reshape(-1), np.asarray(space.nvec).reshape(-1)
        if isinstance(space, spaces.MultiBinary):
            size = int(np.prod(space.shape))
            return np.zeros(size, int), np.full(size, 2)
        if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer):
            low, high = (bound.reshape(-1).astype(int) for bound in (space.low, space.high))
            if np.all(high - low < FEW):
                return low, high - low + 1
        return None

    def numbers(self, flat: np.ndarray) -> np.ndarray:
        """The entries as numbers of order one, names one-hot."""
        if self.names is not None:
            rows = zip(*self.names, flat, strict=True)
            return np.concatenate([np.arange(low, low + count) == value for low, count, value in rows])
        assert isinstance(self.space, spaces.Box)
        low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (self.space.low, self.space.high))
        bounded = (low > -UNBOUNDED) & (high < UNBOUNDED) & (high > low)
        low, high = np.where(bounded, low, 0.0), np.where(bounded, high, 1.0)
        # Unbounded quantities are scaled logarithmically: 0 to 0, ±15 to ±1.
        return np.where(bounded, 2 * (flat - low) / (high - low) - 1, np.sign(flat) * np.log2(1 + np.abs(flat)) / 4)


def leaves(space: spaces.Space[Any], path: tuple[str | int, ...] = ()) -> Iterator[Leaf]:
    """The leaves of a nested space."""
    if isinstance(space, spaces.Dict):
        for name, part in space.spaces.items():
            yield from leaves(part, (*path, name))
    elif isinstance(space, spaces.Tuple):
        for k, part in enumerate(space.spaces):
            yield from leaves(part, (*path, k))
    elif isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box):
        yield Leaf(path, space)
    else:
        where = f" at {'/'.join(map(str, path))!r}" if path else ""
        raise InputError(
            f"observations of {space}{where} cannot be read: leave them out or turn them into numbers, for instance "
            "with gymnasium.wrappers.FilterObservation or TransformObservation"
        )


class WordReader:
    """Integers that are names, as words: one word for every entry and value."""

    picture = None
    dtype = np.dtype(np.int16)

    def __init__(self, parts: Sequence[Leaf]) -> None:
        names = [part.names for part in parts if part.names is not None]
        low, counts = (np.concatenate([pair[k] for pair in names]) for k in (0, 1))
        self.parts, self.slots, self.vocabulary = parts, len(counts), 1 + int(counts.sum())
        self.shift = 1 + np.cumsum(counts) - counts - low
        """Added to the value of every entry to give its word; 0 is the padding word."""

    def read(self, observation: Any) -> np.ndarray:
        """The words of an observation."""
        return np.asarray(np.concatenate([part.of(observation) for part in self.parts]) + self.shift)


class NumberReader:
    """Numbers of order one: quantities on a common scale, names one-hot."""

    picture, vocabulary = None, 0
    dtype = np.dtype(np.float32)

    def __init__(self, parts: Sequence[Leaf]) -> None:
        self.parts = parts
        self.slots = sum(len(part.numbers(np.zeros(part.size))) for part in parts)

    def read(self, observation: Any) -> np.ndarray:
        """The numbers of an observation."""
        return np.concatenate([part.numbers(part.of(observation)) for part in self.parts]).astype(np.float32)


class NormalisingReader(NumberReader):
    """Numbers with mean 0 and deviation 1 over some sample of observations, names one-hot.

    `waves` adds sines and cosines of every number, in so many octaves from a period of four deviations downwards: a
    network learns where a value changes within a fraction of a deviation far sooner from these.
    """

    def __init__(self, parts: Sequence[Leaf], sample: Sequence[Any], waves: int = 0) -> None:
        super().__init__(parts)
        self.frequencies = np.pi / 2 * 2.0 ** np.arange(waves)
        self.slots *= 1 + 2 * waves
        numbers = np.array([self._plain(observation) for observation in sample])
        deviation = numbers.std(axis=0)
        self.mean, self.deviation = numbers.mean(axis=0), np.where(deviation > SAME, deviation, 1.0)

    def read(self, observation: Any) -> np.ndarray:
        """The normalised numbers of an observation, cut off far from the mean."""
        numbers = np.clip((self._plain(observation) - self.mean) / self.deviation, -FAR, FAR)
        phases = np.outer(self.frequencies, numbers).reshape(-1)
        seen: np.ndarray = np.concatenate([numbers, np.sin(phases), np.cos(phases)]).astype(np.float32)
        return seen

    def _plain(self, observation: Any) -> np.ndarray:
        parts = [(part, part.of(observation)) for part in self.parts]
        return np.concatenate([part.numbers(flat) if part.names is not None else flat for part, flat in parts])


class PictureReader:
    """A picture, pixel by pixel."""

    vocabulary = 0
    dtype = np.dtype(np.uint8)

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.picture, self.slots = shape, int(np.prod(shape))

    def read(self, observation: Any) -> np.ndarray:
        """The pixels of an observation."""
        return np.asarray(observation, np.uint8).reshape(-1)


Reader = WordReader | NumberReader | PictureReader


def reader_of(space: spaces.Space[Any]) -> Reader:
    """The reader for an observation space.

    Integers with few values are read as words, a picture of bytes as a picture, and anything else, including mixed
    parts, as numbers.
    """
    parts = list(leaves(space))
    names = [part.names for part in parts]
    if all(pair is not None for pair in names) and sum(int(pair[1].sum()) for pair in names if pair) < MANY_WORDS:
        return WordReader(parts)
    if isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3):
        rows, columns, channels = (*space.shape, 1)[:3]
        if min(rows, columns) >= SMALLEST_PICTURE:
            return PictureReader((rows, columns, channels))
    return NumberReader(parts)


def normalising_reader(space: spaces.Space[Any], sample: Sequence[Any], waves: int = 0) -> NormalisingReader:
    """The reader for an observation space of quantities that normalises by a sample of observations."""
    if not isinstance(reader_of(space), NumberReader):
        raise InputError(f"only quantities can be normalised, but observations are {space}")
    return NormalisingReader(list(leaves(space)), sample, waves)

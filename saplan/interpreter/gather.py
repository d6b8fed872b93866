"""Indexed reads and writes in NumPy, as JAX's `gather` and `scatter` define them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Windows:
    """How windows of an array are found by an array of indices.

    An axis of the result, or of the updates, runs either over the indices or along the windows.
    """

    along: Sequence[int]
    """Axes of the result that run along the windows."""
    dropped: Sequence[int]
    """Axes of the array that windows have no axis for."""
    starts: Sequence[int]
    """Axis of the array that every index of a place belongs to."""
    paired: Sequence[tuple[int, int]]
    """Axes of the array that run together with an axis of the indices."""

    def places(
        self, shape: tuple[int, ...], sizes: Sequence[int], indices: np.ndarray
    ) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """Indices of all elements in the shape of the result, and which of them lie in windows inside the array."""
        within = [d for d in range(len(shape)) if d not in self.dropped and d not in [pair[0] for pair in self.paired]]
        rank = indices.ndim - 1 + len(within)
        over = [d for d in range(rank) if d not in self.along]
        inside, places = np.ones((1,) * rank, bool), [np.zeros((1,) * rank, np.int64) for _ in shape]
        for k, d in enumerate(self.starts):
            start, last = indices[..., k].astype(np.int64), shape[d] - sizes[d]
            inside = inside & _spread((start >= 0) & (start <= last), over, rank)
            places[d] = places[d] + _spread(np.clip(start, 0, last), over, rank)
        for d, axis in self.paired:
            places[d] = places[d] + _spread(np.arange(shape[d]), [over[axis]], rank)
        for axis, d in zip(self.along, within, strict=True):
            places[d] = places[d] + _spread(np.arange(sizes[d]), [axis], rank)
        whole = np.broadcast_shapes(inside.shape, *(place.shape for place in places))
        return tuple(np.broadcast_to(place, whole) for place in places), np.broadcast_to(inside, whole)


def windows_of(along: Any, dropped: Any, starts: Any, paired: list[tuple[int, int]]) -> Windows:
    """Windows by the numbers of JAX, some of which are NumPy's."""
    return Windows(tuple(map(int, along)), tuple(map(int, dropped)), tuple(map(int, starts)), paired)


def _spread(values: Any, axes: Sequence[int], rank: int) -> np.ndarray:
    """Values with their axes at the given axes of an array of this rank."""
    shape = [1] * rank
    for axis, size in zip(axes, values.shape, strict=True):
        shape[axis] = size
    return np.reshape(values, shape)


def gather(parameters: dict[str, Any]) -> Callable[[Any, Any], np.ndarray]:
    """The function of (array, indices) for an operation's parameters."""
    numbers, sizes = parameters["dimension_numbers"], parameters["slice_sizes"]
    paired = list(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    windows = windows_of(numbers.offset_dims, numbers.collapsed_slice_dims, numbers.start_index_map, paired)

    def read(array: Any, indices: Any) -> np.ndarray:
        places, inside = windows.places(array.shape, sizes, indices)
        found: np.ndarray = array[places]
        if parameters["mode"].name != "FILL_OR_DROP" or inside.all():
            return found
        return np.where(inside, found, _blank(array.dtype, parameters["fill_value"]))

    return read


def scatter(write: Callable[[Any, Any, Any], None]) -> Callable[[dict[str, Any]], Callable[..., np.ndarray]]:
    """The operation that applies `write(array, places, values)` to a copy of the array."""

    def prepare(parameters: dict[str, Any]) -> Callable[..., np.ndarray]:
        numbers = parameters["dimension_numbers"]
        paired = list(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
        dropped, starts = numbers.inserted_window_dims, numbers.scatter_dims_to_operand_dims
        windows = windows_of(numbers.update_window_dims, dropped, starts, paired)

        def apply(array: Any, indices: Any, updates: Any) -> np.ndarray:
            result, sides = np.array(array), iter(updates.shape[d] for d in numbers.update_window_dims)
            gone = {*dropped, *(pair[0] for pair in paired)}
            sizes = [1 if d in gone else next(sides) for d in range(result.ndim)]
            places, inside = windows.places(result.shape, sizes, indices)
            kept = inside if parameters["mode"].name == "FILL_OR_DROP" else np.ones_like(inside)
            write(result, tuple(place[kept] for place in places), np.broadcast_to(updates, kept.shape)[kept])
            return result

        return apply

    return prepare


def replace(array: Any, places: Any, values: Any) -> None:
    """Write values at places."""
    array[places] = values


def _blank(dtype: Any, value: Any) -> Any:
    """The value of reads outside the array."""
    if value is not None:
        return dtype.type(value)
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return dtype.type(True) if dtype.kind == "b" else dtype.type(np.nan)

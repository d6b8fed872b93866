"""Indexed reads in NumPy, as JAX's `gather` defines them."""

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[[np.ndarray, np.ndarray], np.ndarray]


def gather(parameters: dict[str, Any]) -> Function:
    """The function of (array, indices) for an operation's parameters."""
    numbers, sizes = parameters["dimension_numbers"], parameters["slice_sizes"]
    within = [d for d in range(len(sizes)) if d not in numbers.collapsed_slice_dims + numbers.operand_batching_dims]

    def read(array: np.ndarray, indices: np.ndarray) -> np.ndarray:
        rank = indices.ndim - 1 + len(within)
        batch_axes = [d for d in range(rank) if d not in numbers.offset_dims]

        def along(values: np.ndarray, axes: list[int]) -> np.ndarray:
            """Values with their axes at the given axes of the result."""
            shape = [1] * rank
            for axis, size in zip(axes, values.shape, strict=True):
                shape[axis] = size
            return values.reshape(shape)

        inside = np.ones((1,) * rank, bool)
        places: list[np.ndarray] = [np.zeros((1,) * rank, np.int64) for _ in sizes]
        for k, d in enumerate(numbers.start_index_map):
            starts, last = indices[..., k].astype(np.int64), array.shape[d] - sizes[d]
            inside = inside & along((starts >= 0) & (starts <= last), batch_axes)
            places[d] = places[d] + along(np.clip(starts, 0, last), batch_axes)
        for d, batch in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
            places[d] = places[d] + along(np.arange(array.shape[d]), [batch_axes[batch]])
        for axis, d in zip(numbers.offset_dims, within, strict=True):
            places[d] = places[d] + along(np.arange(sizes[d]), [axis])
        # Indices that all come from offsets leave out the batch axes: the result has them all the same.
        shape = np.broadcast_shapes(*(place.shape for place in places), inside.shape)
        found: np.ndarray = np.broadcast_to(array[tuple(places)], shape)
        if parameters["mode"].name != "FILL_OR_DROP" or inside.all():
            return found
        return np.where(inside, found, _blank(array.dtype, parameters["fill_value"]))

    return read


def _blank(dtype: np.dtype[Any], value: Any) -> Any:
    """The value of reads outside the array."""
    if value is not None:
        return dtype.type(value)
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return dtype.type(True) if dtype.kind == "b" else dtype.type(np.nan)

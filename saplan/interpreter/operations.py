"""NumPy functions for the operations of JAX, by the names of their primitives.

`ELEMENTWISE` holds functions without parameters; `WITH_PARAMETERS` holds functions that take an operation's parameters
and return the function of its arrays.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from saplan.interpreter import threefry
from saplan.interpreter.gather import gather, replace, scatter

Operation = Callable[..., Any]
Values = Any
"""An array, or a NumPy scalar where there is no axis."""


def _divide(a: Values, b: Values) -> Values:
    """Quotient, rounded towards zero on integers."""
    return np.true_divide(a, b) if a.dtype.kind not in "iu" else (a - np.fmod(a, b)) // b


def _rsqrt(x: Values) -> Values:
    return np.reciprocal(np.sqrt(x))


def _logistic(x: Values) -> Values:
    return np.reciprocal(1 + np.exp(-x))


def _shift_right_logical(x: Values, by: Values) -> Values:
    unsigned = np.asarray(x).view(f"u{x.dtype.itemsize}")
    shifted = unsigned >> by.astype(unsigned.dtype)
    if np.any(by >= 8 * x.dtype.itemsize):  # NumPy leaves this case undefined
        shifted = np.where(by < 8 * x.dtype.itemsize, shifted, unsigned.dtype.type(0))
    return shifted.view(x.dtype)


def _shift_right_arithmetic(x: Values, by: Values) -> Values:
    return x >> np.minimum(by, 8 * x.dtype.itemsize - 1).astype(x.dtype)


def _select(which: Values, *cases: Values) -> Values:
    return np.where(which, cases[1], cases[0]) if which.dtype == bool else np.choose(which, cases)


def _clamp(low: Values, x: Values, high: Values) -> Values:
    return np.minimum(np.maximum(x, low), high)


ELEMENTWISE: dict[str, Operation] = {
    "abs": np.abs, "add": np.add, "add_any": np.add, "and": np.bitwise_and, "asinh": np.arcsinh, "atan2": np.arctan2,
    "ceil": np.ceil, "clamp": _clamp, "copy": np.asarray, "copy_p": np.asarray, "cos": np.cos, "div": _divide,
    "eq": np.equal, "exp": np.exp, "expm1": np.expm1, "floor": np.floor, "ge": np.greater_equal, "gt": np.greater,
    "is_finite": np.isfinite, "le": np.less_equal, "log": np.log, "log1p": np.log1p, "logistic": _logistic,
    "lt": np.less, "max": np.maximum, "min": np.minimum, "mul": np.multiply, "ne": np.not_equal, "neg": np.negative,
    "nextafter": np.nextafter, "not": np.invert, "or": np.bitwise_or, "pow": np.power, "rem": np.fmod,
    "rsqrt": _rsqrt, "select_n": _select, "shift_left": np.left_shift,
    "shift_right_arithmetic": _shift_right_arithmetic, "shift_right_logical": _shift_right_logical,
    "sign": np.sign, "sin": np.sin, "sqrt": np.sqrt, "square": np.square, "stop_gradient": np.asarray,
    "sub": np.subtract, "tan": np.tan, "tanh": np.tanh, "xor": np.bitwise_xor,
    "random_fold_in": threefry.fold_in, "random_unwrap": threefry.to_data,
}  # fmt: skip


def _convert(parameters: dict[str, Any]) -> Operation:
    dtype = np.dtype(parameters["new_dtype"])
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None

    def convert(x: Values) -> Values:
        if limits is not None and x.dtype.kind == "f":  # XLA saturates, NumPy wraps
            rounded = np.nan_to_num(np.asarray(x, np.float64), nan=0.0)
            return np.clip(rounded, limits.min, limits.max).astype(dtype)
        return x.astype(dtype, copy=False)

    return convert


def _bitcast(parameters: dict[str, Any]) -> Operation:
    dtype = np.dtype(parameters["new_dtype"])
    return lambda x: np.ascontiguousarray(x).view(dtype).reshape(np.shape(x))


def _broadcast(parameters: dict[str, Any]) -> Operation:
    shape, kept = parameters["shape"], set(parameters["broadcast_dimensions"])

    def broadcast(x: Values) -> Values:
        sizes = iter(np.shape(x))
        return np.broadcast_to(np.reshape(x, [next(sizes) if d in kept else 1 for d in range(len(shape))]), shape)

    return broadcast


def _slice(parameters: dict[str, Any]) -> Operation:
    strides = parameters["strides"] or (1,) * len(parameters["start_indices"])
    ranges = zip(parameters["start_indices"], parameters["limit_indices"], strides, strict=True)
    window = tuple(slice(*each) for each in ranges)
    return lambda x: x[window]


def _starts(x: Values, sizes: tuple[int, ...], starts: tuple[Any, ...]) -> tuple[slice, ...]:
    """The window of a slice whose start is moved inside the array."""
    first = [min(max(int(at), 0), side - size) for at, side, size in zip(starts, x.shape, sizes, strict=True)]
    return tuple(slice(at, at + size) for at, size in zip(first, sizes, strict=True))


def _dynamic_slice(parameters: dict[str, Any]) -> Operation:
    return lambda x, *starts: x[_starts(x, parameters["slice_sizes"], starts)]


def _dynamic_update_slice(parameters: dict[str, Any]) -> Operation:
    def update(x: Values, piece: Values, *starts: Any) -> Values:
        result = np.array(x)
        result[_starts(x, piece.shape, starts)] = piece
        return result

    return update


def _pad(parameters: dict[str, Any]) -> Operation:
    config = parameters["padding_config"]

    def pad(x: Values, value: Any) -> Values:
        sides = [
            low + side + max(side - 1, 0) * gap + high for (low, high, gap), side in zip(config, x.shape, strict=True)
        ]
        result = np.full(sides, value, x.dtype)
        kept, filled = [], []
        for (low, _, gap), side, size in zip(config, x.shape, sides, strict=True):
            at = low + np.arange(side) * (gap + 1)
            inside = (at >= 0) & (at < size)
            kept.append(np.flatnonzero(inside))
            filled.append(at[inside])
        result[np.ix_(*filled)] = x[np.ix_(*kept)]
        return result

    return pad


def _product(parameters: dict[str, Any]) -> Operation:
    (left_sum, right_sum), (left_batch, right_batch) = parameters["dimension_numbers"]
    dtype = parameters["preferred_element_type"]

    def product(a: Values, b: Values) -> Values:
        left = [d for d in range(a.ndim) if d not in left_sum + left_batch]
        right = [d for d in range(b.ndim) if d not in right_sum + right_batch]
        batch, rows, columns = (
            tuple(array.shape[d] for d in axes) for array, axes in ((a, left_batch), (a, left), (b, right))
        )
        inner = int(np.prod([a.shape[d] for d in left_sum]))
        first = a.transpose(*left_batch, *left, *left_sum).reshape(*batch, int(np.prod(rows)), inner)
        second = b.transpose(*right_batch, *right_sum, *right).reshape(*batch, inner, int(np.prod(columns)))
        result = (first @ second).reshape(*batch, *rows, *columns)
        return result if dtype is None else result.astype(dtype, copy=False)

    return product


def _reduction(function: Operation) -> Callable[[dict[str, Any]], Operation]:
    return lambda parameters: lambda x: function(x, axis=tuple(parameters["axes"]))


def _sum(parameters: dict[str, Any]) -> Operation:
    return lambda x: np.sum(x, axis=tuple(parameters["axes"]), dtype=x.dtype)


def _position(function: Operation) -> Callable[[dict[str, Any]], Operation]:
    def prepare(parameters: dict[str, Any]) -> Operation:
        (axis,), dtype = parameters["axes"], parameters["index_dtype"]
        return lambda x: function(x, axis=axis).astype(dtype)

    return prepare


def _running(function: Operation) -> Callable[[dict[str, Any]], Operation]:
    def prepare(parameters: dict[str, Any]) -> Operation:
        axis, turn = parameters["axis"], -1 if parameters["reverse"] else 1

        def run(x: Values) -> Values:
            turned = np.flip(x, axis) if turn < 0 else x
            result = function(turned, axis=axis, dtype=x.dtype)
            return np.flip(result, axis) if turn < 0 else result

        return run

    return prepare


def _sort(parameters: dict[str, Any]) -> Operation:
    axis, keys = parameters["dimension"], parameters["num_keys"]

    def sort(*arrays: Values) -> list[Values]:
        order = np.lexsort(arrays[:keys][::-1], axis=axis)
        return [np.take_along_axis(array, order, axis) for array in arrays]

    return sort


def _iota(parameters: dict[str, Any]) -> Operation:
    shape, dimension = parameters["shape"], parameters["dimension"]
    counted = np.arange(shape[dimension]).astype(parameters["dtype"])
    array = np.broadcast_to(counted.reshape([-1 if d == dimension else 1 for d in range(len(shape))]), shape)
    return lambda: array


def _round(parameters: dict[str, Any]) -> Operation:
    to_even = parameters["rounding_method"].name == "TO_NEAREST_EVEN"
    return np.rint if to_even else lambda x: np.trunc(x + np.copysign(x.dtype.type(0.5), x))


def _pieces(parameters: dict[str, Any]) -> Operation:
    ends = np.cumsum(parameters["sizes"])[:-1]
    return lambda x: np.split(x, ends, axis=parameters["axis"])


def _callback(parameters: dict[str, Any]) -> Operation:
    call, avals = parameters["callback"], parameters["result_avals"]
    return lambda *arrays: [np.asarray(x, aval.dtype) for x, aval in zip(call(*arrays), avals, strict=True)]


WITH_PARAMETERS: dict[str, Callable[[dict[str, Any]], Operation]] = {
    "argmax": _position(np.argmax),
    "argmin": _position(np.argmin),
    "bitcast_convert_type": _bitcast,
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda p: lambda *xs: np.concatenate(xs, axis=p["dimension"]),
    "convert_element_type": _convert,
    "cummax": lambda p: _running(lambda x, axis, dtype: np.maximum.accumulate(x, axis, dtype))(p),
    "cumsum": _running(np.cumsum),
    "dot_general": _product,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": gather,
    "integer_pow": lambda p: lambda x: np.power(x, p["y"]),
    "io_callback": _callback,
    "iota": _iota,
    "optimization_barrier": lambda p: lambda *xs: list(xs),
    "pad": _pad,
    "pure_callback": _callback,
    "random_bits": lambda p: lambda keys: threefry.bits(keys, p["bit_width"], p["shape"]),
    "random_seed": lambda p: threefry.seed,
    "random_split": lambda p: lambda keys: threefry.split(keys, p["shape"]),
    "random_wrap": lambda p: threefry.from_data,
    "reduce_and": _reduction(np.all),
    "reduce_max": _reduction(np.max),
    "reduce_min": _reduction(np.min),
    "reduce_or": _reduction(np.any),
    "reduce_sum": _sum,
    "reshape": lambda p: lambda x: np.reshape(x, p["new_sizes"]),
    "rev": lambda p: lambda x: np.flip(x, p["dimensions"]),
    "round": _round,
    "scatter": scatter(replace),
    "scatter-add": scatter(np.add.at),
    "scatter_add": scatter(np.add.at),
    "slice": _slice,
    "sort": _sort,
    "split": _pieces,
    "squeeze": lambda p: lambda x: np.squeeze(x, axis=tuple(p["dimensions"])),
    "stack": lambda p: lambda *xs: np.stack(xs, axis=p["axis"]),
    "transpose": lambda p: lambda x: np.transpose(x, p["permutation"]),
}

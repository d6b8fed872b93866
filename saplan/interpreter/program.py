"""Programs that are compiled, or evaluated by NumPy while `without_compiling` is in force.

Compiling the programs of one plan takes seconds, running them once takes milliseconds. NumPy evaluates the same traced
operations, so a program exists once, for every game, method and block. Random bits and integers are identical to the
compiled ones; real numbers differ by rounding.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, update_wrapper
from typing import Any, TypeVar, cast

import jax
import numpy as np
from jaxtyping import PRNGKeyArray, Shaped

from saplan.interpreter import threefry
from saplan.interpreter.routine import Routine, UnknownOperationError

Result = TypeVar("Result")
AnyKey = PRNGKeyArray | Shaped[np.ndarray, ""] | np.void
"""A random key of JAX, or its twin while programs are interpreted."""
_INTERPRETS: ContextVar[bool] = ContextVar("interprets", default=False)


def compile_nothing() -> None:
    """Evaluate programs by NumPy in this thread from now on."""
    _INTERPRETS.set(True)


@contextmanager
def without_compiling() -> Iterator[None]:
    """Evaluate programs by NumPy in this thread, where a person waits for one result."""
    token = _INTERPRETS.set(True)
    try:
        yield
    finally:
        _INTERPRETS.reset(token)


def key_of(seed: int) -> AnyKey:
    """The random key of a seed, made without compiling while programs are interpreted."""
    if not _INTERPRETS.get() or not _draws_as_we_do():
        return jax.random.key(seed)
    return threefry.seed(np.int64(seed))


def interpretable(compiled: Callable[..., Result]) -> Callable[..., Result]:
    """A function under `jax.jit` or `eqx.filter_jit` that NumPy evaluates while `without_compiling` is in force.

    Its arguments can be arrays of JAX or of NumPy.
    """
    routines: dict[Any, tuple[Routine, Any] | None] = {}

    def call(*args: Any, **kwargs: Any) -> Result:
        if not _INTERPRETS.get():
            return compiled(*args, **kwargs)
        leaves, structure = jax.tree.flatten((args, kwargs))
        dynamic = [isinstance(leaf, (jax.Array, np.ndarray, np.generic)) for leaf in leaves]
        arrays = [_on_host(leaf) for leaf, is_array in zip(leaves, dynamic, strict=True) if is_array]
        static = tuple(None if is_array else leaf for leaf, is_array in zip(leaves, dynamic, strict=True))
        name = (structure, tuple(dynamic), static, tuple((array.shape, array.dtype) for array in arrays))
        if name not in routines:
            function = cast(Any, compiled).__wrapped__
            routines[name] = _trace(function, structure, dynamic, static, arrays)
        known = routines[name]
        if known is None:
            args, kwargs = jax.tree.unflatten(structure, [_to_jax(leaf) for leaf in leaves])
            return compiled(*args, **kwargs)
        with np.errstate(all="ignore"):
            results = known[0](*arrays)
        return cast(Result, jax.tree.unflatten(known[1], [np.asarray(x) for x in results]))

    return update_wrapper(call, cast(Any, compiled).__wrapped__)


def _draws_as_we_do() -> bool:
    """Whether JAX numbers random bits as `threefry` does; an option of JAX selects its older way."""
    return bool(cast(Any, jax.config).jax_threefry_partitionable)


def _on_host(leaf: Any) -> Any:
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return threefry.from_data(np.asarray(jax.random.key_data(leaf)))
    return np.asarray(leaf)


def _to_jax(leaf: Any) -> Any:
    is_key = isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype == threefry.KEY
    return jax.random.wrap_key_data(jax.numpy.asarray(threefry.to_data(leaf))) if is_key else leaf


@lru_cache(maxsize=1)
def _key_type() -> Any:
    return jax.eval_shape(lambda: jax.random.key(0)).dtype


def _trace(
    function: Callable[..., Any], structure: Any, dynamic: list[bool], static: tuple[Any, ...], arrays: list[np.ndarray]
) -> tuple[Routine, Any] | None:
    """The routine of a function for such arguments and the structure of its result; None if it must be compiled."""
    if not _draws_as_we_do():
        return None

    def call(*traced: Any) -> Any:
        remaining = iter(traced)
        leaves = [next(remaining) if is_array else leaf for is_array, leaf in zip(dynamic, static, strict=True)]
        args, kwargs = jax.tree.unflatten(structure, leaves)
        return function(*args, **kwargs)

    shapes = [
        jax.ShapeDtypeStruct(array.shape, _key_type() if array.dtype == threefry.KEY else array.dtype)
        for array in arrays
    ]
    program, result = jax.make_jaxpr(call, return_shape=True)(*shapes)
    try:
        return Routine(program), jax.tree.structure(result)
    except UnknownOperationError:
        return None

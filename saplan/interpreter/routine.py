"""A traced program as a list of NumPy calls. Control flow and calls of other programs are calls as well."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from saplan.interpreter.operations import ELEMENTWISE, WITH_PARAMETERS, Operation

PLATFORM = "cpu"
CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr",
}  # fmt: skip
"""Operations that call a program, and the parameter that holds it."""


class UnknownOperationError(Exception):
    """An operation for which there is no NumPy function: the program has to be compiled."""


class Routine:
    """A program in values and calls. Every variable has a slot; constants and literals fill theirs in advance."""

    def __init__(self, program: ClosedJaxpr | Jaxpr) -> None:
        """Prepare every operation; `UnknownOperationError` if one is unknown."""
        constants = program.consts if isinstance(program, ClosedJaxpr) else ()
        jaxpr: Any = program.jaxpr if isinstance(program, ClosedJaxpr) else program
        self._slot: dict[Any, int] = {}
        self._values: list[Any] = []
        for variable, constant in zip(jaxpr.constvars, constants, strict=True):
            self._values[self._place(variable)] = np.asarray(constant)
        self._inputs = [self._place(variable) for variable in jaxpr.invars]
        platforms: dict[Any, int] = {}
        self._calls: list[tuple[Operation, list[int], list[int], bool]] = []
        for equation in jaxpr.eqns:
            if equation.primitive.name == "platform_index":
                platforms[equation.outvars[0]] = _platform(equation.params["platforms"])
                continue
            call = _prepare(equation, platforms)
            places = [self._place(x) for x in equation.invars], [self._place(x) for x in equation.outvars]
            self._calls.append((call, *places, equation.primitive.multiple_results))
        self._outputs = [self._place(variable) for variable in jaxpr.outvars]

    def _place(self, variable: Any) -> int:
        """The slot of a variable; a literal gets a slot of its own."""
        if isinstance(variable, Literal):
            self._values.append(np.asarray(variable.val, cast(Any, variable.aval).dtype))
            return len(self._values) - 1
        if variable not in self._slot:
            self._slot[variable] = len(self._values)
            self._values.append(None)
        return self._slot[variable]

    def __call__(self, *arrays: Any) -> list[Any]:
        values = self._values.copy()
        for slot, array in zip(self._inputs, arrays, strict=True):
            values[slot] = array
        for call, inputs, outputs, several in self._calls:
            result = call(*[values[slot] for slot in inputs])
            if several:
                for slot, value in zip(outputs, result, strict=True):
                    values[slot] = value
            else:
                values[outputs[0]] = result
        return [values[slot] for slot in self._outputs]


def _platform(platforms: Sequence[Sequence[str] | None]) -> int:
    """The branch for a CPU, where NumPy runs."""
    return next(k for k, names in enumerate(platforms) if names is None or PLATFORM in names)


def _prepare(equation: Any, platforms: dict[Any, int]) -> Operation:
    """The NumPy function of one operation."""
    name, parameters = equation.primitive.name, equation.params
    if name in ELEMENTWISE:
        return ELEMENTWISE[name]
    if name in WITH_PARAMETERS:
        return WITH_PARAMETERS[name](parameters)
    if name in CALLS:
        return Routine(parameters[CALLS[name]])
    if name == "cond":
        chosen = None if isinstance(equation.invars[0], Literal) else platforms.get(equation.invars[0])
        return _branch(parameters, chosen)
    if name in CONTROL:
        return CONTROL[name](parameters)
    raise UnknownOperationError(name)


def _branch(parameters: dict[str, Any], chosen: int | None) -> Operation:
    """One of several programs. Where the platform decides, only its branch is prepared."""
    if chosen is not None:
        only = Routine(parameters["branches"][chosen])
        return lambda index, *arrays: only(*arrays)
    branches = [Routine(branch) for branch in parameters["branches"]]
    return lambda index, *arrays: branches[min(max(int(index), 0), len(branches) - 1)](*arrays)


def _while(parameters: dict[str, Any]) -> Operation:
    test, body = Routine(parameters["cond_jaxpr"]), Routine(parameters["body_jaxpr"])
    first, second = parameters["cond_nconsts"], parameters["cond_nconsts"] + parameters["body_nconsts"]

    def run(*arrays: Any) -> list[Any]:
        tests, bodies, carry = arrays[:first], arrays[first:second], list(arrays[second:])
        while bool(test(*tests, *carry)[0]):
            carry = body(*bodies, *carry)
        return carry

    return run


def _scan(parameters: dict[str, Any]) -> Operation:
    body, length = Routine(parameters["jaxpr"]), parameters["length"]
    first, second = parameters["num_consts"], parameters["num_consts"] + parameters["num_carry"]
    order = range(length)[::-1] if parameters["reverse"] else range(length)
    avals = parameters["jaxpr"].out_avals[parameters["num_carry"] :]

    def run(*arrays: Any) -> list[Any]:
        constants, carry, sequences = arrays[:first], list(arrays[first:second]), arrays[second:]
        rows: list[list[Any]] = [[None] * length for _ in avals]
        for step in order:
            carry, found = _cut(body(*constants, *carry, *(x[step] for x in sequences)), len(carry))
            for row, value in zip(rows, found, strict=True):
                row[step] = value
        stacked = [
            np.stack(row) if length else np.zeros((0, *aval.shape), aval.dtype)
            for row, aval in zip(rows, avals, strict=True)
        ]
        return [*carry, *stacked]

    return run


def _cut(values: list[Any], at: int) -> tuple[list[Any], list[Any]]:
    return values[:at], values[at:]


CONTROL: dict[str, Callable[[dict[str, Any]], Operation]] = {"while": _while, "scan": _scan}

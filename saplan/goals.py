"""Goals: one interval per attribute. The interval of a free attribute is the whole line."""

import math
import re
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from saplan.algebra import Block, Product, Rho
from saplan.algebra.base import parse_number
from saplan.errors import InputError

Bound = Float[Array, "... K"] | Float[np.ndarray, "... K"]
HAIR = 1 + 1e-5
"""Factor by which tolerances are stretched, so that float32 rounding does not decide at their bounds."""


def meets(low: Any, high: Any, rho: Any) -> Any:
    """Whether each coordinate lies in its interval; on a circle, low > high means round through zero.

    It computes with arrays of JAX or NumPy, or with numbers.
    """
    return (rho >= low) & (rho <= high) | (low > high) & ((rho >= low) | (rho <= high))


class Goal(eqx.Module):
    """All ρ with low <= ρ <= high in every coordinate. A batch of goals has leading axes.

    On a circle low may exceed high: then the interval goes round through zero.
    """

    low: Bound
    high: Bound

    def reached(self, rho: Rho) -> Bool[Array, "..."]:
        """Whether ρ satisfies the goal."""
        return jnp.all(meets(jnp.asarray(self.low), jnp.asarray(self.high), rho), axis=-1)

    def centre(self, space: Product) -> Bound:
        """The middle of every interval; of an unbounded one its finite end, or 0."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        left = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0))
        right = np.where(np.isfinite(high), high, left)
        middle = (left + right) / 2
        for k, block in enumerate(space.blocks):
            if math.isfinite(block.period):
                round_zero = np.where(left > right, block.period / 2, 0.0)[..., k]
                middle[..., k] = (middle[..., k] + round_zero) % block.period
        return middle.astype(np.float32)


def exactly(value: Rho, tolerance: Rho | float, asked: Bool[Array, "... K"]) -> Goal:
    """The goal of coming within the tolerance of `value` where `asked`; other attributes are free."""
    slack = jnp.asarray(tolerance) * HAIR
    return Goal(jnp.where(asked, value - slack, -jnp.inf), jnp.where(asked, value + slack, jnp.inf))


CONDITION = re.compile(
    r"(?P<name>[\w-]+?)(?P<sign>>=|<=|=|≥|≤)(?P<value>[^\s±,]+?)(?:(?:±|\+-)(?P<tolerance>[^\s,]+))?"
)


def parse_goal(space: Product, text: str) -> Goal:
    """Goal from text such as `"red=2 blue=1 switch=*"`, `"m1=5.2±0.5"` or `"food>=5"`; other attributes are free."""
    low = np.full(space.size, -np.inf, np.float32)
    high = np.full(space.size, np.inf, np.float32)
    asked: dict[str, set[str]] = {}
    for token in re.sub(r"\s*(>=|<=|≥|≤|(?<![<>])=|±|\+-)\s*", r"\1", text).replace(",", " ").split():
        match = CONDITION.fullmatch(token)
        if match is None:
            raise InputError(f"goal {token!r}: write conditions as name=2, name=5.2±0.5, name>=3, name<=3 or name=*")
        name, sign = match["name"], {"≥": ">=", "≤": "<="}.get(match["sign"], match["sign"])
        k = space.index(name)
        if space.blocks[k].exogenous:
            raise InputError(f"goal: {name!r} changes by itself, so a plan cannot reach it: leave it out")
        signs = asked.setdefault(name, set())
        # One attribute may have both a lower and an upper bound, and nothing else twice.
        if signs and (sign in signs or "=" in (sign, *signs)):
            raise InputError(f"goal: {name!r} is asked for twice")
        signs.add(sign)
        try:
            bounds = _interval(space.blocks[k], sign, match["value"], match["tolerance"])
        except InputError as error:
            raise InputError(f"goal for {name}: {error}") from None
        if sign == "=":
            low[k], high[k] = bounds
            continue
        low[k], high[k] = max(low[k], bounds[0]), min(high[k], bounds[1])
        if low[k] > high[k]:
            raise InputError(f"goal for {name}: nothing lies between {low[k]:g} and {high[k]:g}")
    if not asked:
        raise InputError(f"the goal is empty: name at least one of {', '.join(space.names)}")
    return Goal(low, high)


def _interval(block: Block, sign: str, value: str, tolerance: str | None) -> tuple[float, float]:
    """The interval of one condition."""
    if value == "*":
        if sign != "=" or tolerance is not None:
            raise InputError("'*' means anything and stands alone, as name=*")
        return -math.inf, math.inf
    x = block.parse(value)
    if not block.ordered and (sign != "=" or (tolerance is not None and not block.tolerance)):
        raise InputError(f"{block.symbol} has no order: write name=value")
    if sign != "=":
        if tolerance is not None:
            raise InputError("a bound takes no tolerance")
        return (x, math.inf) if sign == ">=" else (-math.inf, x)
    slack = block.tolerance
    if tolerance is not None:
        slack = parse_number(tolerance)
        if slack < 0:
            raise InputError(f"tolerance {tolerance!r} is not a number from 0 up")
    return block.interval(x, slack * HAIR)


def format_goal(space: Product, goal: Goal) -> str:
    """Text of a goal, as `parse_goal` reads it; free attributes are left out."""
    lows, highs = np.asarray(goal.low), np.asarray(goal.high)
    conditions = (_format_interval(*row) for row in zip(space.names, space.blocks, lows, highs, strict=True))
    return " ".join(text for text in conditions if text) or "anything"


def _format_interval(name: str, block: Block, low: np.float32, high: np.float32) -> str:
    at_least = f"{name}>={block.format(float(low))}" if np.isfinite(low) else ""
    at_most = f"{name}<={block.format(float(high))}" if np.isfinite(high) else ""
    if not (at_least and at_most):
        return at_least or at_most
    end = float(high) + (block.period if low > high else 0.0)
    middle, slack = (float(low) + end) / 2, (end - float(low)) / 2
    written = block.format(middle % block.period if low > high else middle)
    if abs(slack - block.tolerance * HAIR) <= 1e-3 * block.tolerance:
        return f"{name}={written}"
    # The middle of 3 and 6 is not a count.
    if block.ordered and abs(block.parse(written) - middle) > 0.01:
        return f"{at_least} {at_most}"
    return f"{name}={written}±{slack / HAIR:.5g}"

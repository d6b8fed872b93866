"""Goals: what a person asks for, as an interval per attribute. Free attributes have the whole line."""

import math
import re

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from saplan.algebra import Block, Product, Rho
from saplan.errors import InputError

Bound = Float[Array, "... K"] | Float[np.ndarray, "... K"]


class Goal(eqx.Module):
    """All ρ with low <= ρ <= high in every coordinate. A batch of goals has leading axes."""

    low: Bound
    high: Bound

    def reached(self, rho: Rho) -> Bool[Array, "..."]:
        """Whether ρ satisfies the goal."""
        return jnp.all((rho >= self.low) & (rho <= self.high), axis=-1)

    @property
    def centre(self) -> Bound:
        """The middle of every interval that has one; its finite end, or 0, where it has none."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        middle = np.where(np.isfinite(low) & np.isfinite(high), (low + high) / 2, 0)
        ends = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0))
        return np.where(np.isfinite(low) & np.isfinite(high), middle, ends).astype(np.float32)


def exactly(value: Rho, tolerance: Rho | float, asked: Bool[Array, "... K"]) -> Goal:
    """The goal "value, give or take the tolerance, where `asked`; anything elsewhere"."""
    # A hair of slack, so that float32 rounding does not decide at the rim.
    slack = jnp.asarray(tolerance) * (1 + 1e-5)
    return Goal(jnp.where(asked, value - slack, -jnp.inf), jnp.where(asked, value + slack, jnp.inf))


CONDITION = re.compile(r"(?P<name>[\w-]+?)\s*(?P<sign>>=|<=|=|≥|≤)\s*(?P<value>[^\s±,]+?)(?:(?:±|\+-)(?P<tolerance>[^\s,]+))?")


def parse_goal(space: Product, text: str) -> Goal:
    """Reads `"red=2 blue=1 switch=*"`, `"m1=5.2±0.5"`, `"food>=5"`; attributes not named are free."""
    low = np.full(space.size, -np.inf, np.float32)
    high = np.full(space.size, np.inf, np.float32)
    seen: set[tuple[str, str]] = set()
    for token in re.sub(r"\s*(>=|<=|≥|≤|(?<![<>])=|±|\+-)\s*", r"\1", text).replace(",", " ").split():
        match = CONDITION.fullmatch(token)
        if match is None:
            raise InputError(f"goal {token!r}: write conditions as name=2, name=5.2±0.5, name>=3, name<=3 or name=*")
        k = space.index(match["name"])
        sign = {"≥": ">=", "≤": "<="}.get(match["sign"], match["sign"])
        if (match["name"], sign) in seen or (match["name"], "=") in seen or (seen and sign == "=" and _named(seen, match["name"])):
            raise InputError(f"goal: {match['name']!r} is asked for twice")
        seen.add((match["name"], sign))
        try:
            bounds = _interval(space.blocks[k], sign, match["value"], match["tolerance"])
        except InputError as error:
            raise InputError(f"goal for {match['name']}: {error}") from None
        low[k], high[k] = max(low[k], bounds[0]), min(high[k], bounds[1])
        if low[k] > high[k]:
            raise InputError(f"goal for {match['name']}: nothing lies between {low[k]:g} and {high[k]:g}")
    if not seen:
        raise InputError(f"the goal is empty: name at least one of {', '.join(space.names)}")
    return Goal(low, high)


def _named(seen: set[tuple[str, str]], name: str) -> bool:
    return any(name == other for other, _ in seen)


def _interval(block: Block, sign: str, value: str, tolerance: str | None) -> tuple[float, float]:
    """The interval that one condition leaves to one attribute."""
    if value == "*":
        if sign != "=" or tolerance is not None:
            raise InputError("'*' means anything and stands alone, as name=*")
        return -math.inf, math.inf
    x = block.parse(value)
    if not block.ordered and (sign != "=" or tolerance is not None):
        raise InputError(f"{block.symbol} has no order: only name=value makes sense")
    if sign == ">=":
        if tolerance is not None:
            raise InputError("a bound takes no tolerance")
        return x, math.inf
    if sign == "<=":
        if tolerance is not None:
            raise InputError("a bound takes no tolerance")
        return -math.inf, x
    slack = block.tolerance
    if tolerance is not None:
        try:
            slack = float(tolerance)
        except ValueError:
            slack = math.nan
        if not 0 <= slack < math.inf:
            raise InputError(f"tolerance {tolerance!r} is not a number from 0 up")
    return x - slack * (1 + 1e-5), x + slack * (1 + 1e-5)


def format_goal(space: Product, goal: Goal) -> str:
    """The goal as `parse_goal` reads it; free attributes are left out."""
    parts = []
    for name, block, low, high in zip(space.names, space.blocks, np.asarray(goal.low), np.asarray(goal.high), strict=True):
        if np.isfinite(low) and np.isfinite(high):
            slack = (high - low) / 2
            same = slack <= block.tolerance * 1.001 + 1e-9 and slack >= block.tolerance * 0.999 - 1e-9
            parts.append(f"{name}={block.format(float(low + high) / 2)}" + ("" if same else f"±{slack:.3g}"))
        elif np.isfinite(low):
            parts.append(f"{name}>={block.format(float(low))}")
        elif np.isfinite(high):
            parts.append(f"{name}<={block.format(float(high))}")
    return " ".join(parts) or "anything"

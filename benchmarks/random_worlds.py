"""Small random worlds with known algebra, to measure how often `saplan suggest` finds it.

A world has a few attributes, each with one or two actions of its own. Actions fail at random, some need another
attribute, and some attributes set a trap: refills, caps, shuffled labels, exchanges, drift.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from saplan import JaxWorld, Product, Real, jax_world
from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Exogenous, Integer, Natural
from saplan.perception.suggest import Verdict


@dataclass(frozen=True)
class Part:
    """One attribute (or two that belong together) of a random world, with the block that its rules have."""

    kind: str
    names: tuple[str, ...]
    block: Block
    start: np.ndarray
    """First values, drawn evenly."""
    table: np.ndarray
    """The value that every action leads to, by value, for finite attributes; else empty."""
    steps: tuple[float, ...] = ()
    """The amount of every action, for attributes without a table."""
    low: float = -np.inf
    high: float = np.inf
    noise: float = 0.0
    chance: float = 1.0
    """Probability that an action works."""
    needs: int = -1
    """A flag that must be set, by its number among all parts."""
    labels: tuple[float, ...] = ()
    """The raw value of every element."""

    @property
    def actions(self) -> int:
        """Number of its own actions."""
        return 0 if self.kind == "drift" else len(self.table) or len(self.steps)

    def move(self, key: Array, value: Array, own: Array) -> Array:
        """The value after its own action number `own`; below 0: none of its own actions."""
        luck, noisy = jax.random.split(key)
        acts = (own >= 0) & (jax.random.uniform(luck) < self.chance)
        own = jnp.maximum(own, 0)
        if len(self.table):
            moved = jnp.asarray(self.table, jnp.float32)[own, value.astype(jnp.int32)]
        else:
            amount = jnp.asarray(self.steps, jnp.float32)[own]
            moved = value + amount * (1 + self.noise * jax.random.uniform(noisy, minval=-1.0, maxval=1.0))
            moved = self._inside(moved, value)
        return jnp.where(acts, moved, value)

    def _inside(self, moved: Array, value: Array) -> Array:
        if isinstance(self.block, Circle):
            return jnp.mod(moved, self.block.period)
        if self.kind == "real":
            return jnp.clip(moved, self.low, self.high)
        return jnp.where((moved >= self.low) & (moved <= self.high), moved, value)

    def raw(self, value: Array) -> Array:
        """What the world shows of a value."""
        if len(self.names) == 2:
            n = self.block.n  # type: ignore[attr-defined]
            return jnp.stack([value % n, value // n])
        shown = jnp.asarray(self.labels, jnp.float32)[value.astype(jnp.int32)] if self.labels else value
        return shown[None]


class RandomWorld:
    """An environment made of parts; the last action does nothing."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self.first = np.cumsum([0, *(part.actions for part in parts)])

    def reset_env(self, key: Array, params: Any) -> Any:
        keys = jax.random.split(key, len(self.parts))
        values = jnp.stack([jax.random.choice(k, jnp.asarray(part.start, jnp.float32))
                            for k, part in zip(keys, self.parts, strict=True)])  # fmt: skip
        return values, values

    def step_env(self, key: Array, state: Array, action: Array, params: Any) -> Any:
        moved = []
        for k, (part, part_key) in enumerate(zip(self.parts, jax.random.split(key, len(self.parts)), strict=True)):
            own = action - self.first[k]
            own = jnp.where((own >= 0) & (own < part.actions), own, -1)
            own = jnp.zeros_like(own) if part.kind == "drift" else own
            if part.needs >= 0:
                own = jnp.where(state[part.needs] == 1, own, -1)
            moved.append(part.move(part_key, state[k], own))
        values = jnp.stack(moved)
        return values, values, 0.0, False, {}

    def raw(self, observation: Array, state: Array) -> Array:
        """All attributes as the world shows them."""
        return jnp.concatenate([part.raw(state[k]) for k, part in enumerate(self.parts)])


KINDS = ("count", "ammo", "walk", "position", "dial", "shuffled", "real", "circle", "labels", "direction", "drift",
         "clock", "dihedral", "pair")  # fmt: skip


def draw_part(rng: np.random.Generator, kind: str, name: str) -> Part:
    """An attribute of a kind with random numbers."""
    q = int(rng.integers(3, 10))
    chance = float(rng.choice([0.3, 0.6, 1.0]))
    if kind in ("walk", "drift", "real", "circle"):
        return _sliding(rng, kind, name, chance)
    if kind in ("dial", "shuffled", "clock"):
        return _dial(rng, kind, name, q, chance)
    if kind in ("dihedral", "pair"):
        return _polygon(rng, kind, name, chance)
    every = np.arange(q)
    block: Block = Natural()
    start = every
    if kind == "count":
        gain = int(rng.integers(1, 3))
        tables, start = [np.where(every + gain < q, every + gain, every), np.maximum(every - 1, 0)], every[:1]
    elif kind == "ammo":
        refill = np.full(q, q - 1) if rng.random() < 0.5 else np.where(every == 0, q - 1, every)
        tables = [np.maximum(every - 1, 0), refill]
    elif kind == "position":
        tables = [np.minimum(every + 1, q - 1), np.maximum(every - 1, 0)]
    else:  # labels and directions
        q = int(rng.integers(4, 8))
        start, block = np.arange(q), Categorical(tuple(map(str, range(q))))
        tables = [rng.integers(0, q, q) for _ in range(2)] if kind == "labels" else [np.full(q, k) for k in range(q)]
    return Part(kind, (name,), block, start, np.stack(tables), chance=chance)


def _sliding(rng: np.random.Generator, kind: str, name: str, chance: float) -> Part:
    """A walk over the integers, a drift, a quantity or an angle: an amount per action, without a table."""
    none, origin = np.zeros(0), np.zeros(1)
    if kind == "walk":
        amounts = float(rng.integers(1, 4)), -float(rng.integers(1, 3))
        return Part(kind, (name,), Integer(), origin, none, amounts, chance=chance)
    if kind == "drift":
        return Part(kind, (name,), Exogenous(Real()), origin, none, (0.5,), noise=2.0, chance=0.3)
    if kind == "real":
        size = float(rng.choice([0.1, 0.5, 1.0, 2.5]))
        high = size * float(rng.integers(8, 20)) if rng.random() < 0.7 else np.inf
        amounts = size, -size * float(rng.choice([1.0, 2.0]))
        low = 0.0 if np.isfinite(high) else -np.inf
        return Part(kind, (name,), Real(size), origin, none, amounts, low, high, 0.4, chance)
    period = float(rng.choice([1.0, 2 * np.pi, 360.0, np.round(rng.uniform(3, 50), 1)]))
    amounts = period / float(rng.integers(8, 30)), -period / float(rng.integers(8, 30))
    noise, start = float(rng.choice([0.0, 0.2])), np.arange(8) * period / 8
    block = Circle(period, min(map(abs, amounts)))
    return Part(kind, (name,), block, start, none, amounts, noise=noise, chance=chance)


def _dial(rng: np.random.Generator, kind: str, name: str, q: int, chance: float) -> Part:
    """A dial, one whose labels are in another order, or a clock, which turns by itself."""
    q = int(rng.integers(4, 8)) if kind == "shuffled" else q
    turns = (np.arange(q) + int(rng.choice([1, 1, 2]))) % q
    table = np.stack([turns] if rng.random() < 0.5 or kind == "clock" else [turns, np.argsort(turns)])
    labels = tuple(map(float, rng.permutation(q))) if kind == "shuffled" else ()
    if kind == "clock":
        chance = float(rng.choice([0.1, 0.5]))
        return Part("drift", (name,), Exogenous(Cyclic(q)), np.arange(q), table, chance=chance)
    return Part(kind, (name,), Cyclic(q), np.arange(q), table, chance=chance, labels=labels)


def _polygon(rng: np.random.Generator, kind: str, name: str, chance: float) -> Part:
    """A piece in D_n, as one attribute or as a dial and a flag."""
    group = Dihedral(int(rng.choice([3, 4])))
    elements = np.arange(group.size)
    if kind == "pair":
        return Part(kind, (f"{name}_turn", f"{name}_flip"), group, elements, _inverse_side(group), chance=chance)
    tables = [group.multiply(elements, np.full(group.size, change)) for change in (1, group.n)]
    return Part(kind, (name,), group, elements, np.stack(tables), chance=chance)


def _inverse_side(group: Dihedral) -> np.ndarray:
    """A turn and a mirror image made before the element: turns go the other way where it is mirrored."""
    elements = np.arange(group.size)
    return np.stack([group.multiply(np.full(group.size, change), elements) for change in (1, group.n)])


def draw_world(seed: int) -> RandomWorld:
    """A world of three to six attributes, the first a flag that others may need."""
    rng = np.random.default_rng(seed)
    toggles = np.array([[1, 0]]) if rng.random() < 0.5 else np.array([[1, 1], [0, 0]])
    parts = [Part("flag", ("flag",), Cyclic(2), np.arange(2), toggles)]
    for k, kind in enumerate(rng.choice(KINDS, int(rng.integers(3, 6)), replace=False)):
        part = draw_part(rng, str(kind), f"{kind}{k}")
        needs = 0 if rng.random() < 0.3 and part.kind != "drift" else -1
        parts.append(Part(**{**part.__dict__, "needs": needs}))
    return RandomWorld(parts)


def as_world(env: RandomWorld, name: str = "random") -> JaxWorld:
    """A random world whose attributes are plain numbers."""
    names = list(itertools.chain(*(part.names for part in env.parts)))
    space = Product(tuple(names), (Real(),) * len(names))
    return jax_world(env, space, env.raw, [], int(env.first[-1]) + 1, name=name)


def judged(part: Part, found: list[Verdict]) -> str:
    """right, equivalent, undecided or wrong: the verdicts about the attributes of a part against its rules."""
    if len(found) != 1 or found[0].names != part.names:
        return "wrong" if all(one.decided for one in found) else "undecided"
    one = found[0]
    if not one.decided:
        return "undecided"
    truth, block = part.block, one.candidate.block
    if part.kind == "flag":
        return "wrong" if one.exogenous else "right" if block == truth else "equivalent"
    if isinstance(truth, Exogenous):
        return "right" if one.exogenous else "wrong"
    if one.exogenous:
        return "wrong"
    if isinstance(truth, Real):
        near = isinstance(block, Real) and 0.5 <= block.resolution / truth.resolution <= 2
        return "right" if near else "wrong"
    if isinstance(truth, Circle):
        near = isinstance(block, Circle) and abs(block.period / truth.period - 1) < 0.01
        return "right" if near else "wrong"
    if isinstance(truth, Natural | Integer):
        return "right" if isinstance(block, type(truth)) else _equivalent(part, one)
    if block == truth and not part.labels and not one.candidate.order:
        return "right"
    return _equivalent(part, one)


def _equivalent(part: Part, one: Verdict) -> str:
    """Whether another block describes the same finite rules with as few changes and as few exceptions."""
    if not len(part.table) or not set(np.unique(part.table)) <= set(range(part.table.shape[1])):
        return "wrong"
    values = np.unique(np.concatenate([part.table.reshape(-1), part.start]).astype(int))
    pairs = {(a, int(b)) for row in part.table for a, b in enumerate(row) if a != b and a in values}
    shown = np.asarray(part.labels) if part.labels else np.arange(part.table.shape[1], dtype=float)
    if len(part.names) == 2:
        shown = np.arange(part.table.shape[1], dtype=float)
    own = _complexity(part.block, pairs, np.arange(part.table.shape[1], dtype=float), values)
    other = _complexity(one.candidate.block, pairs, one.candidate.elements(shown), values)
    same_kind = isinstance(one.candidate.block, type(part.block)) and other == own
    return "right" if same_kind else "equivalent" if other[0] <= own[0] and other[1] <= own[1] else "wrong"


def _complexity(block: Block, pairs: set[tuple[int, int]], element: np.ndarray, values: np.ndarray) -> tuple[int, int]:
    """Number of distinct changes, and of places where one of them cannot be made though its end is a value."""

    def change(a: int, b: int) -> float:
        return float(block.difference(jnp.float32(element[b]), jnp.float32(element[a])))

    changes = {change(a, b) for a, b in pairs}
    possible = {(a, change(a, b)) for a, b in pairs}
    missing = [(a, b) for a in values for b in values if a != b and change(a, b) in changes
               and (a, change(a, b)) not in possible]  # fmt: skip
    return len(changes), len(missing)

"""Mining: real quantities that must stay inside a set (the paper's constrained environment)."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int16, PRNGKeyArray

from saplan.algebra import Natural, Product, Real
from saplan.errors import InputError
from saplan.games.game import Game, ItemFacts, Words
from saplan.games.grid import INTERACT, MOVES, Map, MapRules, Places, draw_map, move, vocabulary, words
from saplan.games.scene import COLOURS, Scene, Thing, ground_scene
from saplan.goals import Goal, exactly

CANDIDATES = 64
"""Points drawn at once to find one inside S; the probability that all of them miss it is below 1e-9."""

BAR_CELL = 0.5
"""Amount of a mineral per cell of the shelf."""

STAGE_CANDIDATES = 256
"""Points drawn at once to find a goal at a distance."""
SUPPORT_SPACING = 0.05
"""Spacing of the points at which a goal's box is compared with S."""


class MiningState(eqx.Module):
    """`places` holds the deposits mineral by mineral, then the store, then one dump yard per mineral.

    `yields` is the amount that the hammer in hand will yield. It is drawn when the hammer is bought and stays hidden,
    so that repeating a refused blow does not draw again.
    """

    ground: Map
    places: Places
    minerals: Float[Array, "q"]
    hammer: Int16[Array, ""]
    yields: Float[Array, ""]

    @property
    def items(self) -> Places:
        """Places of the items, in the order above."""
        return self.places


def in_box(v: Float[Array, "... q"], box: tuple[float, ...]) -> Bool[Array, "..."]:
    """Whether points lie in a box, given by its least and then its greatest amounts."""
    low, high = jnp.split(jnp.array(box), 2)
    return jnp.all((v >= low) & (v <= high), axis=-1)


@final
@dataclass(frozen=True)
class Mining(Game[MiningState]):
    """There are two minerals and hammers that break on use. The amounts of the minerals must stay inside a set S.

    - `interact` on the store gives a hammer if none is held. `interact` on a deposit with a hammer yields
      C ~ Uniform(0.5, 1.5) of that mineral and breaks the hammer. `interact` on a dump yard throws away 1.0 of its
      mineral.
    - S = {v >= 0 : 2.5 <= |v - (6, 1)| <= 7}, an arch. A change that would leave S is refused and has no effect. S may
      have a hole.
    - 𝓡 = ℝ^2 (minerals) × ℕ (hammer).
    - Admissible δρ: hammer + 1; for every mineral j, m_j + C with hammer - 1; for every mineral j, m_j - 1.
    - The start is uniform in the two feet of the arch, {v in S : v_2 <= 1}.
    - A task is to bring both minerals within 0.5 of a point drawn uniformly from S. The number of hammers is free.
    """

    deposits: int = 3
    """Deposits of each mineral."""
    yield_low: float = 0.5
    """Smallest yield of a blow."""
    yield_high: float = 1.5
    """Largest yield of a blow."""
    dumps: float = 1.0
    """Amount that a dump yard takes."""
    centre: tuple[float, ...] = (6.0, 1.0)
    """Centre of the set S, one coordinate per mineral."""
    inner: float = 2.5
    """Smallest distance of S from its centre."""
    outer: float = 7.0
    """Largest distance of S from its centre."""
    hole: tuple[float, ...] = ()
    """A box that S leaves out: its least amounts, one per mineral, then its greatest; empty for none."""
    foot: float = 1.0
    """Largest amount of the last mineral at the start."""
    tolerance: float = 0.5
    """Distance of both minerals from the goal of a task that counts as reached."""
    maps: MapRules = field(default_factory=MapRules)

    name: ClassVar[str] = "mining"
    actions: ClassVar[tuple[str, ...]] = (*MOVES, "interact")
    credit: ClassVar[str] = "attempt"
    alphas: ClassVar[tuple[float, float]] = (0.0, 1.0)
    farthest_goal: ClassVar[int] = 15

    def __post_init__(self) -> None:
        if not 1 <= self.minerals <= len(COLOURS):
            raise InputError(f"the number of minerals must lie in 1..{len(COLOURS)}, got {self.minerals}")
        if self.deposits < 1:
            raise InputError(f"every mineral needs at least 1 deposit, got {self.deposits}")
        if not 0 < self.yield_low <= self.yield_high or not self.dumps > 0:
            raise InputError("yields and dumps must be above 0, with yield_low <= yield_high")
        numbers = (
            self.yield_high,
            self.dumps,
            self.inner,
            self.outer,
            self.foot,
            self.tolerance,
            *self.centre,
            *self.hole,
        )
        if not all(map(math.isfinite, numbers)):
            raise InputError("the rules of mining must be finite numbers")
        if not self.tolerance > 0:
            raise InputError(f"the tolerance of a task must be above 0, got {self.tolerance}")
        if self.hole and len(self.hole) != 2 * self.minerals:
            raise InputError(f"a hole in S has {2 * self.minerals} bounds, got {len(self.hole)}")
        if not 0 <= self.inner < self.outer:
            raise InputError(f"the set S needs 0 <= inner < outer, got {self.inner} and {self.outer}")
        self.maps.check_room(self.items)
        if not self.foot > 0 or not self._start_exists():
            raise InputError("no start is possible: S needs points at which the last mineral is at most foot")

    @property
    def minerals(self) -> int:
        """q, the number of minerals."""
        return len(self.centre)

    @property
    def items(self) -> int:
        """Number of items on the map."""
        return self.minerals * self.deposits + 1 + self.minerals

    @property
    def slots(self) -> int:
        return 4 + self.maps.max_walls + self.items

    @property
    def vocabulary(self) -> int:
        return vocabulary(2 * self.minerals + 1)

    @property
    def space(self) -> Product:
        blocks = tuple(Real(resolution=1.0, low=0.0, high=c + self.outer) for c in self.centre)
        return Product((*(f"m{j + 1}" for j in range(self.minerals)), "hammer"), (*blocks, Natural(bins=8)))

    def inside(self, v: Float[Array, "... q"]) -> Bool[Array, "..."]:
        """Whether amounts of the minerals lie in S."""
        distance: Array = jnp.linalg.norm(v - jnp.array(self.centre), axis=-1)
        inside = jnp.all(v >= 0, axis=-1) & (distance >= self.inner) & (distance <= self.outer)
        return inside & ~in_box(v, self.hole) if self.hole else inside

    def _start_exists(self) -> bool:
        """Whether one of many points below the highest start lies in S; on the host, so that nothing is compiled."""
        highest = np.array([*(c + self.outer for c in self.centre[:-1]), self.foot])
        points = np.random.default_rng(0).uniform(size=(CANDIDATES, self.minerals)) * highest
        distance = np.linalg.norm(points - np.array(self.centre), axis=1)
        return bool(np.any((distance >= self.inner) & (distance <= self.outer)))

    def _draw_inside(self, key: PRNGKeyArray, highest: Float[Array, "q"]) -> Float[Array, "q"]:
        """A point uniform in S below `highest`."""
        points, inside = self._candidates(key, highest)
        return points[jnp.argmax(inside)]

    @property
    def _corner(self) -> Float[Array, "q"]:
        """Upper bounds of all amounts in S."""
        return jnp.array([c + self.outer for c in self.centre])

    def _candidates(
        self, key: PRNGKeyArray, highest: Float[Array, "q"]
    ) -> tuple[Float[Array, "n q"], Bool[Array, "n"]]:
        points = jax.random.uniform(key, (CANDIDATES, self.minerals)) * highest
        return points, self.inside(points)

    @property
    def _start_corner(self) -> Float[Array, "q"]:
        """Upper bounds of all amounts at the start."""
        return jnp.array([*(c + self.outer for c in self.centre[:-1]), self.foot])

    def reset(self, key: PRNGKeyArray) -> MiningState:
        map_key, start_key = jax.random.split(key)
        ground, places = draw_map(self.maps, map_key, self.items)
        return MiningState(
            ground=ground,
            places=places,
            minerals=self._draw_inside(start_key, self._start_corner),
            hammer=jnp.zeros((), jnp.int16),
            yields=jnp.zeros(()),
        )

    def step(self, key: PRNGKeyArray, state: MiningState, action: Int[Array, ""]) -> MiningState:
        q, d = self.minerals, self.deposits
        ground = move(state.ground, action)
        here = (action == INTERACT) & (state.places == ground.agent)
        digs = jnp.any(here[: q * d].reshape(q, d), axis=1) & (state.hammer > 0)
        buys = here[q * d] & (state.hammer == 0)
        drops = here[q * d + 1 :]

        wanted = state.minerals + jnp.where(digs, state.yields, 0.0) - jnp.where(drops, self.dumps, 0.0)
        allowed = self.inside(wanted)
        dug = jnp.any(digs) & allowed
        # Slightly inside its range, so that rounding never moves a change into a neighbouring cell.
        hair = 1e-5 * (self.yield_high - self.yield_low)
        fresh = jax.random.uniform(key, (), minval=self.yield_low + hair, maxval=self.yield_high - hair)
        return MiningState(
            ground=ground,
            places=state.places,
            minerals=jnp.where(allowed, wanted, state.minerals),
            hammer=(state.hammer + buys - dug).astype(jnp.int16),
            yields=jnp.where(buys, fresh, state.yields),
        )

    def observe(self, state: MiningState) -> Words:
        q = self.minerals
        kinds = jnp.concatenate([jnp.repeat(jnp.arange(q), self.deposits), jnp.arange(q, 2 * q + 1)])
        return words(state.ground, 1 + kinds, state.places)

    def attributes(self, state: MiningState) -> Float[Array, "K"]:
        return jnp.concatenate([state.minerals, state.hammer[None].astype(jnp.float32)])

    def anywhere(self, key: PRNGKeyArray) -> MiningState:
        state_key, point_key, hammer_key, yield_key = jax.random.split(key, 4)
        state = self.reset(state_key)
        point = self._draw_inside(point_key, self._corner)
        hammer = jax.random.randint(hammer_key, (), 0, 2).astype(jnp.int16)
        yields = jax.random.uniform(yield_key, (), minval=self.yield_low, maxval=self.yield_high)
        return MiningState(state.ground, state.places, point, hammer, yields)

    def shelf(self, state: MiningState) -> Float[Array, "rows cells"]:
        """A bar for every mineral, and one cell for the hammer."""
        cells = jnp.arange(math.ceil((max(self.centre) + self.outer) / BAR_CELL))
        bars = jnp.clip(state.minerals[:, None] / BAR_CELL - cells, 0.0, 1.0)
        return jnp.concatenate([bars, ((cells == 0) & (state.hammer > 0))[None].astype(jnp.float32)])

    def over(self, state: MiningState) -> Bool[Array, ""]:
        return jnp.zeros((), bool)  # an agent without a hammer can always buy one

    def tasks(self, key: PRNGKeyArray) -> tuple[MiningState, Goal]:
        state_key, goal_key = jax.random.split(key)
        value, asked = self._have(self._draw_inside(goal_key, self._corner))
        return self.reset(state_key), exactly(value, self.tolerance, asked)

    def _have(self, amounts: Float[Array, "q"]) -> tuple[Float[Array, "K"], Bool[Array, "K"]]:
        """Values of the goal "have these amounts", and the mask of the attributes it asks for."""
        return jnp.append(amounts, 0.0), jnp.arange(self.space.size) < self.minerals

    def goal_at(
        self, key: PRNGKeyArray, rho: Float[Array, "K"], distance: Int[Array, ""]
    ) -> tuple[Float[Array, "K"], Bool[Array, "K"]]:
        """Amounts to have: at distance 1 those after one change, else a point in S within that Euclidean distance."""
        q, (one_key, far_key, pick_key) = self.minerals, jax.random.split(key, 3)
        mean = (self.yield_low + self.yield_high) / 2
        once = rho[:q] + jnp.concatenate([jnp.eye(q) * mean, jnp.eye(q) * -self.dumps])
        around = rho[:q] + jax.random.uniform(far_key, (STAGE_CANDIDATES, q), minval=-1.0, maxval=1.0) * distance
        ends = once[jax.random.randint(one_key, (STAGE_CANDIDATES,), 0, len(once))]
        points = jnp.where(distance > 1, around, ends)
        near = (jnp.linalg.norm(points - rho[:q], axis=1) <= distance + 0.5) & jnp.all(points <= self._corner, axis=1)
        fits = self.inside(points) & near & jnp.any(jnp.abs(points - rho[:q]) > self.tolerance * 1.01, axis=1)
        return self._have(points[jax.random.categorical(pick_key, jnp.where(fits, 0.0, -1e9))])

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        q = self.minerals
        mean = (self.yield_low + self.yield_high) / 2

        def change(mineral: int | None, amount: float, hammer: float) -> tuple[float, ...]:
            return (*(amount * (j == mineral) for j in range(q)), hammer)

        buy = ("buy a hammer", change(None, 0.0, 1.0))
        digs = ((f"mine m{j + 1}", change(j, mean, -1.0)) for j in range(q))
        drops = ((f"dump m{j + 1}", change(j, -self.dumps, 0.0)) for j in range(q))
        return (buy, *digs, *drops)

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        q, space = self.minerals, self.space
        known = jnp.array([d for _, d in self.admissible()])
        yields = jnp.linspace(self.yield_low, self.yield_high, 65)
        digs = rho[:q] + jnp.eye(q)[:, None, :] * yields[:, None]
        may_dig = jnp.mean(self.inside(digs), axis=1) * (rho[q] >= 1)
        may_drop = self.inside(rho[:q] - jnp.eye(q) * self.dumps).astype(jnp.float32)
        possible = jnp.concatenate([(rho[q:] == 0).astype(jnp.float32), may_dig, may_drop])
        return jnp.max(possible * space.same_change(known, delta))

    def rules_out(self, goal: Goal) -> str | None:
        low, high, axes = np.asarray(goal.low, float), np.asarray(goal.high, float), []
        for k, centre in enumerate(self.centre):
            least, most = max(low[k], 0.0), min(high[k], centre + self.outer)
            axes.append(np.linspace(least, most, max(2, int(np.ceil((most - least) / SUPPORT_SPACING)) + 1)))
        points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(axes))
        distance = np.linalg.norm(points - np.array(self.centre), axis=1)
        meets = (distance >= self.inner) & (distance <= self.outer)
        if self.hole:
            meets &= ~np.asarray(in_box(jnp.asarray(points), self.hole))
        return (
            None if meets.any() else "all amounts that near to the goal lie outside S, the set that they must not leave"
        )

    def item_facts(self) -> ItemFacts:
        q, d = self.minerals, self.deposits
        served = np.zeros((1 + 2 * q, self.items), bool)
        served[0, q * d] = True
        for j in range(q):
            served[1 + j, j * d : (j + 1) * d] = True
            served[1 + q + j, q * d + 1 + j] = True
        return ItemFacts(served, np.full(len(served), INTERACT))

    def scene(self, state: MiningState) -> Scene:
        q, d = self.minerals, self.deposits
        shapes = [Thing(0, 0, "deposit", COLOURS[j]) for j in range(q) for _ in range(d)]
        shapes += [Thing(0, 0, "store", "grey")] + [Thing(0, 0, "dump", COLOURS[j]) for j in range(q)]
        things = list(zip(state.places.tolist(), shapes, strict=True))
        amounts = tuple((f"m{j + 1}", COLOURS[j], f"{float(x):.2f}") for j, x in enumerate(state.minerals))
        return ground_scene(state.ground, things, (*amounts, ("hammer", "grey", str(int(state.hammer)))))

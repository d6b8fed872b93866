"""Arm: two joints on circles, and a post in the way."""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from saplan.algebra import Circle, Product
from saplan.errors import InputError
from saplan.games.game import Game, ItemFacts, Words
from saplan.games.grid import INTERACT, MOVES, Map, MapRules, Places, draw_map, move, vocabulary, words
from saplan.games.objects import draw_nearest
from saplan.games.scene import Scene, Thing, ground_scene
from saplan.goals import HAIR, Goal
from saplan.interpreter.program import interpretable, without_compiling

TURN = 360.0
JOINTS = ("shoulder", "elbow")
JOINT_COLOURS = ("red", "blue")
CANDIDATES = 64
"""Postures drawn at once to find one that is clear of the post."""
SWEEP = 8
"""Postures during one turn of a joint that are compared with the post."""
SHELF_CELLS = 12
SUPPORT_SPACING = 3.0
"""Degrees between the postures at which a goal's box is compared with the post."""
Posture = Float[Array, "... 2"]


class ArmState(eqx.Module):
    """`places` holds the cranks: the shoulder's for turning right and left, then the elbow's."""

    ground: Map
    places: Places
    angles: Float[Array, "2"]

    @property
    def items(self) -> Places:
        """Places of the cranks, in the order above."""
        return self.places


@final
@dataclass(frozen=True)
class Arm(Game[ArmState]):
    """There is an arm with a shoulder and an elbow that cranks turn, and a post that it must not touch.

    - There are four cranks on the map. `interact` on one turns its joint by 22.5 degrees, to the right or to the left.
      A turn during which the arm would touch the post is refused and has no effect.
    - Angles grow to the right: a shoulder of 0 points up, 90 to the right. The elbow is measured from the upper arm.
      Both parts have length 1. The post has a radius of 0.3 and stands at 120 degrees, 0.9 from the shoulder, so that
      the upper arm cannot pass it: some goals next door lie a whole way round.
    - 𝓡 = S¹ × S¹ (shoulder, elbow), in degrees.
    - Admissible δρ: for every joint, + 22.5 and - 22.5 modulo 360.
    - The start is uniform among the postures that are clear of the post.
    - A task is to bring both joints within 15 degrees of such a posture.
    """

    turn: float = 22.5
    """Degrees of one turn of a crank."""
    upper: float = 1.0
    """Length of the upper arm."""
    fore: float = 1.0
    """Length of the forearm."""
    post: float = 120.0
    """Direction of the post, in degrees."""
    distance: float = 0.9
    """Distance of the post from the shoulder."""
    radius: float = 0.3
    """Radius of the post."""
    tolerance: float = 15.0
    """Distance of both joints from the goal of a task that counts as reached, in degrees."""
    maps: MapRules = field(default_factory=MapRules)

    name: ClassVar[str] = "arm"
    actions: ClassVar[tuple[str, ...]] = (*MOVES, "interact")
    credit: ClassVar[str] = "attempt"
    alphas: ClassVar[tuple[float, float]] = (0.0, 1.0)
    farthest_goal: ClassVar[int] = 16

    def __post_init__(self) -> None:
        numbers = (self.turn, self.upper, self.fore, self.post, self.distance, self.radius, self.tolerance)
        if not all(map(math.isfinite, numbers)) or min(self.upper, self.fore, self.radius) <= 0:
            raise InputError("the rules of arm must be finite numbers, with lengths above 0")
        if not 0 < self.turn < TURN / 4 or not self.turn <= 2 * self.tolerance < TURN / 2:
            raise InputError("arm needs a turn below 90 degrees, and a tolerance from half a turn to below 90 degrees")
        if not self.distance > self.radius:
            raise InputError("the post must not cover the shoulder: its distance must exceed its radius")
        self.maps.check_room(len(self.changes))
        if not self._some_clear(np.random.default_rng(0).uniform(0, TURN, (CANDIDATES, 2))):
            raise InputError("no start is possible: the post covers every posture")

    @property
    def changes(self) -> Float[np.ndarray, "4 2"]:
        """Degrees that every crank adds to both joints."""
        return np.array([[self.turn, 0], [-self.turn, 0], [0, self.turn], [0, -self.turn]], np.float32)

    @property
    def slots(self) -> int:
        return 4 + self.maps.max_walls + len(self.changes)

    @property
    def vocabulary(self) -> int:
        return vocabulary(len(self.changes))

    @property
    def space(self) -> Product:
        return Product(JOINTS, (Circle(TURN, 2 * self.tolerance),) * 2)

    def clear(self, angles: Posture) -> Bool[Array, "..."]:
        """Whether the arm does not touch the post."""
        post = self.distance * _direction(jnp.float32(self.post))
        elbow = self.upper * _direction(angles[..., 0])
        hand = elbow + self.fore * _direction(angles[..., 0] + angles[..., 1])
        apart = jnp.minimum(_apart(post, jnp.zeros(2), elbow), _apart(post, elbow, hand))
        return apart > self.radius

    def _some_clear(self, postures: Float[np.ndarray, "... 2"]) -> bool:
        """Whether the arm is clear of the post in some of these postures."""
        with without_compiling():
            return bool(_any_clear(self, postures.astype(np.float32)))

    def possible(self, angles: Posture) -> Bool[Array, "... 4"]:
        """Whether every crank can be turned: the arm stays clear of the post all the way."""
        shares = jnp.arange(1, SWEEP + 1) / SWEEP
        during = angles[..., None, None, :] + jnp.asarray(self.changes)[:, None] * shares[:, None]
        return jnp.all(self.clear(during), axis=-1)

    def _draw_clear(self, key: PRNGKeyArray) -> Float[Array, "2"]:
        postures = _candidates(key)
        return postures[jnp.argmax(self.clear(postures))]

    def reset(self, key: PRNGKeyArray) -> ArmState:
        map_key, start_key = jax.random.split(key)
        ground, places = draw_map(self.maps, map_key, len(self.changes))
        return ArmState(ground, places, self._draw_clear(start_key))

    def step(self, key: PRNGKeyArray, state: ArmState, action: Int[Array, ""]) -> ArmState:
        ground = move(state.ground, action)
        turned = (action == INTERACT) & (state.places == ground.agent) & self.possible(state.angles)
        change = jnp.sum(jnp.where(turned[:, None], jnp.asarray(self.changes), 0.0), axis=0)
        return ArmState(ground, state.places, self.space.compose(state.angles, change))

    def observe(self, state: ArmState) -> Words:
        return words(state.ground, 1 + jnp.arange(len(self.changes)), state.places)

    def attributes(self, state: ArmState) -> Float[Array, "K"]:
        return state.angles

    def shelf(self, state: ArmState) -> Float[Array, "rows cells"]:
        """A row of cells around the circle for every joint; the two nearest to its angle are filled by nearness."""
        cell = TURN / SHELF_CELLS
        apart = jnp.abs(state.angles[:, None] - cell * jnp.arange(SHELF_CELLS))
        return jnp.clip(1 - jnp.minimum(apart, TURN - apart) / cell, 0.0, 1.0)

    def over(self, state: ArmState) -> Bool[Array, ""]:
        return ~jnp.any(self.possible(state.angles))

    def tasks(self, key: PRNGKeyArray) -> tuple[ArmState, Goal]:
        state_key, goal_key = jax.random.split(key)
        goal, slack = self._draw_clear(goal_key), self.tolerance * HAIR
        return self.reset(state_key), Goal((goal - slack) % TURN, (goal + slack) % TURN)

    def goal_at(
        self, key: PRNGKeyArray, rho: Float[Array, "K"], distance: Int[Array, ""]
    ) -> tuple[Float[Array, "K"], Bool[Array, "K"]]:
        """A posture to take; the distance is the number of turns without the post in the way."""
        most = math.floor(TURN / 2 / self.turn)
        turns = jnp.stack(jnp.meshgrid(*[jnp.arange(-most, most + 1)] * 2), axis=-1).reshape(-1, 2)
        postures = self.space.compose(jnp.broadcast_to(rho, turns.shape), turns * self.turn)
        length = jnp.sum(jnp.abs(turns), axis=1)
        chosen = draw_nearest(key, length, self.clear(postures) & (length > 0), distance)
        return postures[chosen], jnp.ones(2, bool)

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        names = [f"turn the {joint} {side}" for joint in JOINTS for side in ("right", "left")]
        return tuple((name, tuple(change.tolist())) for name, change in zip(names, self.changes, strict=True))

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        same = self.space.same_change(jnp.asarray(self.changes), delta)
        return jnp.any(same & self.possible(rho)).astype(jnp.float32)

    def rules_out(self, goal: Goal) -> str | None:
        low, high = np.asarray(goal.low, float), np.asarray(goal.high, float)
        free = ~(np.isfinite(low) & np.isfinite(high))
        low = np.where(free, 0.0, low)
        width = np.where(free, TURN, (np.where(free, 0.0, high) - low) % TURN)
        axes = [np.linspace(a, a + w, max(2, math.ceil(w / SUPPORT_SPACING))) for a, w in zip(low, width, strict=True)]
        postures = np.stack(np.meshgrid(*axes), axis=-1)
        return None if self._some_clear(postures) else "the arm would touch the post"

    def item_facts(self) -> ItemFacts:
        return ItemFacts(np.eye(len(self.changes), dtype=bool), np.full(len(self.changes), INTERACT))

    def scene(self, state: ArmState) -> Scene:
        cranks = [Thing(0, 0, side, colour) for colour in JOINT_COLOURS for side in ("turn_right", "turn_left")]
        things = list(zip(state.places.tolist(), cranks, strict=True))
        angles = zip(JOINTS, JOINT_COLOURS, state.angles.tolist(), strict=True)
        inventory = tuple((joint, colour, f"{angle:.0f}°") for joint, colour, angle in angles)
        return ground_scene(state.ground, things, inventory)


@interpretable
@partial(jax.jit, static_argnums=0)
def _any_clear(arm: Arm, postures: Posture) -> Bool[Array, ""]:
    return jnp.any(arm.clear(postures))


def _candidates(key: PRNGKeyArray) -> Float[Array, "n 2"]:
    return jax.random.uniform(key, (CANDIDATES, 2), maxval=TURN)


def _direction(angle: Float[Array, "..."]) -> Float[Array, "... 2"]:
    """The unit vector of an angle: 0 is up, 90 to the right."""
    turned = jnp.deg2rad(angle)
    return jnp.stack([jnp.sin(turned), jnp.cos(turned)], axis=-1)


def _apart(point: Float[Array, "2"], start: Float[Array, "... 2"], end: Float[Array, "... 2"]) -> Float[Array, "..."]:
    """Distance of a point from a line segment."""
    along = end - start
    share = jnp.sum((point - start) * along, axis=-1) / jnp.sum(along**2, axis=-1)
    nearest = start + jnp.clip(share, 0.0, 1.0)[..., None] * along
    apart: Float[Array, "..."] = jnp.linalg.norm(point - nearest, axis=-1)
    return apart

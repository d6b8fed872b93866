"""A view is its game in everything that it does not say otherwise: no attribute of `Game` may be forgotten."""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from saplan.algebra import Cyclic, Natural, Product, Real
from saplan.games.game import Game, ItemFacts
from saplan.games.scene import Scene
from saplan.games.sight import LimitedSight, Sight
from saplan.games.wrapper import GameWrapper
from saplan.goals import Goal
from saplan.methods.ablations import Ablated
from saplan.methods.encoders import AlgebraEncoder
from saplan.methods.policy import Policy
from saplan.methods.structured.settings import StructuredSettings
from saplan.methods.unstructured.rounding import Rounded
from saplan.perception.fitted import FittedGame, Perceived
from saplan.perception.found_space import FoundGame

SIDE = 16


@dataclass(frozen=True)
class Odd(Game[Any]):
    """Every attribute and every answer is another than the default of `Game`."""

    name: ClassVar[str] = "odd"
    actions: ClassVar[tuple[str, ...]] = ("up", "down", "stay")
    slots: ClassVar[int] = SIDE * SIDE
    vocabulary: ClassVar[int] = 0
    picture: ClassVar[tuple[int, int, int]] = (SIDE, SIDE, 1)
    cell: ClassVar[int] = 4
    credit: ClassVar[str] = "game"
    vital: ClassVar[tuple[str, ...]] = ("level",)
    misread: ClassVar[bool] = True
    alphas: ClassVar[tuple[float, float]] = (0.3, 0.7)
    tolerance: ClassVar[float] = 0.75
    farthest_goal: ClassVar[int] = 9

    @property
    def space(self) -> Product:
        return Product.of(level=Real(0.5, low=0.0, high=9.0), turn=Cyclic(3))

    def reset(self, key: Any) -> Any:
        return jnp.float32(2.25)

    def step(self, key: Any, state: Any, action: Any) -> Any:
        return state + 1.5 * action

    def observe(self, state: Any) -> Any:
        return jnp.full(SIDE * SIDE, 7, jnp.uint8)

    def place(self, state: Any) -> Any:
        return jnp.full(3, 4, jnp.uint8)

    def attributes(self, state: Any) -> Any:
        return jnp.stack([state, jnp.float32(1)])

    def truth(self, state: Any) -> Any:
        return jnp.stack([state + 1, jnp.float32(2)])

    def confidence(self, state: Any) -> Any:
        return jnp.array([0.25, 0.5])

    def anywhere(self, key: Any) -> Any:
        return jnp.float32(5.75)

    def shelf(self, state: Any) -> Any:
        return jnp.full((2, 3), 0.5)

    def over(self, state: Any) -> Any:
        return jnp.ones((), bool)

    def lost(self, state: Any) -> Any:
        return jnp.ones((), bool)

    def tasks(self, key: Any) -> tuple[Any, Goal]:
        return jnp.float32(1.25), Goal(jnp.zeros(2), jnp.ones(2))

    def task_groups(self, states: Any, goals: Goal) -> dict[str, np.ndarray]:
        return {"high": np.atleast_1d(np.asarray(states) > 2)}

    def goal_at(self, key: Any, rho: Any, distance: Any) -> tuple[Any, Any]:
        return rho + distance, jnp.array([True, False])

    def rules_out(self, goal: Goal) -> str:
        return "too odd"

    def item_facts(self) -> ItemFacts:
        return ItemFacts(np.ones((1, 2), bool), np.array([2]))

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        return (("rise", (1.5, 0.0)),)

    def feasible(self, rho: Any, delta: Any) -> Any:
        return jnp.float32(0.125)

    def recall(self, states: Any) -> dict[str, np.ndarray]:
        return {"what": np.arange(3)}

    def restore(self, states: Any, recalled: dict[str, np.ndarray]) -> None:
        raise LookupError(*recalled)

    def fault(self) -> Exception:
        return ArithmeticError("odd")

    def described(self) -> dict[str, Any]:
        return {"game": "odd", "world": {"a": 1}}

    def scene(self, state: Any) -> Scene:
        return Scene(3, 4, frozenset(), (1, 2), (), ())


GAME = Odd()
KEY, RHO = jax.random.key(0), jnp.array([2.25, 1.0])
STATE = jnp.float32(2.25)


def read(observations: Array) -> tuple[Array, Array]:
    """An f̂ for tests."""
    return jnp.tile(jnp.array([3.5, 2.0]), (len(observations), 1)), jnp.full((len(observations), 2), 0.75)


VIEWS: dict[type[GameWrapper[Any]], GameWrapper[Any]] = {
    Rounded: Rounded(GAME),
    Ablated: Ablated(GAME, "raw"),
    FittedGame: FittedGame(GAME, read, "words", "digest"),
    FoundGame: FoundGame(GAME, ()),
    LimitedSight: LimitedSight(GAME, Sight(5, (1, 1), 10)),
}
CHANGED = {
    Rounded: {"space", "attributes", "feasible"},
    Ablated: {"space"},
    FittedGame: {"misread", "attributes", "confidence", "place", "reset", "step", "anywhere", "tasks"},
    FoundGame: {
        "space",
        "attributes",
        "truth",
        "confidence",
        "tasks",
        "described",
        "admissible",
        "feasible",
        "rules_out",
    },
    LimitedSight: {"slots", "observe"},
}
"""Each is a change that its class is there to make."""
ARGUMENTS: dict[str, Any] = {
    "reset": (KEY,), "anywhere": (KEY,), "tasks": (KEY,), "step": (KEY, STATE, jnp.int32(1)), "admissible": (),
    "feasible": (RHO, RHO), "goal_at": (KEY, RHO, jnp.int32(3)), "rules_out": (Goal(RHO, RHO),), "item_facts": (),
    "described": (), "fault": (), "restore": (STATE, {"what": np.arange(3)}),
    "task_groups": (STATE, Goal(jnp.zeros(2), jnp.ones(2))),
}  # fmt: skip
"""Of methods that take something else than a state."""
PUBLIC = sorted(name for name in {*vars(Game), *vars(GameWrapper)} if not name.startswith("_"))


def answer(game: Game[Any], name: str) -> Any:
    """What a game has by this name; of a method, what it answers."""
    found = getattr(game, name)
    if not callable(found):
        return found
    arguments = ARGUMENTS.get(name, (STATE,))
    if isinstance(game, FittedGame):  # its states are wrapped
        arguments = tuple(Perceived(STATE, RHO, RHO) if each is STATE else each for each in arguments)
    try:
        return found(*arguments)
    except LookupError as error:
        return error.args


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Exception | ItemFacts):
        return repr(one) == repr(other)
    structures: list[Any] = [jax.tree.structure(one), jax.tree.structure(other)]
    alike: bool = structures[0] == structures[1]
    return alike and all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True))


def every_view(kind: type[GameWrapper[Any]] = GameWrapper) -> set[type[GameWrapper[Any]]]:
    found = {sub for sub in kind.__subclasses__() if sub.__module__.startswith("saplan.")}
    return found | {deeper for sub in found for deeper in every_view(sub)}


def test_every_view_is_here() -> None:
    assert every_view() == set(VIEWS)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_odd_game_departs_from_every_default(name: str) -> None:
    assert name in vars(Odd), f"give Odd a {name} that is not the default of Game"


@pytest.mark.parametrize("kind", VIEWS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", PUBLIC)
def test_a_view_forwards(kind: type[GameWrapper[Any]], name: str) -> None:
    if name in CHANGED[kind]:
        assert name in vars(kind)
    else:
        assert same(answer(VIEWS[kind], name), answer(GAME, name))


def test_pictures_reach_the_opponent_who_rounds() -> None:
    settings = StructuredSettings(hidden=8)
    plain, rounded = (
        eqx.filter_eval_shape(lambda game=game: Policy.init(KEY, game, AlgebraEncoder(game.space), settings))
        for game in (GAME, VIEWS[Rounded])
    )
    assert len(jax.tree.leaves(plain)) == len(jax.tree.leaves(rounded)), "both have convolutions"


def test_what_a_game_alone_has_is_found_too() -> None:
    assert Rounded(Odd()).game.space.names == ("level", "turn")
    assert isinstance(VIEWS[Rounded].space.blocks[0], Natural)
    with pytest.raises(AttributeError):
        _ = VIEWS[Rounded].nothing

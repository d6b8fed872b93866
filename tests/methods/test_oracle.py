"""The oracle solves what can be solved, by walks that are as short as they can be."""

import math
import operator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.errors import InputError
from saplan.games import Mining, make_game, task_set
from saplan.games.grid import NOWHERE, PITCH, SIDE, to_cell
from saplan.goals import parse_goal
from saplan.methods.oracle.agent import Oracle
from saplan.methods.oracle.mining import MiningOracle
from saplan.methods.oracle.walks import FAR, all_walks, walks
from saplan.planning import Outcome
from saplan.training.evaluate import evaluate
from tests.methods.probe import GAME


def plain_walk(ground, place: int) -> dict[int, int]:
    """Breadth-first search, written as in a textbook."""
    walls = set(ground.walls.tolist())
    height, width = int(ground.height), int(ground.width)
    length, queue = {place: 0}, [place]
    for here in queue:
        for step in (-PITCH, PITCH, -1, 1):
            there = here + step
            row, column = there // PITCH, there % PITCH
            if 0 <= row < height and 0 <= column < width and there not in walls and there not in length:
                length[there] = length[here] + 1
                queue.append(there)
    return length


@pytest.mark.parametrize("name", ["switches", "mining"])
def test_walks_are_shortest(name: str) -> None:
    game = make_game(name)
    for key in jax.random.split(jax.random.key(0), 5):
        state = game.reset(key)
        lengths = np.asarray(jax.jit(walks, static_argnums=2)(state.ground, state.items, SIDE))
        for item, place in enumerate(state.items.tolist()):
            truth = {} if place == NOWHERE else plain_walk(state.ground, place)
            for cell in range(SIDE * SIDE):
                here = cell // SIDE * PITCH + cell % SIDE
                assert lengths[item, cell] == truth.get(here, FAR)


@pytest.mark.parametrize(
    ("name", "least", "tasks"), [("switches", 1.0, 40), ("exchange", 0.97, 40), ("mining", 0.8, 12)]
)
def test_the_test_tasks_can_be_solved(name: str, least: float, tasks: int) -> None:
    result = evaluate(Oracle(make_game(name)), tasks, task_seed=5)
    assert result.success.mean() >= least
    assert all(attempt.success for attempt in result.attempts), "it sees the yield, so no blow of it is refused"


def test_a_task_of_one_change_takes_the_walk_and_one_more() -> None:
    game = Mining()
    states, _ = task_set(game, 12, 0)
    goal = parse_goal(game.space, "hammer=1")
    goals = type(goal)(np.tile(goal.low, (12, 1)), np.tile(goal.high, (12, 1)))
    result = Oracle(game).executor(states, goals).run(50, 0)
    store = np.asarray(all_walks(states))[:, game.minerals * game.deposits]
    side = math.isqrt(store.shape[-1])
    cell = np.asarray(to_cell(states.ground.agent, side))
    np.testing.assert_array_equal(result.steps, store[np.arange(12), cell] + 1)


def test_plans_are_exact() -> None:
    game = make_game("switches")
    oracle, state = Oracle(game), game.reset(jax.random.key(1))
    rho = np.asarray(game.attributes(state))
    kind = int((rho[6] + 1) % 3)
    plan = oracle.plan(state, parse_goal(game.space, f"{game.space.names[3 + kind]}=1"))
    assert plan.outcome is Outcome.FOUND
    assert plan.transitions == (3, kind), "turn the switch once, then pick"
    assert oracle.plan(state, parse_goal(game.space, "red=40")).outcome is Outcome.UNREACHABLE


def test_a_game_it_does_not_know_is_refused() -> None:
    with pytest.raises(InputError, match="does not know the rules"):
        Oracle(GAME)


def test_rules_other_than_the_defaults_are_obeyed() -> None:
    game = make_game("switches", kinds=2, most=2)
    oracle = Oracle(game)
    assert oracle.delta.shape == (3, 5)
    assert evaluate(oracle, 10, task_seed=1).success.all()


def test_on_mining_it_reckons_with_the_yield_that_the_rules_have_fixed() -> None:
    """It used to hope for another draw after a refused blow, with the same hammer."""
    game = Mining()
    states, goals = task_set(game, 2, 0)
    heavy = game.yield_high - 0.01
    near_the_rim = jnp.array([12.9, 1.0])  # the outer rim is at 13: this hammer's blow would leave S
    states = replace_all(states, minerals=near_the_rim, hammer=1, yields=heavy)
    one = Oracle(game).executor(states, goals)
    length = np.zeros(game.items, int)
    assert isinstance(one, MiningOracle)
    assert (one.remaining(0, length)[: game.deposits] >= FAR).all()
    light = Oracle(game).executor(replace_all(states, minerals=jnp.array([12.0, 1.0]), hammer=1, yields=0.51), goals)
    assert isinstance(light, MiningOracle)
    assert (light.remaining(0, length)[: game.deposits] < FAR).any()


def replace_all(states, **fields):
    """The same states with other amounts, hammers and yields."""
    for name, value in fields.items():
        old = getattr(states, name)
        new = jnp.broadcast_to(jnp.asarray(value, old.dtype), old.shape)
        states = eqx.tree_at(operator.attrgetter(name), states, new)
    return states

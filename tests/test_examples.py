"""The example worlds obey the contract of games: what happens in random play is what their rules allow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.games import task_set
from tests.loading import load

COMPOSABLE = load("examples/composable.py")


def random_play(game, lanes: int = 64, steps: int = 2000):
    """ρ before and after every step of random games, each of them cut after `steps`."""

    def step(state, key):
        act_key, step_key = jax.random.split(key)
        action = jax.random.randint(act_key, (lanes,), 0, len(game.actions))
        after = jax.vmap(game.step)(jax.random.split(step_key, lanes), state, action)
        seen = jax.vmap(game.observe)(after)
        return after, (jax.vmap(game.attributes)(state), jax.vmap(game.attributes)(after), seen)

    start = jax.vmap(game.reset)(jax.random.split(jax.random.key(0), lanes))
    run = jax.jit(lambda state: jax.lax.scan(step, state, jax.random.split(jax.random.key(1), steps))[1])
    return (np.asarray(x).reshape(-1, x.shape[-1]) for x in run(start))


@pytest.mark.parametrize("game", [COMPOSABLE.ColouredSwitches(), COMPOSABLE.Crafting()], ids=lambda game: game.name)
def test_what_happens_is_what_the_rules_allow(game) -> None:
    before, after, seen = random_play(game)
    assert ((seen >= 0) & (seen < game.vocabulary)).all()
    assert bool(jnp.all(game.space.contains(jnp.asarray(after))))
    moved = (before != after).any(axis=1)
    delta = np.asarray(game.space.difference(jnp.asarray(after), jnp.asarray(before)))[moved]
    known = {change for _, change in game.admissible()}
    assert {tuple(change) for change in delta.tolist()} <= known
    assert len({tuple(change) for change in delta.tolist()}) == len(known), "every change was met"
    feasible = jax.vmap(game.feasible)(jnp.asarray(before[moved]), jnp.asarray(delta))
    assert bool(jnp.all(feasible == 1))


def test_every_product_is_asked_for_and_can_be_made() -> None:
    game = COMPOSABLE.Crafting()
    _, goals = task_set(game, 60, 0)
    wanted = np.isfinite(np.asarray(goals.low))[:, 3:]
    assert wanted.any(axis=0).all()
    assert (wanted.sum(axis=1) == 1).all()
    held = np.zeros(6)
    for name in ("grab resource 1", "grab resource 2", "craft product 1", "grab resource 3", "craft product 2",
                 "craft product 3"):  # fmt: skip
        change = np.array(dict(game.admissible())[name])
        assert float(game.feasible(jnp.asarray(held, jnp.float32), jnp.asarray(change, jnp.float32))) == 1
        held = held + change
    assert held.tolist() == [0, 0, 0, 0, 0, 1]

"""The rules of exchange that are off by default: a purse, and rates that change."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.errors import InputError
from saplan.games import Exchange
from saplan.games.exchange import ExchangeState

TRADE = 5
"""The action `trade red→green`: two red for one green."""
PICK = 4


def holding(game: Exchange, held: tuple[int, ...]) -> ExchangeState:
    state = game.reset(jax.random.key(0))
    return ExchangeState(state.ground, state.objects, jnp.array(held, jnp.int16))


def after(game: Exchange, held: tuple[int, ...], action: int) -> tuple[int, ...]:
    state = game.step(jax.random.key(1), holding(game, held), jnp.array(action))
    return tuple(int(x) for x in state.held)


def test_a_full_purse_refuses_picks_and_trades() -> None:
    game = Exchange(purse=5)
    state = holding(game, (5, 5, 0))
    on_red = ExchangeState(
        jax.tree.map(lambda x: x, state.ground.__class__(state.ground.height, state.ground.width, state.ground.walls,
                                                         state.objects[0])), state.objects, state.held)  # fmt: skip
    assert tuple(np.asarray(game.step(jax.random.key(0), on_red, jnp.array(PICK)).held)) == (5, 5, 0)
    assert tuple(np.asarray(Exchange().step(jax.random.key(0), on_red, jnp.array(PICK)).held)) == (6, 5, 0)
    assert after(game, (5, 5, 0), TRADE) == (5, 5, 0), "one more green would not fit"
    assert after(game, (5, 4, 0), TRADE) == (3, 5, 0)


def test_trades_cost_one_more_from_the_bound_on() -> None:
    game = Exchange(rates_change_at=10)
    assert after(game, (9, 0, 0), TRADE) == (7, 1, 0)
    assert after(game, (10, 0, 0), TRADE) == (7, 1, 0)
    assert after(game, (12, 0, 0), TRADE) == (9, 1, 0)


@pytest.mark.parametrize("game", [Exchange(most=6, purse=4), Exchange(most=6, rates_change_at=5)])
def test_feasible_says_what_steps_do(game: Exchange) -> None:
    deltas = jnp.array([delta for _, delta in game.admissible()])
    possible = jax.jit(jax.vmap(game.feasible, in_axes=(None, 0)))
    random = np.random.default_rng(0)
    for _ in range(40):
        held = tuple(int(x) for x in random.integers(0, (game.purse or 9) + 1, 3))
        rho = game.attributes(holding(game, held))
        found = {tuple(np.asarray(deltas[k])[3:]) for k in np.flatnonzero(np.asarray(possible(rho, deltas))) if k >= 3}
        made = {tuple(np.subtract(after(game, held, action), held)) for action in range(TRADE, TRADE + 6)}
        assert found == made - {(0, 0, 0)}, held


def test_goals_fit_into_the_purse() -> None:
    game = Exchange(most=8, purse=5)
    _, goals = jax.vmap(game.tasks)(jax.random.split(jax.random.key(3), 32))
    asked = np.asarray(goals.low)[:, 3:]
    assert asked.max() <= 5
    assert asked.max(axis=1).min() >= 0


def test_rules_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="purse"):
        Exchange(purse=-1)
    with pytest.raises(InputError, match="rates_change_at"):
        Exchange(rates_change_at=10**6)

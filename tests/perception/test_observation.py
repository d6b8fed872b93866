"""What learners of attributes are shown: complete, but nowhere a number."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.errors import InputError
from saplan.games import GAMES, Game, make_game
from saplan.games.grid import WINDOW
from saplan.perception.observation import AGENT, CELL, GROUND, OBSERVATIONS, SHADES, Observer

N = 64


def states_of(game: Game[Any]) -> Any:
    return jax.jit(jax.vmap(game.anywhere))(jax.random.split(jax.random.key(5), N))


@pytest.mark.parametrize("name", GAMES)
def test_words_lie_in_the_vocabulary_and_say_all_that_the_policy_sees(name: str) -> None:
    game = make_game(name)
    observer, states = Observer(game), states_of(game)
    seen = np.asarray(jax.vmap(observer)(states))
    assert seen.dtype == np.int16
    assert seen.min() >= 0
    assert seen.max() < observer.vocabulary
    assert np.array_equal(seen[:, : game.slots], np.asarray(jax.vmap(game.observe)(states)))


@pytest.mark.parametrize("name", GAMES)
def test_the_shelf_shows_what_is_held(name: str) -> None:
    game = make_game(name)
    states = states_of(game)
    shelf, rho = np.asarray(jax.vmap(game.shelf)(states)), np.asarray(jax.vmap(game.attributes)(states))
    full = shelf.sum(axis=2)
    held = {
        "switches": lambda: rho[:, 3:6],
        "exchange": lambda: rho[:, 3:],
        "mining": lambda: np.c_[rho[:, :2] / 0.5, rho[:, 2]],
        "arm": lambda: np.ones((N, 2)),
        "tiles": lambda: np.ones((N, 4)),
    }[name]()
    if name == "arm":  # the fullest cell of twelve is the nearest to the angle
        assert np.array_equal(shelf.argmax(axis=2), np.rint(rho / 30) % 12)
    if name == "tiles":
        assert np.array_equal(shelf.argmax(axis=2), rho)
    assert np.allclose(full, held, atol=1e-4)
    # In words an amount is told up to half a shade of a place, and nothing is told of an empty place.
    words = np.asarray(jax.vmap(Observer(game).words)(states))[:, game.slots :]
    shade = np.where(words > 0, (words - game.vocabulary) % SHADES + 1, 0) / SHADES
    assert np.allclose(shade.reshape(shelf.shape), shelf, atol=0.5 / SHADES + 1e-6)


@pytest.mark.parametrize("name", GAMES)
def test_states_from_anywhere_are_states(name: str) -> None:
    game = make_game(name)
    states = states_of(game)
    rho = jax.vmap(game.attributes)(states)
    assert bool(jnp.all(game.space.contains(rho)))
    after = jax.vmap(lambda k, s: game.step(k, s, jnp.int32(4)))(jax.random.split(jax.random.key(0), N), states)
    assert bool(jnp.all(game.space.contains(jax.vmap(game.attributes)(after))))
    assert len(np.unique(np.asarray(rho).round(2), axis=0)) > N // 2


def test_a_picture_shows_every_thing_once() -> None:
    game = make_game("switches")
    observer = Observer(game, "picture")
    assert observer.shape == (64, 64, 3)
    for k in range(8):
        state = jax.jit(game.anywhere)(jax.random.key(k))
        picture, rho = np.asarray(jax.jit(observer)(state)), np.asarray(game.attributes(state))
        cells = picture[:GROUND, :GROUND].reshape(WINDOW, CELL, WINDOW, CELL, 3).swapaxes(1, 2)
        cells = cells.reshape(WINDOW * WINDOW, CELL * CELL, 3).astype(int)
        colourful = ((cells.max(axis=2) - cells.min(axis=2)) > 50).any(axis=1)
        assert colourful.sum() == rho[:3].sum() + 1
        inside = (cells > 0).all(axis=(1, 2)) | colourful
        assert inside.sum() == int(state.ground.height) * int(state.ground.width)
        agent = (cells == AGENT).all(axis=2)
        assert agent.sum() == 1
        assert agent[WINDOW * WINDOW // 2, CELL * CELL // 2]
        # Every row of the shelf is two pixels high, and everything on it three pixels wide.
        shelf = (picture[GROUND + 1 :] > 0).any(axis=2)
        assert shelf.sum(axis=1).tolist() == np.repeat(3 * rho[3:6], 2).tolist()


def test_an_amount_is_the_length_of_a_bar() -> None:
    game = make_game("mining")
    states = states_of(game)
    pictures = np.asarray(jax.vmap(Observer(game, "picture"))(states)).astype(float)
    rho = np.asarray(jax.vmap(game.attributes)(states))
    strip = pictures[:, GROUND + 1 :].sum(axis=(2, 3)).reshape(N, 3, 2).sum(axis=2)
    for k in range(2):  # the light of a bar is proportional to the amount
        per_unit = np.median(strip[:, k] / rho[:, k])
        assert np.allclose(strip[:, k], per_unit * rho[:, k], atol=per_unit / 50)
    assert np.array_equal(strip[:, 2] > 0, rho[:, 2] > 0)


def test_the_faces_of_a_switch_differ() -> None:
    game = make_game("switches")
    state = game.reset(jax.random.key(0))
    for name in OBSERVATIONS:
        faces = [
            np.asarray(
                Observer(game, name)(
                    type(state)(state.ground, state.objects, state.held, state.switch_place, jnp.int16(k))
                )
            )
            for k in range(3)
        ]
        assert len({face.tobytes() for face in faces}) == 3


def test_an_unknown_observer_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean"):
        Observer(make_game("switches"), "word")

"""Words stay what they were on maps up to 10 × 10; on larger ones, and with more objects, agents see what they know."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.errors import InputError
from saplan.games import Exchange, Mining, Switches
from saplan.games.game import Game
from saplan.games.grid import EDGE_WORDS, OFFSETS, RIM, WINDOW, MapRules
from saplan.games.rule_cards import with_rules
from saplan.games.sight import LimitedSight, kinds_of, limited
from tests.games.golden import digest_of_play

GOLDEN: dict[str, Game[Any]] = {
    "598c558d3554c316f262ebd7fb0cb78f": Switches(),
    "58cd53829017d708c7ee3f52205474d5": Exchange(),
    "63f1baceb350a73f6d8b34df50f0bbd3": Mining(),
    "e671f6b91349626b69b37d66d08232f6": Switches(kinds=2, maps=MapRules(5, 6)),
}


@pytest.mark.parametrize("digest", GOLDEN)
def test_the_words_of_small_maps_never_change(digest: str) -> None:
    assert digest_of_play(GOLDEN[digest]).startswith(digest), "every trained agent would lose its meaning"


def test_far_items_appear_at_the_rim_in_their_direction() -> None:
    game = Switches(maps=MapRules(smallest=20, largest=20))
    for key in jax.random.split(jax.random.key(1), 8):
        state = game.reset(key)
        words = np.asarray(game.observe(state)).astype(int)
        place, agent = int(state.switch_place), int(state.ground.agent)
        offset = (words[-1] - 1 - EDGE_WORDS) % OFFSETS
        down, right = place // 32 - agent // 32, place % 32 - agent % 32
        assert offset // WINDOW - RIM == np.clip(down, -RIM, RIM)
        assert offset % WINDOW - RIM == np.clip(right, -RIM, RIM)
        assert np.all(words[:4] - 1 - 10 * np.arange(4) <= RIM)


def test_sight_is_limited_to_the_nearest_of_every_kind() -> None:
    trained, other = Switches(most=3), Switches(fewest=6, most=8)
    game = limited(other, trained)
    assert isinstance(game, LimitedSight)
    state = other.reset(jax.random.key(0))
    words = game.observe(state)
    assert words.shape == (trained.slots,)
    kinds = np.asarray(kinds_of(words[4:].astype(jnp.int32)))
    assert [int(np.sum(kinds == k)) for k in (1, 2, 3)] == [3, 3, 3]
    assert limited(trained, trained) is trained


def test_items_beyond_the_rim_appear_where_the_nearest_of_their_kind_does() -> None:
    """Two far items of a kind would draw a policy in two directions; near ones stay where they are."""
    game = limited(Mining(maps=MapRules(20, 20)), Mining())
    assert isinstance(game, LimitedSight)
    rim, hidden = game.sight.rim, 0
    for key in jax.random.split(jax.random.key(2), 8):
        state = game.reset(key)
        ground: Any = state
        shown = np.asarray(game.observe(state)).astype(int)[4:]
        agent = divmod(int(ground.ground.agent), 32)
        places = [np.clip(np.subtract(divmod(int(at), 32), agent), -RIM, RIM) for at in ground.places[:3]]
        nearest = min(places, key=lambda way: int(np.abs(way).sum()))
        expected = [np.clip(nearest if np.abs(way).max() > rim else way, -rim, rim) for way in places]
        words = shown[np.asarray(kinds_of(jnp.asarray(shown))) == 1]
        offsets = (words - 1 - EDGE_WORDS) % OFFSETS
        seen = [(int(offset) // WINDOW - RIM, int(offset) % WINDOW - RIM) for offset in offsets]
        assert sorted(seen) == sorted((int(down), int(right)) for down, right in expected)
        hidden += 3 - len(set(seen))
    assert hidden > 0


def test_rules_are_changed_all_at_once() -> None:
    game = with_rules(Switches(most=3), ["fewest=6", "most=8", "maps.largest=20"])
    assert game == Switches(fewest=6, most=8, maps=MapRules(largest=20))
    for wrong in ("fewest", "fewest=x", "mots=3", "maps=3", "maps.largest=99"):
        with pytest.raises(InputError):
            with_rules(Switches(), [wrong])

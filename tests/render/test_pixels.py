"""Pictures and text of scenes."""

import jax
import matplotlib.image
import numpy as np
import pytest

from saplan.games import GAMES
from saplan.games.scene import COLOURS, Scene, Thing
from saplan.render.ansi import write
from saplan.render.lettering import GLYPHS, text
from saplan.render.palette import INK, KINDS
from saplan.render.pixels import paint
from saplan.render.png import save_png
from saplan.render.sprites import SHAPES, sprite

SCENE = Scene(
    height=3,
    width=4,
    walls=frozenset({(0, 1), (2, 3)}),
    agent=(1, 1),
    things=(
        Thing(0, 0, "object", "red"),
        Thing(0, 3, "switch", "blue"),
        Thing(1, 3, "deposit", "green"),
        Thing(2, 0, "store", "grey"),
        Thing(2, 1, "dump", "green"),
    ),
    inventory=(("red", "red", "2"), ("switch", "blue", "blue")),
)
TEXT = """\
┌─────────┐
│ ●r██· ◉b│
│ · ☻ · ◆g│
│ ⌂ ▼g· ██│
└─────────┘
  red 2   switch blue"""


def near(picture, colour, tolerance=12):
    return np.all(np.abs(picture.astype(int) - colour) <= tolerance, axis=-1)


def cell_of(picture, row, column, cell=48):
    top, left = cell // 3 + row * cell, cell // 3 + column * cell
    return picture[top : top + cell, left : left + cell]


def test_the_text_of_a_scene():
    assert write(SCENE, colour=False) == TEXT


def test_colour_adds_nothing_but_colour():
    import re

    coloured = write(SCENE)
    assert "\x1b[38;5;202m●r\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == TEXT


def test_the_text_shows_what_the_agent_stands_on():
    scene = Scene(1, 2, frozenset(), (0, 0), (Thing(0, 0, "object", "yellow"),), ())
    assert "│ ☻y· │" in write(scene, colour=False)


def test_shape_type_and_determinism():
    picture = paint(SCENE)
    assert picture.dtype == np.uint8
    assert picture.shape == (3 * 48 + 48 + 3 * 16, 4 * 48 + 2 * 16, 3)
    np.testing.assert_array_equal(picture, paint(SCENE))
    assert paint(SCENE, cell=20, least=(10, 10)).shape == (10 * 20 + 20 + 3 * 6, 10 * 20 + 2 * 6, 3)


def test_things_have_their_colours_where_they_stand():
    picture = paint(SCENE)
    assert near(cell_of(picture, 0, 0), KINDS["red"]).sum() > 300
    assert near(cell_of(picture, 0, 3), KINDS["blue"]).sum() > 150
    assert near(cell_of(picture, 1, 3), KINDS["green"]).sum() > 100
    assert not near(cell_of(picture, 1, 0), KINDS["red"]).any()


def test_the_agent_is_visible_alone_and_on_a_thing():
    picture = paint(SCENE)
    assert near(cell_of(picture, 1, 1), INK).sum() > 400
    assert not near(cell_of(picture, 1, 2), INK).any()
    scene = Scene(1, 1, frozenset(), (0, 0), (Thing(0, 0, "object", "red"),), ())
    both = cell_of(paint(scene), 0, 0)
    assert near(both, INK).sum() > 150
    assert near(both, KINDS["red"]).sum() > 100


def test_kinds_differ_in_grey_too():
    grey = [sprite("object", colour, 32)[..., :3] @ [0.299, 0.587, 0.114] for colour in COLOURS]
    for i in range(len(grey)):
        for j in range(i):
            # After taking out the brightness of the whole, the marks must still differ.
            difference = (grey[i] - grey[i].mean()) - (grey[j] - grey[j].mean())
            assert np.abs(difference).max() > 40, (COLOURS[i], COLOURS[j])


def test_every_shape_is_another_picture():
    tiles = [sprite(shape, "red", 32) for shape in SHAPES]
    assert all(np.abs(a - b).max() > 0.5 for k, a in enumerate(tiles) for b in tiles[:k])
    assert all(tile[..., 3].max() == 1 for tile in tiles)
    assert all(tile.min() >= 0 and tile.max() <= 255 for tile in tiles)


def test_edges_are_smooth():
    alpha = sprite("object", "red", 48)[..., 3]
    assert len(np.unique(alpha.round(2))) > 20


@pytest.mark.parametrize("size", [6, 20, 40])
def test_letters_differ(size):
    letters = [text(character, size) for character in GLYPHS]
    assert all(a.min() >= 0 and a.max() <= 1 for a in letters)
    assert text("12", size).shape[1] > text("1", size).shape[1]
    assert text("?", size).any()


@pytest.mark.parametrize("name", GAMES)
def test_every_game_can_be_drawn(name):
    game = GAMES[name]()
    state = jax.jit(game.reset)(jax.random.key(0))
    scene = game.scene(state)
    picture = paint(scene, cell=16)
    assert picture.shape[0] == scene.height * 16 + 16 + 3 * 5
    assert len(write(scene, colour=False).splitlines()) == scene.height + 3


def test_a_png_is_read_back_as_it_was(tmp_path):
    picture = paint(SCENE)
    save_png(picture, tmp_path / "scene.png")
    back = matplotlib.image.imread(tmp_path / "scene.png")
    np.testing.assert_array_equal(np.round(back[..., :3] * 255).astype(np.uint8), picture)

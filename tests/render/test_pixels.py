"""Pictures and text of scenes."""

import jax
import numpy as np
import pytest
from PIL import Image

from saplan.games import GAMES
from saplan.games.scene import COLOURS, Scene, Thing
from saplan.render.ansi import scene_text
from saplan.render.canvas import SCALE, Canvas, Pen, font, save_png
from saplan.render.palette import INK, KINDS, PAGE, WHITE
from saplan.render.pixels import draw, paint
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
    assert scene_text(SCENE, colour=False) == TEXT


def test_colour_adds_nothing_but_colour():
    import re

    coloured = scene_text(SCENE)
    assert "\x1b[38;5;202m●r\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == TEXT


def test_the_text_shows_what_the_agent_stands_on():
    scene = Scene(1, 2, frozenset(), (0, 0), (Thing(0, 0, "object", "yellow"),), ())
    assert "│ ☻y· │" in scene_text(scene, colour=False)


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
    assert near(cell_of(picture, 1, 3), KINDS["green"]).sum() > 80
    assert not near(cell_of(picture, 1, 0), KINDS["red"]).any()


def test_the_agent_is_visible_alone_and_on_a_thing():
    picture = paint(SCENE)
    assert near(cell_of(picture, 1, 1), INK).sum() > 400
    assert not near(cell_of(picture, 1, 2), INK).any()
    scene = Scene(1, 1, frozenset(), (0, 0), (Thing(0, 0, "object", "red"),), ())
    both = cell_of(paint(scene), 0, 0)
    assert near(both, INK).sum() > 150
    assert near(both, KINDS["red"]).sum() > 100


def test_kinds_differ_in_greyscale():
    grey = [np.asarray(sprite("object", colour, 32).convert("L"), float) for colour in COLOURS]
    for i in range(len(grey)):
        for j in range(i):
            # The marks must differ even when the mean brightness is taken out.
            difference = (grey[i] - grey[i].mean()) - (grey[j] - grey[j].mean())
            assert np.abs(difference).max() > 40, (COLOURS[i], COLOURS[j])


def test_every_shape_is_another_picture():
    tiles = [np.asarray(sprite(shape, "red", 32), float) for shape in SHAPES]
    assert all((np.abs(a - b).max(axis=-1) > 40).mean() > 0.1 for k, a in enumerate(tiles) for b in tiles[:k])
    assert all(tile.shape == (32, 32, 4) and tile[..., 3].max() == 255 for tile in tiles)


def test_edges_are_smooth():
    alpha = np.asarray(sprite("object", "red", 48))[..., 3]
    assert len(np.unique(alpha)) > 20


def written(text, size=20, align="left"):
    canvas = Canvas(80, 40)
    canvas.write(text, 40, 20, size, align=align)
    return np.any(np.asarray(canvas.image) != PAGE, axis=-1)


@pytest.mark.parametrize("size", [8, 13, 27])
def test_the_font_has_every_letter_in_use(size):
    missing = font(size).getmask("\U0010ffff")
    masks = [bytes(font(size).getmask(letter)) for letter in "0189.-+=azAZ→±≥≤δρ✓✗"]
    assert len({bytes(missing), *masks}) == 1 + len(masks)


def test_text_is_aligned():
    columns = {align: np.flatnonzero(written("δρ", align=align).any(axis=0)) for align in ("left", "middle", "right")}
    assert columns["left"].min() >= 40
    assert columns["right"].max() <= 40
    assert abs(columns["middle"].mean() - 40) < 2
    assert abs(np.flatnonzero(written("H").any(axis=1)).mean() - 20) < 3


def test_a_pen_draws_where_its_units_say():
    pen = Pen(Image.new("RGBA", (40 * SCALE, 20 * SCALE)), unit=(10, -10), origin=(0, 20))
    pen.disc(0.5, INK, (1, 1.5))
    pen.inside(0.5, (3, 1)).box((1, 1), 0, WHITE)
    alpha = np.asarray(pen.tile())[..., 3]
    rows, columns = np.nonzero(alpha > 127)
    assert (columns[columns < 20].mean() + 0.5, rows[columns < 20].mean() + 0.5) == pytest.approx((10, 5), abs=0.2)
    np.testing.assert_array_equal(alpha[5:15, 25:35], 255)
    assert alpha.sum() / 255 == pytest.approx(100 + np.pi * 25, rel=0.03)


@pytest.mark.parametrize("name", GAMES)
def test_every_game_can_be_drawn(name):
    game = GAMES[name]()
    state = jax.jit(game.reset)(jax.random.key(0))
    scene = game.scene(state)
    picture = paint(scene, cell=16)
    assert picture.shape[0] == scene.height * 16 + 16 + 3 * 5
    assert len(scene_text(scene, colour=False).splitlines()) == scene.height + 3


def test_a_png_is_read_back_unchanged(tmp_path):
    save_png(draw(SCENE), tmp_path / "scene.png")
    with Image.open(tmp_path / "scene.png") as back:
        np.testing.assert_array_equal(np.asarray(back), paint(SCENE))
    assert [path.name for path in tmp_path.iterdir()] == ["scene.png"]

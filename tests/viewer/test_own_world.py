"""A run in a world of one's own on the page: with the world's picture, with attributes alone, and beyond training."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import expect

from saplan.cli import main
from tests.reliability.tiny import SIZES, SMALL, STEPS
from tests.viewer.conftest import Server, stop, watching

FILE = """
import gymnasium
import numpy as np
import saplan


class Lamp(gymnasium.Env):
    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.MultiDiscrete([4])
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.light = 0
        return np.array([0]), {}

    def step(self, action):
        self.light = min(3, self.light + 1) if action else max(0, self.light - 1)
        return np.array([self.light]), 0.0, False, False, {}

    def render(self):
        return np.full((20, 30, 3), 80 * self.light, np.uint8)


def made(mode):
    space = saplan.Product.of(light=saplan.Natural(bins=4))
    seen = lambda observation, info, env: (env.light,)
    return saplan.gym_world(lambda: Lamp(mode), space, seen, goals=["light=2"], name="lamp")


def drawn() -> saplan.GymWorld:
    return made("rgb_array")


def blind() -> saplan.GymWorld:
    return made(None)
"""


@pytest.fixture(scope="module")
def lamp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the file of a world, and a tiny run in it."""
    import saplan
    from saplan.cli.worlds import load_world

    place = tmp_path_factory.mktemp("lamp")
    (place / "lamp.py").write_text(FILE, encoding="utf-8")
    world = load_world(f"{place / 'lamp.py'}:drawn")
    saplan.train(world, STEPS, settings=saplan.StructuredSettings(**SIZES), out=place / "run", eval_points=0)
    return place


def opened(browser: Any, server: Server) -> Any:
    page = browser.new_page(viewport={"width": 1200, "height": 800})
    page.set_default_timeout(40_000)
    page.goto(server.address)
    page.wait_for_selector("#path .current")
    return page


@pytest.fixture
def shown(lamp: Path, browser: Any, request: Any) -> Iterator[Any]:
    server = watching(str(lamp / "run"), "--world", f"{lamp / 'lamp.py'}:{request.param}")
    yield opened(browser, server)
    assert stop(server) == 130


COLOUR = "c => [...c.getContext('2d').getImageData(0, 0, 1, 1).data].slice(0, 3)"


@pytest.mark.parametrize("shown", ["drawn"], indirect=True)
def test_the_world_s_own_picture_is_shown(shown: Any) -> None:
    expect(shown.locator("#picture")).to_be_visible()
    expect(shown.locator("#map")).to_be_hidden()
    assert shown.input_value("#goal") == "light=2"
    assert shown.eval_on_selector("#picture", COLOUR) == [0, 0, 0]
    expect(shown.locator("#rules")).to_contain_text("A world of your own")
    expect(shown.locator("#changes")).to_contain_text("light +1")
    for _ in range(150):
        if shown.eval_on_selector("#picture", COLOUR) != [0, 0, 0]:
            return
        shown.locator("body").press(".")
        shown.wait_for_timeout(100)
    raise AssertionError("the picture never changed")


@pytest.mark.parametrize("shown", ["blind"], indirect=True)
def test_without_a_picture_there_are_the_attributes(shown: Any) -> None:
    expect(shown.locator("#no-picture")).to_be_visible()
    expect(shown.locator("#picture")).to_be_hidden()
    expect(shown.locator('.row[data-name="light"]')).to_be_visible()


def test_leaving_the_range_of_training_is_shown(browser: Any, tmp_path: Path) -> None:
    """A tiny run met one object of each kind; with three of each, every plan goes beyond that."""
    run = str(tmp_path / "run")
    rules = ["--fewest", "1", "--most", "1", "--eval-points", "0"]
    assert main(["train", "switches", "--steps", str(STEPS), "--out", run, *rules, *SMALL]) == 0
    server = watching(run, "--rules", "fewest=3", "most=3", "--goal", "red=2")
    page = browser.new_page()
    page.goto(server.address)
    row = page.locator("#path .beyond")
    expect(row).to_have_count(1, timeout=40_000)
    expect(row.locator("summary")).to_contain_text("beyond training: map_")
    row.locator("summary").click()
    expect(row.locator("p").first).to_contain_text("never met in training")
    expect(page.locator('.row[data-name="map_red"] b')).to_have_text("3")
    page.close()
    assert stop(server) == 130


def test_rules_need_a_game(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--rules", "most=8", "--no-browser"]) == 2
    assert "--rules needs the name of a game" in capsys.readouterr().err

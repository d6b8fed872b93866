"""The pictures of the page and the films in the documents: python benchmarks/screenshots.py (needs a Chromium)."""

import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright
from viewer import FLAGS, Watching

from saplan.cli import main

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
TASKS = {
    "switches": ("red=1 green=1 blue=1", 1),
    "exchange": ("red=0 green=0 blue=3", 0),
    "mining": ("m1=3 m2=5", 3),
}
"""Goals and maps."""
STEPS = {"switches": 9, "exchange": 8, "mining": 14}
"""How far the pictures are."""


def photograph(browser: Any, address: str, game: str, path: Path, **look: Any) -> None:
    """The page in the middle of a task."""
    goal, seed = TASKS[game]
    context = browser.new_context(**look)
    page = context.new_page()
    page.goto(f"{address}#{urlencode({'game': game, 'method': 'structured', 'seed': seed, 'goal': goal})}")
    page.wait_for_selector("#path .leg", timeout=60_000)
    for step in range(STEPS[game]):
        page.locator("body").press(".")
        page.get_by_text(f"step {step + 1} of").wait_for()
    page.wait_for_timeout(1500)  # until everything is still
    page.screenshot(path=path, full_page="phone" in path.name)
    context.close()


def photograph_all() -> None:
    """All games by day, one by night, one at phone width."""
    server = Watching("switches")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        wide = {"viewport": {"width": 1280, "height": 780}}
        for game in TASKS:
            photograph(browser, server.address, game, PICTURES / f"watch-{game}.png", **wide)
        photograph(browser, server.address, "mining", PICTURES / "watch-dark.png", color_scheme="dark", **wide)
        narrow = {"viewport": {"width": 390, "height": 844}}
        photograph(browser, server.address, "switches", PICTURES / "watch-phone.png", **narrow)
        browser.close()
    server.stop()


if __name__ == "__main__":
    for name, (goal, seed) in TASKS.items():
        main(["render", name, "--goal", goal, "--seed", str(seed), "--out", str(PICTURES / f"film-{name}.gif")])
    photograph_all()

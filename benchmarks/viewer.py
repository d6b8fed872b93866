"""The page in a real Chromium: measurements, and the pictures and films of the documents.

    python benchmarks/viewer.py            # time to the first frame, frames per second, memory: results/viewer.json
    python benchmarks/viewer.py first      # only one of first, frames and often
    python benchmarks/viewer.py pictures   # docs/pictures/watch-*.png and film-*.gif

Needs the extra `test` and a Chromium.
"""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from common import RESULTS, ROOT, make_parser, progress, setting

from saplan.experiments.result_file import write_result
from saplan.experiments.tables import markdown_table
from saplan.storage.json_data import read_json
from saplan.training.provenance import provenance

RESULT, PICTURES = RESULTS / "viewer.json", ROOT / "docs" / "pictures"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
GOALS = {"switches": "red=1 green=1 blue=1", "exchange": "red=1 green=1 blue=1", "mining": "m1=8 m2=6"}
STARTS = 3
PLANS = 1000
SETTLED = 100
"""Plans after which every program has been compiled."""
SPEEDS = (5, 20)
COUNT_FRAMES = """seconds => new Promise(done => {
    const times = [];
    const note = time => {
        times.push(time);
        if (time - times[0] < 1000 * seconds) requestAnimationFrame(note); else done(times);
    };
    requestAnimationFrame(note);
})"""
PHOTOGRAPHED = {
    "switches": ("red=1 green=1 blue=1", 1, 9),
    "exchange": ("red=0 green=0 blue=3", 0, 8),
    "mining": ("m1=3 m2=5", 3, 14),
    "arm": ("shoulder=180 elbow=0", 0, 14),
    "tiles": ("red=0 green=1 blue=m0", 0, 9),
}
"""Goal, seed of the map and step of the pictures."""


class Watching:
    """A running `saplan watch`."""

    def __init__(self, game: str) -> None:
        """Starts it and waits for the address."""
        self.began = time.monotonic()
        command = [sys.executable, "-m", "saplan", "watch", game, "--no-browser", "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found is not None
        self.address = found[0]

    def seconds(self) -> float:
        """Seconds since the command was given."""
        return time.monotonic() - self.began

    def memory(self) -> float:
        """Resident memory of the server in MiB."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) / 1024

    def stop(self) -> None:
        """Ends it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)


def first_frames(browser: Any) -> dict[str, Any]:
    """Seconds from the command to the map on the screen, and to the first plan, with the browser already open."""
    browser.new_page().goto("about:blank")
    found: dict[str, list[dict[str, float]]] = {}
    for game in GOALS:
        for _ in range(STARTS):
            server, page = Watching(game), browser.new_page()
            served = server.seconds()
            page.goto(server.address)
            page.wait_for_selector("#map .agent")
            page.evaluate("() => new Promise(requestAnimationFrame)")
            frame = server.seconds()
            page.wait_for_selector("#path .planned", timeout=60_000)
            times = {"address": served, "frame": frame, "plan": server.seconds()}
            found.setdefault(game, []).append({name: round(value, 2) for name, value in times.items()})
            page.close()
            server.stop()
    return {"games": found}


def frame_rates(browser: Any) -> dict[str, Any]:
    """Frames per second while a plan of mining is played, the page with the most to draw."""
    found, server = [], Watching("mining")
    for speed in SPEEDS:
        page = browser.new_page(viewport={"width": 1360, "height": 860})
        page.goto(f"{server.address}#game=mining&method=structured&seed=0&goal=m1%3D8+m2%3D6")
        page.wait_for_selector("#path .planned", timeout=60_000)
        page.locator("#speed").fill(str(speed))
        page.click("#play")
        page.wait_for_selector("#path .past", timeout=60_000)
        gaps = np.diff(page.evaluate(COUNT_FRAMES, 3))
        rate, slow = 1000 / gaps.mean(), np.percentile(gaps, 99)
        found.append({"speed": speed, "frames": round(float(rate), 1), "slowest_ms": round(float(slow), 1)})
        page.close()
    server.stop()
    return {"speeds": found}


def plan_often(browser: Any) -> dict[str, Any]:
    """Time of plans on new maps, a few steps each, and the server's memory after every hundred."""
    from websockets.sync.client import connect
    from websockets.typing import Origin

    server, names = Watching("mining"), list(GOALS)
    address = server.address.replace("http://", "ws://") + "socket"
    held, times = [], []
    origin = Origin(server.address.rstrip("/"))
    with connect(address, origin=origin, max_size=None) as socket:
        socket.recv()
        for number in range(1, PLANS + 1):
            game = names[number % len(names)]
            began = time.monotonic()
            asked = {"world": game, "method": "structured", "seed": number, "goal": GOALS[game], "step": 0}
            socket.send(json.dumps({"type": "open", "id": number, **asked}))
            while (answer := json.loads(socket.recv(timeout=120)))["type"] not in ("task", "impossible"):
                pass
            times.append(time.monotonic() - began)
            for _ in range(3 if answer["type"] == "task" else 0):
                socket.send(json.dumps({"type": "step", "id": number}))
                socket.recv(timeout=120)
            if number % 100 == 0:
                held.append(round(server.memory(), 1))
                progress(f"{number} plans, {held[-1]} MiB")
    server.stop()
    return {"plans": PLANS, "memory": held, "plan_ms": round(1000 * statistics.median(times[SETTLED:]), 1)}


PARTS: dict[str, Callable[[Any], dict[str, Any]]] = {"first": first_frames, "frames": frame_rates, "often": plan_often}


def measure(browser: Any, parts: list[str]) -> None:
    """Measures these parts and keeps the others."""
    result = read_json(RESULT) if RESULT.exists() else {}
    result |= {"setting": setting(), "chromium": browser.version}
    for part in parts:
        load, code = round(os.getloadavg()[0], 2), provenance()["code"]
        result[part] = {"load": load, "code": code, **PARTS[part](browser)}
    write_result(RESULT, result)


def viewer_table() -> str:
    """The measurements for people."""
    result = read_json(RESULT)
    often, held = result["often"], result["often"]["memory"]

    def usual(what: str) -> str:
        games = result["first"]["games"].items()
        return ", ".join(f"{game} {statistics.median(one[what] for one in runs):.1f} s" for game, runs in games)

    rows = [
        ["first frame after the command", usual("frame"), "< 3 s"],
        ["first plan after the command", usual("plan"), ""],
        *([f"frames per second at {one['speed']} steps per second", f"{one['frames']:.0f}", "30"]
          for one in result["frames"]["speeds"]),
        [f"a plan on a new map, median of {often['plans']}", f"{often['plan_ms']:.0f} ms", ""],
        [f"memory of the server after {SETTLED} and {often['plans']} plans", f"{held[0]:.0f} and {held[-1]:.0f} MiB",
         "flat, < 500 MiB"],
    ]  # fmt: skip
    loads = ", ".join(f"{result[part]['load']:g} ({part})" for part in PARTS)
    facts = result["setting"]
    software = f"Chromium {result['chromium']}, JAX {facts['versions']['jax']}"
    where = (
        f"On {facts['cpu']}, {facts['cores']} cores; {software}. Load from other programs before each part: {loads}."
    )
    return markdown_table(["what", "measured", "target"], rows) + f"\n\n{where}"


def photograph(browser: Any, address: str, game: str, path: Path, **look: Any) -> None:
    """Takes a picture of the page in the middle of a task."""
    goal, seed, steps = PHOTOGRAPHED[game]
    context = browser.new_context(**look)
    page = context.new_page()
    page.goto(f"{address}#{urlencode({'game': game, 'method': 'structured', 'seed': seed, 'goal': goal})}")
    page.wait_for_selector("#path .planned", timeout=60_000)
    for step in range(steps):
        page.locator("body").press(".")
        page.get_by_text(f"step {step + 1} of").wait_for()
    page.wait_for_timeout(1500)  # until the page is still
    page.screenshot(path=path)
    context.close()


def take_pictures(browser: Any) -> None:
    """All games in the light theme, one in the dark, one at phone width, and a film of every game."""
    from saplan.cli import main as saplan

    server = Watching("switches")
    wide, narrow = {"viewport": {"width": 1440, "height": 900}}, {"viewport": {"width": 390, "height": 844}}
    for game in PHOTOGRAPHED:
        photograph(browser, server.address, game, PICTURES / f"watch-{game}.png", **wide)
    photograph(browser, server.address, "mining", PICTURES / "watch-dark.png", color_scheme="dark", **wide)
    photograph(browser, server.address, "switches", PICTURES / "watch-phone.png", **narrow)
    server.stop()
    for game in GOALS:
        goal, seed, _ = PHOTOGRAPHED[game]
        saplan(["render", game, "--goal", goal, "--seed", str(seed), "--out", str(PICTURES / f"film-{game}.gif")])


def main() -> None:
    """Measures or takes pictures."""
    from playwright.sync_api import sync_playwright

    parser = make_parser(__doc__)
    parser.add_argument("what", nargs="*", help="first, frames, often or pictures")
    what = parser.parse_args().what or list(PARTS)
    if not {*what} <= {*PARTS, "pictures"}:
        parser.error("name any of first, frames, often and pictures")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        if "pictures" in what:
            take_pictures(browser)
        if parts := [part for part in what if part in PARTS]:
            measure(browser, parts)
        browser.close()


if __name__ == "__main__":
    main()

"""`saplan watch` and `saplan render`."""

import importlib.util
import threading
from dataclasses import dataclass
from pathlib import Path

from saplan.cli.options import check_number, read, take_run, use_one_core, use_one_heap
from saplan.cli.worlds import named_world
from saplan.errors import InputError, unknown_name

NEEDED = ("starlette", "uvicorn", "websockets")


@dataclass(frozen=True)
class Watch:
    """Watch an agent plan and act, in the browser: set goals with the mouse; see the map, the plan and its reasons.
    NAME is a run directory, or the name of a game for its shipped agents; without it, the shipped agents of all games.
    """

    port: int | None = None
    """The port to listen on; by default 8765, or any free port if that is taken."""
    host: str = "127.0.0.1"
    """The address to listen on. By default only this machine can connect; on any other address a browser needs the
    token in the printed URL."""
    no_browser: bool = False
    """Print the address without opening a browser."""
    goal: str = ""
    """The first goal."""
    seed: int = 0
    """Seed of the first map."""
    method: str = ""
    """The first method."""
    rules: tuple[str, ...] = ()
    """Other rules than those of the training, such as fewest=6 most=8 maps.largest=20."""
    world: str | None = None
    """The world of a run that is not in one of our games, as `my_world.py:name`; the file is run."""


def watch_command(arguments: list[str]) -> None:
    """`saplan watch [NAME]`."""
    name, rest = (arguments[0], arguments[1:]) if arguments and not arguments[0].startswith("-") else (None, arguments)
    options = read(Watch, "watch [NAME]", rest)
    check_number("--seed", options.seed)
    if options.port is not None and not 0 <= options.port <= 65535:
        raise InputError(f"--port must lie in 0..65535, got {options.port}")
    if missing := [package for package in NEEDED if importlib.util.find_spec(package) is None]:
        clone = "in the clone `pip install -e '.[viewer]'`"
        raise InputError(f"the page needs {', '.join(missing)}: {clone}, or pip install {' '.join(missing)}")

    use_one_core()
    use_one_heap()

    from saplan.goals import parse_goal
    from saplan.viewer.protocol import Beginning
    from saplan.viewer.server import serve
    from saplan.viewer.worlds import Worlds

    worlds = Worlds(name, named_world(options.world), options.rules)
    first = worlds.first
    if options.method and options.method not in first.methods:
        raise unknown_name("method", options.method, first.methods)
    if options.goal:
        parse_goal(first.game.space, options.goal)
    begin = Beginning(options.method, options.seed, options.goal)
    # The agent and the modules of plans are loaded while the browser starts.
    threading.Thread(target=worlds.agent, args=(first.name, options.method or first.methods[0]), daemon=True).start()
    serve(worlds, options.host, options.port, begin, not options.no_browser)


@dataclass(frozen=True)
class Render:
    """Draw an agent carrying out a task: a .gif or .mp4 film, or a .png sheet. RUN is a run directory, or the name of a
    game for its shipped agent.
    """

    goal: str
    """The goal, as "red=2 blue=1", "m1=5.2±0.5" or "red>=2"; attributes not named are free."""
    out: Path
    """The file to write, in the format of its suffix: .gif, .mp4 (needs the extra `film`) or .png."""
    seed: int = 0
    """Seed of the map."""
    method: str | None = None
    """Require this method; `oracle` goes with the name of a game, not with a run."""


def render_command(arguments: list[str]) -> None:
    """`saplan render RUN --goal TEXT --out FILE`."""
    run, rest = take_run("render", arguments)
    options = read(Render, "render RUN", rest)
    check_number("--seed", options.seed)

    use_one_core()

    from saplan.interpreter.program import without_compiling
    from saplan.render.film import check_format
    from saplan.render.film import render as render_film
    from saplan.training.progress import waiting
    from saplan.training.store import open_agent

    check_format(options.out)
    agent = open_agent(run, options.method)[0]
    title = " ".join([agent.game.name, options.method or ""]).strip()
    with waiting("planning") as say, without_compiling():
        show = lambda step, budget: say(f"drawing step {step} of at most {budget}")  # noqa: E731
        end = render_film(agent, title, options.goal, options.seed, options.out, show)
    words = f"goal reached in {end.step} steps" if end.reached else f"goal not reached within {end.step} steps"
    print(f"{options.out}: {words}")

"""`saplan doctor`."""

from collections.abc import Iterator
from dataclasses import dataclass

from saplan.cli.options import read_options
from saplan.errors import InputError

HEALTHY = "all is well"


@dataclass(frozen=True)
class Doctor:
    """Check that this installation works: versions, devices, games, shipped agents. Exit code 1 if it does not."""


def doctor_command(arguments: list[str]) -> None:
    """`saplan doctor`."""
    read_options(Doctor, "doctor", arguments)
    line = ""
    for line in health_report():
        print(line, flush=True)
    if line != HEALTHY:
        raise SystemExit(1)


def health_report() -> Iterator[str]:
    """Lines about the installation; the last is `HEALTHY` or counts the problems."""
    import platform
    import time

    import jax

    from saplan.games import GAMES
    from saplan.training.store import find_agent, load_agent

    yield f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    for name in ("saplan", "jax", "equinox", "optax", "numpy", "scipy", "gymnasium"):
        yield f"{name} {_version(name)}"
    yield "devices: " + ", ".join(str(device) for device in jax.devices())
    problems = 0
    for name, rules in GAMES.items():
        began, game = time.monotonic(), rules()
        inside = bool(game.space.contains(game.attributes(jax.jit(game.reset)(jax.random.key(0)))))
        problems += not inside
        yield f"game {name}: {'plays' if inside else 'BROKEN'} ({time.monotonic() - began:.1f} s)"
        try:
            _, config = load_agent(find_agent(name))
            yield f"agent {name}: loads, trained {config.steps / 1e6:g} M steps with seed {config.seed}"
        except InputError as error:
            problems += 1
            yield f"agent {name}: {error}"
    yield f"{problems} problem(s) found" if problems else HEALTHY


def _version(name: str) -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"

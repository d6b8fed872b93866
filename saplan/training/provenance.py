"""Provenance of a result: the code, the machine, the versions and the command that produced it."""

import functools
import hashlib
import importlib.metadata
import os
import platform
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jax

from saplan.games import GAMES
from saplan.methods.registry import find_method
from saplan.rl.settings import Settings
from saplan.training.config import ATTRIBUTES, RunConfig

PACKAGE = Path(__file__).parent.parent
COMMIT = "SAPLAN_COMMIT"
"""Environment variable that names the commit of a copy, as in a container; it takes precedence over git."""
SHORT = 12
"""Digits of a hash that are recorded."""


@functools.cache
def code() -> dict[str, Any]:
    """Version, commit (with `+` if the package was edited since) and a hash of all source files of the package."""
    return {"version": _version(), "commit": os.environ.get(COMMIT) or _commit(), "source": source_hash()}


def _version() -> str | None:
    """The installed version, or that of the checkout around a package that is not installed."""
    project = PACKAGE.parent / "pyproject.toml"
    try:
        return importlib.metadata.version("saplan")
    except importlib.metadata.PackageNotFoundError:
        return str(tomllib.loads(project.read_text("utf-8"))["project"]["version"]) if project.exists() else None


def source_hash() -> str:
    """SHA-256 over the Python files of the package, which identifies the code also without git."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:SHORT]


def _commit() -> str | None:
    head = _git("rev-parse", f"--short={SHORT}", "HEAD")
    if head is None or not (PACKAGE.parent / ".git").exists():
        return None
    return head + ("+" if _git("status", "--porcelain", "--", str(PACKAGE)) else "")


def _git(*words: str) -> str | None:
    command = ["git", "-C", str(PACKAGE), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def hardware() -> str:
    """The device that this program computes on."""
    device = jax.devices()[0]
    return f"{os.cpu_count()} CPU cores" if device.platform == "cpu" else f"one {device.device_kind}"


def versions(*packages: str) -> dict[str, str]:
    """The versions of Python, JAX and further packages."""
    further = {name: importlib.metadata.version(name) for name in packages}
    return {"python": platform.python_version(), "jax": jax.__version__, **further}


def provenance(*packages: str) -> dict[str, Any]:
    """Code, hardware and versions, for a result file."""
    return {"code": code(), "hardware": hardware(), "versions": versions(*packages)}


def command(config: RunConfig) -> str:
    """The command line that repeats a training (rules other than the defaults are in the manifest)."""
    words = [f"saplan train {config.game.name} --steps {config.steps} --seed {config.seed}"]
    if config.game.name not in GAMES:
        words = [f"saplan.train(WORLD, {config.steps}, {config.seed}), where WORLD is {config.game.name}, and settings"]
    if config.game.misread:
        words.append(f"--attributes fitted:{ATTRIBUTES}")
    if config.method != "structured":
        words.append(f"--method {config.method}")
    settings_for = find_method(config.method).settings_for
    usual, paper = settings_for(config.game, False), settings_for(config.game, True)
    if len(differences(config.settings, paper)) < len(differences(config.settings, usual)):
        words.append("--paper")
        usual = paper
    for name, value in differences(config.settings, usual).items():
        option = name.replace("_", "-")
        words.append(
            (f"--{option}" if value else f"--no-{option}") if isinstance(value, bool) else f"--{option} {value}"
        )
    return " ".join(words)


def differences(settings: Settings, usual: Settings) -> dict[str, Any]:
    """The settings that differ from the usual ones."""
    return {name: value for name, value in vars(settings).items() if value != getattr(usual, name)}

"""Which code made a result, on which machine: what every result file names."""

import functools
import hashlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import jax

PACKAGE = Path(__file__).parent.parent
COMMIT = "SAPLAN_COMMIT"
"""Environment variable that names the commit where the package is not in a git checkout, as in a container."""
SHORT = 12
"""Digits of a hash that are written down."""


@functools.cache
def code() -> dict[str, Any]:
    """Version, commit (with `+` if the package was edited since) and a hash of all source files of the package."""
    try:
        version = importlib.metadata.version("saplan")
    except importlib.metadata.PackageNotFoundError:
        version = None
    return {"version": version, "commit": _commit(), "source": source_hash()}


def source_hash() -> str:
    """SHA-256 over the Python files of the package, which tells codes apart also where there is no git."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:SHORT]


def _commit() -> str | None:
    head = _git("rev-parse", f"--short={SHORT}", "HEAD")
    if head is None or not (PACKAGE.parent / ".git").exists():
        return os.environ.get(COMMIT) or None
    return head + ("+" if _git("status", "--porcelain", "--", str(PACKAGE)) else "")


def _git(*words: str) -> str | None:
    command = ["git", "-C", str(PACKAGE), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def hardware() -> str:
    """What this program computes on."""
    device = jax.devices()[0]
    return f"{os.cpu_count()} CPU cores" if device.platform == "cpu" else f"one {device.device_kind}"


def versions(*packages: str) -> dict[str, str]:
    """The versions that results depend on, those of further packages included."""
    further = {name: importlib.metadata.version(name) for name in packages}
    return {"python": platform.python_version(), "jax": jax.__version__, **further}


def provenance(*packages: str) -> dict[str, Any]:
    """All of it, for a result file."""
    return {"code": code(), "hardware": hardware(), "versions": versions(*packages)}

"""What all benchmarks share: which software and machine it was, how progress and tables are printed."""

import importlib
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

from saplan.training.provenance import code

PACKAGES = (
    "saplan",
    "jax",
    "equinox",
    "optax",
    "xminigrid",
    "navix",
    "minigrid",
    "gymnasium",
    "stable-baselines3",
    "torch",
)


def peer(module: str) -> ModuleType | None:
    """A peer's module, or None after saying in one line that it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        progress(f"{module} is missing, skipped ({error}); to install: pip install -e '.[peers]'")
        return None


def progress(line: str) -> None:
    """Says what is going on, beside the results and not among them."""
    print(line, file=sys.stderr, flush=True)


def setting() -> dict[str, Any]:
    """The machine and the versions of everything that is measured."""
    device = jax.devices()[0]
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "cpu": cpu_name(),
        "cores": cores(),
        "load": round(os.getloadavg()[0], 2),
        "device": f"{device.platform} ({device.device_kind})",
        "versions": versions,
        "code": code(),
    }


def describe(facts: dict[str, Any]) -> str:
    """The setting as text, with a warning if the machine is not idle."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    machine = f"{facts['cpu']}, {facts['cores']} cores, load {facts['load']} at the start, JAX on {facts['device']}"
    busy = (
        "\nOther programs are running: rates are too low, shares of the limit mean nothing, only ratios hold roughly."
    )
    return f"{machine}\n{versions}" + (busy if facts["load"] > facts["cores"] / 2 else "")


def cpu_name() -> str:
    """The processor as the operating system names it."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        names = [line.split(":", 1)[1].strip() for line in listing.read_text().splitlines() if "model name" in line]
        if names:
            return names[0]
    return platform.processor() or platform.machine()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Plain text in columns: the first to the left, the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]

    def written(line: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join([first, *others]).rstrip()

    return "\n".join([written(head), "  ".join("-" * w for w in widths), *map(written, rows)])


def quantity(value: float) -> str:
    """A rate with three digits: 8.12 k, 4.50 M, 225 G."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:#.3g}".rstrip(".") + unit
    return f"{value:#.3g}".rstrip(".")


def save(path: Path, result: dict[str, Any]) -> None:
    """Writes a result as JSON."""
    path.write_text(json.dumps(result, indent=2) + "\n")

"""The tables of docs/speed.md about first answers, the parts of an update, its growth, gradient steps and host worlds.

`results.py` puts them into the document where their result files exist.
"""

from collections.abc import Callable
from typing import Any

from common import RESULTS, quantity
from speed_tables import measured_on, read_benchmark

from saplan.experiments.tables import code_of, markdown_table

PARTS = {"update-parts-before": "before", "update-parts": "now"}


def latency_table() -> str:
    """Seconds until a person sees something, and ratios to `import jax`."""
    file = read_benchmark("latency")
    seconds, ratios = file["seconds"], file["ratios"]
    rows = []
    for name in (name for name in seconds if name.startswith(("plan ", "watch "))):
        warm = seconds.get(f"warm {name}", {}).get("plan")
        steps = seconds[name].get("first steps")
        memory = seconds[name].get("memory MiB")
        rows.append([
            f"`saplan {name}`", f"{seconds[name]['plan']:.2f} s", f"{ratios[name]['plan']:.1f}",
            "" if steps is None else f"{steps:.2f} s", "" if warm is None else f"{warm:.2f} s",
            "" if memory is None else f"{memory:.0f} MiB",
        ])  # fmt: skip
    header = ["command, cold", "plan shown after", "times `import jax`", "first steps after", "a second plan",
              "memory of the server"]  # fmt: skip
    machine = f"{file['cpu']}, {file['cores']} cores, load {file['load']} at the start"
    return markdown_table(header, rows) + f"\n\n`results/latency.json`: code {code_of(file)}, {machine}."


def threads_table() -> str:
    """Steps per second of training with one thread and with several."""
    entries = read_benchmark("benchmark-threads")["entries"]
    rows = [
        [
            entry["name"],
            quantity(entry["median"]),
            f"{quantity(min(entry['rates']))} to {quantity(max(entry['rates']))}",
        ]
        for entry in entries
    ]
    return markdown_table(["what", "steps/s", "lowest to highest"], rows) + measured_on("benchmark-threads")


def parts_table() -> str:
    """Milliseconds of every part of an update on one core, before and now."""
    cells: dict[str, dict[tuple[str, str], float]] = {}
    games: list[str] = []
    for name, when in PARTS.items():
        for entry in read_benchmark(name)["entries"]:
            games += [entry["game"]] if entry["game"] not in games else []
            cells.setdefault(entry["part"], {})[entry["game"], when] = entry["seconds"]
    columns = [(game, when) for game in games for when in PARTS.values()]
    rows = [
        [part, *(f"{1000 * found[column]:.1f} ms" if column in found else "" for column in columns)]
        for part, found in cells.items()
    ]
    header = ["part", *(f"{game}, {when}" for game, when in columns)]
    return markdown_table(header, rows) + "".join(measured_on(name) for name in PARTS)


def growth_table() -> str:
    """Time and memory of an update by its sizes."""
    rows = [
        [entry["what"], f"{entry['attributes'] if entry['what'] == 'attributes' else entry['number']:,}",
         f"{1000 * entry['seconds']:.0f} ms", f"{1e6 * entry['seconds_per_step']:.1f} µs",
         f"{entry['bytes'] / 1e6:.0f} MB"]
        for entry in read_benchmark("update-growth")["entries"]
    ]  # fmt: skip
    header = ["number of", "", "an update", "per environment step", "memory of the program"]
    return markdown_table(header, rows) + measured_on("update-growth")


def gradient_table() -> str:
    """Success by the number of gradient steps."""
    file = read_benchmark("gradient-steps")
    cells: dict[str, dict[str, dict[str, Any]]] = {}
    for row in file["rows"]:
        cells.setdefault(row["variant"], {})[row["game"]] = row
    games = list(dict.fromkeys(row["game"] for row in file["rows"]))
    steps = {row["game"]: row["steps"] for row in file["rows"]}
    rows = []
    for variant, found in cells.items():
        shape, rate = variant.split("@")
        each = [
            f"**{found[game]['mean']:.1%}**: " + ", ".join(f"{x:.1%}" for x in found[game]["success"])
            if game in found else ""
            for game in games
        ]  # fmt: skip
        rows.append([shape.replace("x", " × "), rate, *each])
    header = ["passes × minibatches", "step size", *(f"{game}, {steps[game] / 1e6:g} M steps" for game in games)]
    tasks = f" {file['tasks']:,} tasks of seed {file['task_seed']} for each agent."
    return markdown_table(header, rows) + measured_on("gradient-steps") + tasks


def host_table() -> str:
    """Steps per second of environments on the host."""
    file = read_benchmark("benchmark-host-worlds")
    costs = list(dict.fromkeys(entry["microseconds"] for entry in file["entries"]))
    rows = []
    for name in dict.fromkeys(entry["name"] for entry in file["entries"]):
        mine = {entry["microseconds"]: entry for entry in file["entries"] if entry["name"] == name}
        shown = [
            f"{quantity(mine[cost]['median'])} ({mine[cost]['median'] / mine[cost]['limit']:.0%})" for cost in costs
        ]
        rows.append([name, *shown])
    header = ["how", *(f"{cost:g} µs per step" for cost in costs)]
    return markdown_table(header, rows) + measured_on("benchmark-host-worlds", "gymnasium")


SPEED: tuple[tuple[str, tuple[str, ...], Callable[[], str]], ...] = (
    ("first answers", ("latency",), latency_table),
    ("parts of an update", tuple(PARTS), parts_table),
    ("threads", ("benchmark-threads",), threads_table),
    ("growth", ("update-growth",), growth_table),
    ("gradient steps", ("gradient-steps",), gradient_table),
    ("host worlds", ("benchmark-host-worlds",), host_table),
)
"""Name of a table, the result files that it needs, and its function."""


def speed_tables() -> list[tuple[str, Callable[[], str]]]:
    """The tables whose result files exist."""
    return [(name, make) for name, files, make in SPEED if all((RESULTS / f"{file}.json").exists() for file in files)]

"""Tables of docs/ogbench.md from the files in results/ogbench/, ours beside published figures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from common import RESULTS

from saplan.experiments.tables import code_of, markdown_table
from saplan.storage.json_data import read_json

SIZES = ("3x3", "4x4", "4x5", "4x6")
PUBLISHED: dict[str, dict[str, int]] = {
    "GCBC": {"3x3": 2, "4x4": 0, "4x5": 0, "4x6": 0, "scene": 5},
    "HIQL": {"3x3": 12, "4x4": 7, "4x5": 4, "4x6": 3, "scene": 38},
    "GCIQL": {"3x3": 95, "4x4": 26, "4x5": 14, "4x6": 12, "scene": 51},
    "CTA": {"3x3": 94, "4x4": 84, "4x5": 17, "4x6": 12, "scene": 90},
}
"""Success in per cent; docs/ogbench.md names the sources."""


def runs_of(size: str, variant: str = "") -> list[dict[str, Any]]:
    """The result files of one board, by seed."""
    paths = sorted((RESULTS / "ogbench").glob(f"{size}{variant}-[0-9]*.json"))
    return [read_json(path) for path in paths]


def parts_of(run: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a training: one, and those before it that were interrupted."""
    training = run["training"]
    return [*training.get("earlier", []), {"cores": run["cores"], **(training if "code" in training else run)}]


def cores_of(runs: Sequence[dict[str, Any]]) -> str:
    """One line below a table: the cores that each run trained on."""
    cores = sorted({part.get("cores", run["cores"]) for run in runs for part in parts_of(run)})
    return f"\n\nCores per run: {' or '.join(map(str, cores))}." if runs else ""


def codes_of(runs: Sequence[dict[str, Any]]) -> str:
    """The commits that trained these agents."""
    return ", ".join(sorted({code_of(part) for run in runs for part in parts_of(run)}))


def puzzle_success() -> str:
    """Success over the five tasks of every board, beside published figures."""
    rows, every = [], []
    for size in SIZES:
        runs = runs_of(size)
        every += runs
        each = [run["success"] for run in runs if "success" in run]
        ours = f"**{np.mean(each):.1%}** ({', '.join(f'{value:.1%}' for value in each)})" if each else "not measured"
        moves, minutes = (np.mean([run["training"][name] for run in runs]) for name in ("moves", "seconds"))
        others = [f"{by[size]} %" for by in PUBLISHED.values()]
        pressed = ", ".join(f"{run['training']['last_attempts']:.0%}" for run in runs)
        rows.append([size, ours, pressed, f"{moves / 1000:.0f} k", f"{minutes / 60:.0f}", codes_of(runs), *others])
    header = ["board", "ours (by seed)", "last attempts that pressed the right button", "moves", "minutes of training",
              "code", *PUBLISHED]  # fmt: skip
    return markdown_table(header, rows) + cores_of(every)


def puzzle_details() -> str:
    """The learnt changes against the rule, random goals, and random states that cannot be reached."""
    rows = []
    for size in SIZES:
        for run in runs_of(size):
            changes, others = run["changes"], run.get("other_goals")
            asked = run.get("random_states")
            planned = f"{asked['planned']} of {asked['reachable']}" if asked else ""
            refused = f"{asked['certified']} of {asked['unreachable']}" if asked and asked["unreachable"] else ""
            rows.append(
                [size, str(run["seed"]), f"{changes['precision']:.3f}", f"{changes['recall']:.3f}",
                 f"{changes['seen'] - changes['planned']}", f"{others['success']:.1%}" if others else "", planned,
                 refused]
            )  # fmt: skip
    header = ["board", "seed", "precision", "recall", "changes left out of plans", "200 random reachable goals",
              "reachable states with a plan", "unreachable states refused with a certificate"]  # fmt: skip
    return markdown_table(header, rows)


def puzzle_spaces() -> str:
    """What `--space auto` found."""
    rows = []
    for size in SIZES:
        for run in sorted(runs_of(size, "-auto"), key=lambda run: run["space"]["moves"]):
            found = run["space"]
            blocks = [part.split("∈") for part in found["found"].split(" × ")]
            other = [f"{name} in {block}" for name, block in blocks if block != "ℤ/2"]
            right = f"{len(blocks) - len(other)} of {len(blocks)}"
            rows.append([size, str(run["seed"]), f"{found['moves']:,}", right, ", ".join(other), code_of(run)])
    return markdown_table(["board", "seed", "random moves", "buttons in ℤ/2", "others", "code"], rows)

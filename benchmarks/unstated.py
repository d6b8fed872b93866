"""Numbers that the paper does not state: success of its variant with two other values of each, on one seed.

    python benchmarks/unstated.py --json results/unstated.json

Tasks of seed 777, which tuning uses too, not the test tasks. It continues an existing file.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from common import RESULTS, make_parser

from saplan.experiments.paper import PAPER_STEPS
from saplan.experiments.result_file import write_result
from saplan.experiments.tables import code_of, markdown_table
from saplan.games import make_game
from saplan.methods.agent import PAPER_PLANNER
from saplan.methods.registry import find_method
from saplan.storage.json_data import read_json
from saplan.training.evaluate import evaluate
from saplan.training.train import train

TUNING_SEED = 777
UNSTATED = RESULTS / "unstated.json"
METHODS = ("structured", "unstructured")


@dataclass(frozen=True)
class Probe:
    """One changed number."""

    what: str
    game: str
    rules: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def probes() -> list[Probe]:
    """As it is, then two values of each number."""
    found = [Probe("as it is", game) for game in PAPER_STEPS]
    found += [Probe(f"objects of a kind: 1 to {n}", "switches", {"most": n}) for n in (2, 8)]
    found += [Probe(f"objects of a kind: 1 to {n}", "exchange", {"most": n}) for n in (4, 9)]
    found += [Probe(f"goals: at most {n} changes away", "exchange", {"farthest": n}) for n in (8, 15)]
    found += [Probe(f"goals: within {x} of the amounts", "mining", {"tolerance": x}) for x in (0.25, 1.0)]
    for game in PAPER_STEPS:
        found += [Probe(f"M_max = {n}", game, settings={"attempt_steps": n}) for n in (20, 80)]
        found += [Probe(f"s_0 = {x}", game, settings={"uniform": x}) for x in (0.2, 0.8)]
    return found


def measure(probe: Probe, method: str, steps: int, lanes: int, tasks: int) -> float:
    """Success of the paper's variant with the changed number."""
    game = make_game(probe.game, **probe.rules)
    settings = find_method(method).settings_for(game, True)
    known = {name: value for name, value in probe.settings.items() if hasattr(settings, name)}
    settings = replace(settings, lanes=lanes, minibatches=settings.minibatches * max(1, lanes // 512), **known)
    agent = train(game, steps, 0, settings, eval_points=0, progress=False, method=method)
    planner = replace(PAPER_PLANNER, attempt_steps=settings.attempt_steps)
    return float(np.mean(evaluate(agent, tasks, TUNING_SEED, planning=planner).success))


def unstated_table() -> str:
    """Success with other values, one column per game and method."""
    result = read_json(UNSTATED)
    rows = result["rows"]
    columns = list(dict.fromkeys((row["game"], row["method"]) for row in rows))
    lines = []
    for what in dict.fromkeys(row["what"] for row in rows):
        at = {(row["game"], row["method"]): f"{row['success']:.1%}" for row in rows if row["what"] == what}
        lines.append([what, *(at.get(column, "") for column in columns)])
    header = ["number", *(f"{game}, {method}" for game, method in columns)]
    about = f"{rows[0]['steps'] / 1e6:g} M steps, one seed, {rows[0]['tasks']} tasks of seed {TUNING_SEED}"
    return markdown_table(header, lines) + f"\n\nCode {code_of(result)}, {result['hardware']}, {about}."


def main() -> None:
    """Computes the missing rows."""
    parser = make_parser(__doc__)
    parser.add_argument("--games", nargs="*", default=list(PAPER_STEPS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--steps", type=int, default=12_000_000)
    parser.add_argument("--lanes", type=int, default=1024)
    parser.add_argument("--tasks", type=int, default=300)
    options = parser.parse_args()
    path = options.json or UNSTATED
    rows = read_json(path)["rows"] if path.exists() else []
    for probe in probes():
        for method in options.methods:
            wanted = {"what": probe.what, "game": probe.game, "method": method}
            done = any(all(row[name] == value for name, value in wanted.items()) for row in rows)
            unchanged = "uniform" in probe.settings and method != "structured"  # only its proposals have s_0
            if done or unchanged or probe.game not in options.games:
                continue
            success = measure(probe, method, options.steps, options.lanes, options.tasks)
            about = {"steps": options.steps, "lanes": options.lanes, "tasks": options.tasks}
            rows.append({**wanted, **about, "success": success})
            print(rows[-1], flush=True)
            write_result(path, {"rows": rows})


if __name__ == "__main__":
    main()

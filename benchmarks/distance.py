"""Success on exchange against how far goals lie: the law that goals are drawn by decides much of a figure.

    python benchmarks/distance.py RUN --json results/distance-unstructured.json

A goal's distance is the length of the shortest path of changes to it. Tasks draw a distance uniformly up to `farthest`.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from saplan.storage.json_data import write_json
from saplan.training.evaluate import evaluate
from saplan.training.provenance import provenance
from saplan.training.store import open_agent


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a run directory of exchange, or `exchange` for the shipped agent")
    parser.add_argument("--farthest", nargs="+", type=int, default=[2, 3, 5, 8, 12, 30])
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    agent, config, _ = open_agent(options.run)
    rows = []
    for farthest in options.farthest:
        nearer = replace(agent, game=replace(agent.game, farthest=farthest))
        success = float(evaluate(nearer, options.tasks).success.mean())
        rows.append({"farthest": farthest, "success": success})
        print(f"goals up to {farthest} changes away: {success:.1%}", flush=True)
    if options.json is not None and config is not None:
        told = {"config": config.to_json(), "tasks": options.tasks, "by_distance": rows, **provenance()}
        write_json(options.json, told)


if __name__ == "__main__":
    main()

"""Whether the same seed twice, and chunks of other sizes, give the same arrays, bit by bit.

    python benchmarks/repeatability.py --json results/repeatability.json

Trains in one process with the default settings, compares everything a checkpoint holds, and says how far apart it is.
On a CPU the tests demand that nothing differs; this is for other devices.
"""

import argparse
import platform
from pathlib import Path
from typing import Any

import jax
import numpy as np

from saplan.storage.arrays import to_arrays
from saplan.storage.json_data import write_json
from saplan.training.config import run_config
from saplan.training.loop import Loop
from saplan.training.provenance import provenance

CHUNKS = 16, 16, 1, 64
"""Updates per program; the first is what the others are compared with."""


def trained(game: str, updates: int, chunk: int) -> dict[str, np.ndarray]:
    """Everything a run consists of when it ends."""
    loop = Loop([run_config(game, updates * 8192, 0, None, "structured", eval_points=0)], chunk)
    while loop.done < loop.updates:
        loop.chunk()
    return {name: np.array(leaf) for name, leaf in to_arrays(loop.learner).items()}


def compare(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict[str, Any]:
    """How many arrays differ, and the largest difference of a parameter of the policy."""
    differ = [name for name in one if one[name].tobytes() != other[name].tobytes()]
    policy = [name for name in differ if name.startswith(".policy.")]
    far = max((float(np.max(np.abs(one[name] - other[name]))) for name in policy), default=0.0)
    return {"arrays": len(one), "differ": len(differ), "largest_policy_difference": far}


def main() -> None:
    """Compares on every game, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="*", default=["switches", "mining"])
    parser.add_argument("--updates", type=int, default=64)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    told: dict[str, Any] = {"rows": [], **provenance()}
    told["versions"] = {"python": platform.python_version(), "jax": jax.__version__}
    for game in options.games:
        usual = trained(game, options.updates, CHUNKS[0])
        for chunk in CHUNKS[1:]:
            compared = compare(usual, trained(game, options.updates, chunk))
            told["rows"].append({"game": game, "updates": options.updates, "chunk": chunk, **compared})
            differ, arrays = compared["differ"], compared["arrays"]
            print(f"{game}: chunks of {CHUNKS[0]} and {chunk}: {differ} of {arrays} arrays differ", flush=True)
            if options.json:
                write_json(options.json, told)


if __name__ == "__main__":
    main()

"""Long and repeated trainings, and the table of docs/reliability.md.

    python benchmarks/reliability.py repeat --games switches --json results/repeatability.json
    python benchmarks/reliability.py soak --hours 2 --json results/soak.json

`repeat` trains in one process with the same seed and chunks of several sizes, and compares all arrays of a checkpoint
bit by bit. On a CPU the tests require that they are equal; this is for other devices. `soak` trains for hours in one
process, with checkpoints and evaluations, and records how its memory grows and what is compiled after the warm-up.
`make reliability` measures the rest of the table.
"""

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import jax.monitoring
import numpy as np
from common import RESULTS, make_parser

from saplan.errors import StoppedError
from saplan.experiments.result_file import write_result
from saplan.experiments.tables import code_of, markdown_table
from saplan.storage.arrays import to_arrays
from saplan.storage.json_data import read_json
from saplan.training.config import run_config
from saplan.training.loop import Loop
from saplan.training.progress import Progress
from saplan.training.train import train

CHUNKS = 16, 16, 1, 64
"""Updates per program; the others are compared with the first."""
COMPILED = "/jax/core/compile/backend_compile_duration"


def trained_arrays(game: str, updates: int, chunk: int) -> dict[str, np.ndarray]:
    """All arrays of a learner at the end of a run."""
    loop = Loop([run_config(game, updates * 8192, 0, None, "structured", eval_points=0)], chunk)
    while loop.done < loop.updates:
        loop.chunk()
    return {name: np.array(leaf) for name, leaf in to_arrays(loop.learner).items()}


def compare(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict[str, Any]:
    """The number of arrays that differ, and the largest difference of a policy parameter."""
    differ = [name for name in one if one[name].tobytes() != other[name].tobytes()]
    policy = [name for name in differ if name.startswith(".policy.")]
    far = max((float(np.max(np.abs(one[name] - other[name]))) for name in policy), default=0.0)
    return {"arrays": len(one), "differ": len(differ), "largest_policy_difference": far}


def repeat(options: argparse.Namespace) -> None:
    """Compares on every game, prints and writes."""
    rows: list[dict[str, Any]] = []
    for game in options.games:
        usual = trained_arrays(game, options.updates, CHUNKS[0])
        for chunk in CHUNKS[1:]:
            compared = compare(usual, trained_arrays(game, options.updates, chunk))
            rows.append({"game": game, "updates": options.updates, "chunk": chunk, **compared})
            print(f"{game}: chunks of {CHUNKS[0]} and {chunk}: {compared['differ']} of {compared['arrays']} arrays "
                  "differ", flush=True)  # fmt: skip
            write_result(options.json, {"rows": rows})


def resident() -> int:
    """Resident memory of this process in bytes (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Monitor:
    """Records memory and compilations after every chunk, and stops training by SIGTERM when time is up."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Starts the clock."""
        self.options, self.began, self.said = options, time.monotonic(), 0.0
        self.compiled: list[float] = []
        """Seconds after the start at which a program was compiled."""
        self.rows: list[tuple[float, int, int]] = []
        """(seconds, steps, resident bytes)."""
        jax.monitoring.register_event_duration_secs_listener(self._event)

    def _event(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == COMPILED:
            self.compiled.append(time.monotonic() - self.began)

    def __call__(self, progress: Progress) -> None:
        """After a chunk."""
        now = time.monotonic() - self.began
        self.rows.append((now, progress.steps, resident()))
        if now - self.said > 60:
            self.said = now
            print(f"{now / 60:.0f} min  {progress.line()}  {resident() / 2**20:.0f} MiB", flush=True)
            write_result(self.options.json, self.result())
        if now > self.options.hours * 3600:
            os.kill(os.getpid(), signal.SIGTERM)

    def result(self) -> dict[str, Any]:
        """The result so far. Memory is the median of the first tenth after the warm-up, and of the last tenth."""
        warm = self.options.warm_up * 60
        late = [row for row in self.rows if row[0] >= warm]
        tenth = max(1, len(late) // 10)
        first, last = (
            sorted(row[2] for row in part)[len(part) // 2] if part else 0 for part in (late[:tenth], late[-tenth:])
        )
        times = range(0, int(self.rows[-1][0]), 300)
        return {
            "hours": self.rows[-1][0] / 3600,
            "steps": self.rows[-1][1],
            "warm_up_minutes": self.options.warm_up,
            "resident_after_warm_up": first,
            "resident_at_the_end": last,
            "growth": last / first - 1 if first else None,
            "compiled_in_warm_up": sum(at < warm for at in self.compiled),
            "compiled_after_warm_up": sum(at >= warm for at in self.compiled),
            "each_five_minutes": [next(row[2] for row in self.rows if row[0] >= at) for at in times],
        }


def soak(options: argparse.Namespace) -> None:
    """Trains until time is up, prints and writes."""
    monitor = Monitor(options)
    with tempfile.TemporaryDirectory() as folder:
        try:
            train("switches", options.steps, out=Path(folder) / "run", eval_points=10, progress=monitor)
        except StoppedError as stop:
            print(stop)
    write_result(options.json, monitor.result())
    print(monitor.result())


ROWS = {
    "killed runs that end": "SIGKILL at random moments, a third of the runs inside a save, then resumed: at the end "
    "agent, learner and metrics equal those of an uninterrupted run bit by bit",
    "damaged checkpoints": "one flipped bit, truncation, deletion, appended bytes at random places of a checkpoint: "
    "detected, named, and the previous one used",
    "runs that were cut off": "runs of every game and method, and in worlds of one's own, interrupted and resumed: at "
    "the end equal to uninterrupted ones bit by bit",
    "hostile files": "hostile files: refused in one line, nothing executed, nothing written outside, memory bounded",
    "malformed": "malformed command lines, goals, configurations, run directories: exit code 2, at most 3 lines",
    "NaN or infinity in a learner": "NaN or infinity anywhere in the learner of any case: stopped within one update",
    "attributes that are": "attributes of a game that are NaN or infinite: the same",
    "stops training": "rewards, losses and gradients that are NaN or infinite: the same",
    "full disk": "disk full at every file operation of a save, once or for good: the last good checkpoint is intact",
    "adversarial goals": "adversarial goals (unreachable, counts of 10^6, dense ℝ): answered within the bounds",
    "same seed twice": "same seed twice, and chunks of 1, 2 and 64 updates: arrays equal bit by bit on a CPU",
}
"""Beginning or ending of a figure's name → its row for people. The first match counts."""


def reliability_table() -> str:
    """The table of docs/reliability.md: one line per row with its figures added up, and the code behind it."""
    figures, repeated, soaked = (
        read_json(RESULTS / f"{name}.json") for name in ("reliability", "repeatability", "soak")
    )
    sums: dict[str, list[int]] = {row: [0, 0] for row in ROWS.values()}
    remarks: dict[str, str] = {}
    for name, figure in figures["figures"].items():
        row = next(row for key, row in ROWS.items() if name.startswith(key) or name.endswith(key))
        sums[row][0] += figure["good"]
        sums[row][1] += figure["tried"]
        more = {key: value for key, value in figure.items() if key not in ("good", "tried", "commit")}
        if more:
            remarks[row] = ", ".join(f"{key.replace('_', ' ')} {_written(value)}" for key, value in more.items())
    lines = [[row, f"{good} of {total}", remarks.get(row, "")] for row, (good, total) in sums.items() if total]
    commits = sorted({figure["commit"] for figure in figures["figures"].values()})
    made_by = [f"`reliability.json`: code {', '.join(commits)}", f"`repeatability.json`: code {code_of(repeated)}",
               f"`soak.json`: code {code_of(soaked)}"]  # fmt: skip
    table = markdown_table(["case", "passed", "remarks"], [*lines, _repeated_row(repeated), _soak_row(soaked)])
    return f"{table}\n\n{'; '.join(made_by)}."


def _repeated_row(repeated: dict[str, Any]) -> list[str]:
    rows = repeated["rows"]
    games, chunks = ", ".join(sorted({row["game"] for row in rows})), ", ".join(str(row["chunk"]) for row in rows)
    what = (
        f"same seed again, on {repeated['hardware']} (JAX {repeated['versions']['jax']}): all arrays equal those of a "
    )
    remark = f"{games}, {rows[0]['updates']} updates in chunks of {chunks}; {rows[0]['arrays']} arrays"
    return [f"{what}run in chunks of 16 bit by bit", f"{sum(not row['differ'] for row in rows)} of {len(rows)}", remark]


def _soak_row(soaked: dict[str, Any]) -> list[str]:
    what = (f"{soaked['hours']:.1f} hours of training ({soaked['steps'] / 1e6:.0f} M steps): growth of resident memory "
            f"after {soaked['warm_up_minutes']:g} minutes of warm-up")  # fmt: skip
    compiled = soaked["compiled_in_warm_up"], soaked["compiled_after_warm_up"]
    return [what, f"{soaked['growth']:+.1%}", "programs compiled in the warm-up {}, after it {}".format(*compiled)]


def _written(value: Any) -> str:
    return " / ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def main() -> None:
    """Runs the measurement that the command line names."""
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("repeat", "soak"))
    parser.add_argument("--games", nargs="*", default=["switches", "mining"], help="for repeat")
    parser.add_argument("--updates", type=int, default=64, help="for repeat")
    parser.add_argument("--hours", type=float, default=2.0, help="for soak")
    parser.add_argument("--warm-up", type=float, default=10.0, help="for soak: minutes")
    parser.add_argument("--steps", type=int, default=200_000_000, help="for soak: of the training that is stopped")
    options = parser.parse_args()
    repeat(options) if options.what == "repeat" else soak(options)


if __name__ == "__main__":
    main()

"""Hours of training in one process: how its memory grows, and what is compiled after the warm-up.

    python benchmarks/soak.py --hours 2 --json results/soak.json

Trains with the default settings, with checkpoints and looks at held-back tasks, and stops itself by SIGTERM.
"""

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path

import jax
import jax.monitoring

from saplan.errors import StoppedError
from saplan.storage.json_data import write_json
from saplan.training.progress import Progress
from saplan.training.train import train

COMPILED = "/jax/core/compile/backend_compile_duration"


def resident() -> int:
    """Bytes of memory that this process holds (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Writes down memory and compilations after every chunk, and ends training when the time is over."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Begins to count."""
        self.options, self.began, self.said = options, time.monotonic(), 0.0
        self.compiled: list[float] = []
        """Seconds after the start at which something was compiled."""
        self.rows: list[tuple[float, int, int]] = []
        """(seconds, steps, resident bytes)."""
        jax.monitoring.register_event_duration_secs_listener(self._event)

    def _event(self, event: str, duration: float, **_: object) -> None:
        if event == COMPILED:
            self.compiled.append(time.monotonic() - self.began)

    def __call__(self, progress: Progress) -> None:
        """After a chunk."""
        now = time.monotonic() - self.began
        self.rows.append((now, progress.steps, resident()))
        if now - self.said > 60:
            self.said = now
            print(f"{now / 60:.0f} min  {progress.line()}  {resident() / 2**20:.0f} MiB", flush=True)
            write_json(self.options.json, self.result())
        if now > self.options.hours * 3600:
            os.kill(os.getpid(), signal.SIGTERM)

    def result(self) -> dict[str, object]:
        """What is known so far. Memory is the median of the tenth after the warm-up, and of the last one."""
        warm = self.options.warm_up * 60
        late = [row for row in self.rows if row[0] >= warm]
        tenth = max(1, len(late) // 10)
        first, last = (
            sorted(row[2] for row in part)[len(part) // 2] if part else 0 for part in (late[:tenth], late[-tenth:])
        )
        return {
            "hours": self.rows[-1][0] / 3600,
            "steps": self.rows[-1][1],
            "warm_up_minutes": self.options.warm_up,
            "resident_after_warm_up": first,
            "resident_at_the_end": last,
            "growth": last / first - 1 if first else None,
            "compiled_in_warm_up": sum(at < warm for at in self.compiled),
            "compiled_after_warm_up": sum(at >= warm for at in self.compiled),
            "each_five_minutes": [
                next(row[2] for row in self.rows if row[0] >= at) for at in range(0, int(self.rows[-1][0]), 300)
            ],
            **provenance(),
        }  # fmt: skip


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--warm-up", type=float, default=10.0, help="minutes")
    parser.add_argument("--steps", type=int, default=200_000_000, help="of the training that is cut off")
    parser.add_argument("--json", type=Path, default=Path("results/soak.json"))
    options = parser.parse_args()
    watch = Watch(options)
    with tempfile.TemporaryDirectory() as folder:
        try:
            train("switches", options.steps, out=Path(folder) / "run", eval_points=10, progress=watch)
        except StoppedError as stop:
            print(stop)
    write_json(options.json, watch.result())
    print(options.json.read_text())


if __name__ == "__main__":
    main()

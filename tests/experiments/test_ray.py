"""A sweep on Ray whose workers are killed at random ends with every result, each computed once."""

import hashlib
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from saplan.cli import main
from saplan.experiments.sweep import EvalBudget, Sweep, Trial, run_trials
from tests.reliability.tiny import SIZES

TRIALS = [Trial("switches", "structured", seed, 64 * 300, numbers=tuple(SIZES.items())) for seed in range(12)]
BUDGET = EvalBudget(tasks=20, eval_points=1, eval_tasks=10, save_every=0.0)
KILLS = 12


def workers() -> list[int]:
    """The processes that compute trials."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes().startswith(b"ray::_compute"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


class Killer(threading.Thread):
    """Kills workers at random moments, and notes when every result appeared."""

    def __init__(self, out: Path) -> None:
        super().__init__(daemon=True)
        self.out, self.kills, self.over = out, 0, threading.Event()
        self.seen: dict[str, int] = {}

    def run(self) -> None:
        chance = random.Random(0)
        while not self.over.wait(chance.uniform(0.5, 3.0)):
            for path in self.out.glob("*.json"):
                self.seen.setdefault(path.name, path.stat().st_mtime_ns)
            victims = workers()
            if victims and self.kills < KILLS:
                os.kill(chance.choice(victims), signal.SIGKILL)
                self.kills += 1


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds Ray's workers in /proc")
def test_a_sweep_on_ray_whose_workers_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is an extra: pip install ray")
    from saplan.experiments.ray_backend import run_trials_on_ray

    root = Path(__file__).parent.parent.parent
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    sweep = Sweep(tmp_path / "sweep")
    killer = Killer(sweep.out)
    killer.start()
    began = time.monotonic()
    missing = run_trials_on_ray(sweep, TRIALS, BUDGET)
    killer.over.set()
    killer.join()
    print(f"{killer.kills} workers killed in {time.monotonic() - began:.0f} s")
    assert not missing
    assert sorted(path.stem for path in sweep.out.glob("*.json")) == sorted(trial.name for trial in TRIALS)
    assert killer.kills >= 6
    for name, written in killer.seen.items():
        assert (sweep.out / name).stat().st_mtime_ns == written, f"{name} was computed again"

    alone = Sweep(tmp_path / "alone")
    assert not run_trials(alone, TRIALS[:1], BUDGET)
    first, other = ((r.run_path(TRIALS[0]) / "agent.safetensors").read_bytes() for r in (sweep, alone))
    assert hashlib.sha256(first).digest() == hashlib.sha256(other).digest()


def test_without_ray_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    assert main(["reproduce", "--on", "ray", "--games", "switches", "--out", str(tmp_path)]) == 2
    assert "pip install ray" in capsys.readouterr().err

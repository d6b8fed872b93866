"""Trials of a sweep, one after the other."""

from pathlib import Path

import pytest

from saplan.experiments import sweep


def test_a_sweep_makes_room_before_every_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(sweep, "forget_old_programs", lambda: calls.append("room"))

    def compute(*arguments: object) -> bool:
        calls.append("trial")
        return True

    monkeypatch.setattr(sweep.Sweep, "compute", compute)
    trials = [sweep.Trial("switches", "structured", seed, 1024) for seed in range(2)]
    sweep.run_trials(sweep.Sweep(tmp_path), trials, sweep.EvalBudget())
    assert calls == ["room", "trial"] * 2

"""Trials distributed over a Ray cluster. Ray is an extra: `pip install ray`."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saplan.errors import InputError, say
from saplan.experiments.sweep import BUSY, EvalBudget, Sweep, Trial

RETRIES = 20
"""How often a job restarts after its worker died. It resumes from the last checkpoint."""


def run_trials_on_ray(sweep: Sweep, trials: Sequence[Trial], eval_budget: EvalBudget) -> list[Trial]:
    """Computes the missing results on the cluster that `ray.init` finds or starts; returns the trials still missing.

    All workers must see the same directory. A lock there claims each job, so that no trial is computed twice.
    """
    try:
        import ray
    except ImportError:
        raise InputError("--on ray needs Ray: pip install ray") from None

    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
    try:
        out = str(sweep.out.resolve())
        needs = {"num_gpus": 1} if ray.cluster_resources().get("GPU") else {"num_cpus": 1}
        options: dict[str, Any] = {"max_retries": RETRIES, "retry_exceptions": False, **needs}
        work: Any = ray.remote(**options)(_compute)
        jobs = sweep.jobs(trials, eval_budget.together)
        waiting = {work.remote(out, job, eval_budget): job for job in jobs}
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            job = waiting.pop(done)
            names = ", ".join(trial.name for trial in job)
            say(f"{len(jobs) - len(waiting)} of {len(jobs)}: {names}: {_outcome(ray, done)}")
    finally:
        if started:
            ray.shutdown()
    return sweep.missing(trials)


def _outcome(ray: Any, done: Any) -> str:
    """How a job ended, in words; the trials of a failed one stay without results."""
    try:
        return "done" if ray.get(done) else BUSY
    except ray.exceptions.RayError as error:
        return f"failed: {type(error).__name__}"


def _compute(out: str, job: list[Trial], eval_budget: EvalBudget) -> bool:
    """Runs in a worker."""
    return Sweep(Path(out)).compute(job, eval_budget, quiet=True)

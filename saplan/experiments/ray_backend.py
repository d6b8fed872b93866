"""Cells spread over a Ray cluster. Ray is an extra: `pip install ray`."""

import logging
from collections.abc import Sequence
from typing import Any

from saplan.errors import InputError
from saplan.experiments.sweep import EvalBudget, Reproduction, Trial
from saplan.training.train import log_warning

RETRIES = 20
"""How often a job is begun again after its worker has died. It goes on from its last checkpoint."""


def compute_on_ray(reproduction: Reproduction, cells: Sequence[Trial], eval_budget: EvalBudget) -> list[Trial]:
    """Computes what is missing on the cluster that `ray.init` finds or starts; returns what is missing still.

    All workers must see the same directory. Each job is claimed there by a lock, so that none is computed twice.
    """
    try:
        import ray
    except ImportError:
        raise InputError("--on ray needs Ray: pip install ray") from None

    begun = not ray.is_initialized()
    if begun:
        ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
    try:
        out = reproduction.out.resolve()
        needs = {"num_gpus": 1} if ray.cluster_resources().get("GPU") else {"num_cpus": 1}
        options: dict[str, Any] = {"max_retries": RETRIES, "retry_exceptions": False, **needs}
        work: Any = ray.remote(**options)(_compute)
        jobs = reproduction.jobs(cells, eval_budget.together)
        waiting = {work.remote(str(out), job, eval_budget): job for job in jobs}
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            job = waiting.pop(done)
            _collect(ray, done, job, len(jobs) - len(waiting), len(jobs))
    finally:
        if begun:
            ray.shutdown()
    return [cell for cell in cells if not reproduction.finished(cell)]


def _collect(ray: Any, done: Any, job: list[Trial], number: int, total: int) -> None:
    """Says how a job went; one that failed leaves its cells without results, and the others go on."""
    try:
        outcome = "done" if ray.get(done) else "another process is at it"
    except ray.exceptions.RayError as error:
        outcome = f"failed: {type(error).__name__}"
    log_warning(f"{number} of {total}: {', '.join(cell.name for cell in job)}: {outcome}")


def _compute(out: str, job: list[Trial], eval_budget: EvalBudget) -> bool:
    """What a worker does."""
    from pathlib import Path

    return Reproduction(Path(out)).compute(job, eval_budget, quiet=True)

"""The host loop of training: compiled chunks, and between them a look at held-back tasks."""

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from saplan.errors import InputError, NotFiniteError
from saplan.games.world_errors import readable_errors
from saplan.methods.agent import planner_settings_for
from saplan.methods.base import Report, train_chunk, train_chunk_of_each
from saplan.methods.registry import AnyAgent, find_method
from saplan.rl.finite import NONE, name_fault
from saplan.storage.arrays import outline_of
from saplan.training.checkpoint import LARGEST, Checkpoint
from saplan.training.config import RunConfig
from saplan.training.evaluate import evaluate
from saplan.training.progress import Progress

HELD_BACK_SEED = 1_000_003
"""Tasks that training looks at to report its progress. Test tasks have other seeds; nothing is learnt from either."""


def row(stacked: Any, k: int) -> Any:
    """One of several trees that are stacked leaf by leaf."""
    return jax.tree.map(lambda leaf: leaf[k], stacked)


def first_devices(count: int, lanes: int) -> list[jax.Device]:
    """So many devices, which must be there and share the lanes evenly; 0 means all."""
    there = jax.devices()
    count = count or len(there)
    if not 1 <= count <= len(there):
        raise InputError(f"devices must lie in 1..{len(there)}, those that JAX sees here, got {count}")
    if lanes % count:
        raise InputError(f"lanes must be a multiple of the devices that share them, got {lanes} for {count}")
    return there[:count]


class Loop:
    """Training in chunks."""

    def __init__(self, configs: list[RunConfig], chunk: int | None = None, devices: int = 1) -> None:
        """Nothing learnt yet. The configurations differ in their seeds alone.

        `chunk` is updates per program; with several `devices` each plays its share of the lanes.
        """
        self.configs, self.eval_points, self.eval_tasks = configs, configs[0].eval_points, configs[0].eval_tasks
        self.game, self.settings = configs[0].game, configs[0].settings
        self.method = find_method(configs[0].method)
        self.per_update = self.settings.lanes * self.settings.rollout
        self.updates = configs[0].steps // self.per_update
        if self.updates < 1:
            raise InputError(f"steps must be at least lanes × rollout = {self.per_update}, got {configs[0].steps}")
        self.alone = len(configs) == 1
        self.size = chunk or max(1, min(16, self.updates // 8))
        self.devices = first_devices(devices, self.settings.lanes)
        self._outline = outline_of(lambda: self._beginner(0), LARGEST, "this learner")
        self._learner: Any = None
        self.done = self.chunks = self.evaluated_at = 0
        self.positives, self.negatives = np.zeros(len(configs), int), np.zeros(len(configs), int)
        self.success: list[float | None] = [None] * len(configs)
        self.began = self.timed_from = time.monotonic()
        self.seconds = 0.0
        """Spent before this process took over."""
        self.untimed = 0

    @property
    def learner(self) -> Any:
        """What has been learnt so far. Made when it is asked for: a run that is resumed brings its own."""
        if self._learner is None:
            with readable_errors(self.game):
                self._learner = self._stack([self._beginner(config.seed) for config in self.configs])
        return self._learner

    @learner.setter
    def learner(self, learner: Any) -> None:
        self._learner = learner

    def _beginner(self, seed: int) -> Any:
        return self.method.begin(self.game, self.settings, jax.random.key(seed))

    def _stack(self, each: list[Any]) -> Any:
        learner = each[0] if self.alone else jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        return self._placed(learner)

    def _placed(self, learner: Any) -> Any:
        """The learner where it belongs: its lanes shared out among the devices, the rest on all of them."""
        if len(self.devices) == 1:
            return learner
        mesh = Mesh(np.array(self.devices), ("lanes",))
        everywhere = NamedSharding(mesh, PartitionSpec())
        shared_out = NamedSharding(mesh, PartitionSpec("lanes") if self.alone else PartitionSpec(None, "lanes"))
        places = jax.tree.map(lambda _: everywhere, learner)
        lanes = jax.tree.map(lambda _: shared_out, learner.lanes)
        return jax.device_put(learner, eqx.tree_at(lambda x: x.lanes, places, lanes))

    def outline(self) -> Any:
        """A learner with shapes in place of arrays."""
        return self._outline

    def checkpoints(self) -> list[Checkpoint]:
        """All that is needed to go on from here, for every seed."""
        return [
            Checkpoint(self.done, learner, {
                "positives": int(self.positives[k]),
                "negatives": int(self.negatives[k]),
                "success": self.success[k],
                "evaluated_at": self.evaluated_at,
                "seconds": self._elapsed(),
            }, self.game.recall(learner.lanes.state))
            for k, learner in enumerate(self._learners())
        ]  # fmt: skip

    def _learners(self) -> list[Any]:
        return [self.learner] if self.alone else [row(self.learner, k) for k in range(len(self.configs))]

    def restore(self, each: list[Checkpoint]) -> None:
        """Goes on from checkpoints of the same update, one per seed."""
        for one in each:
            self.game.restore(one.learner.lanes.state, one.world)
        if each[0].updates > self.updates:
            raise InputError(f"a checkpoint is at update {each[0].updates} of {self.updates}: it is not of this run")
        self.learner = self._stack([one.learner for one in each])
        self.done = each[0].updates
        hosts = [one.host for one in each]
        self.positives = np.array([host["positives"] for host in hosts])
        self.negatives = np.array([host["negatives"] for host in hosts])
        self.success = [host["success"] for host in hosts]
        self.evaluated_at, self.seconds = hosts[0]["evaluated_at"], hosts[0]["seconds"]

    def agents(self) -> list[AnyAgent]:
        """The agents as they are now."""
        return [self.method.agent_of(learner, self.game, self.settings) for learner in self._learners()]

    def chunk(self, hurry: Callable[[], bool] = lambda: False) -> list[Progress]:
        """Some updates, and a look at held-back tasks when one is due, unless there is a `hurry`.

        `NotFiniteError` names the first number that is not finite, if there is one.
        """
        count = min(self.size, self.updates - self.done)
        advance = train_chunk if self.alone else train_chunk_of_each
        with readable_errors(self.game):
            learner, report = advance(
                self.game, self.settings, self.updates, self.size, jnp.int32(count), self.learner, self.method.update
            )
            report = jax.tree.map(lambda x: np.asarray(x).reshape(len(self.configs), self.size)[:, :count], report)
        self.learner = self._placed(learner)
        self._check(report)
        if self.chunks == 0:  # the first chunk compiled; speed is that of the others
            self.timed_from, self.untimed = time.monotonic(), self.done + count
        self.chunks += 1
        self.done += count
        elapsed = time.monotonic() - self.timed_from
        due = [
            at
            for at in (-(-self.updates // 2**k) for k in range(self.eval_points))
            if self.evaluated_at < at <= self.done
        ]
        eval_points = bool(due) and not hurry()
        if eval_points:
            self.evaluated_at = self.done
            self._look()
            self.timed_from += time.monotonic() - self.timed_from - elapsed
        self.positives += report.found.sum(axis=1)
        self.negatives += report.failed.sum(axis=1)
        return [self._progress(k, row(report, k), elapsed, eval_points) for k in range(len(self.configs))]

    def _look(self) -> None:
        if not self.eval_tasks:
            return
        planning = planner_settings_for(self.settings)
        evaluated = (evaluate(agent, self.eval_tasks, HELD_BACK_SEED, planning=planning) for agent in self.agents())
        self.success = [float(result.success.mean()) for result in evaluated]

    def _check(self, report: Report) -> None:
        for k, config in enumerate(self.configs):
            wrong = np.flatnonzero(report.fault[k] != NONE)
            if len(wrong):
                name = name_fault(int(report.fault[k, wrong[0]]), report, self.learner)
                raise NotFiniteError(f"{name} is not finite in update {self.done + wrong[0] + 1} (seed {config.seed})")

    def _elapsed(self) -> float:
        return self.seconds + time.monotonic() - self.began

    def _progress(self, k: int, report: Report, elapsed: float, evaluated: bool) -> Progress:
        return Progress(
            steps=self.done * self.per_update,
            total=self.updates * self.per_update,
            seconds=self._elapsed(),
            steps_per_second=(self.done - self.untimed) * self.per_update / max(elapsed, 1e-9),
            success=self.success[k],
            evaluated=evaluated,
            known=int(report.known[-1]),
            counts=self.method.counts,
            overflow=int(report.overflow[-1]),
            positives=int(self.positives[k]),
            negatives=int(self.negatives[k]),
            attempt_success=int(report.successes.sum()) / max(int(report.attempts.sum()), 1),
            attempt_steps=float(report.success_steps.mean()),
        )

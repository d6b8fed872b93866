"""The host loop of training: compiled chunks of updates, with evaluations on held-back tasks between them."""

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
from saplan.methods.agent import Agent, planner_settings_for
from saplan.methods.registry import find_method
from saplan.methods.update import Report, train_chunk, train_chunk_of_each
from saplan.rl.finite import NO_FAULT, name_fault
from saplan.storage.arrays import outline_of
from saplan.training.checkpoint import LARGEST, Checkpoint, HostState
from saplan.training.config import RunConfig
from saplan.training.evaluate import evaluate
from saplan.training.progress import Progress

HELD_BACK_SEED = 1_000_003
"""Seed of the tasks that training is evaluated on. Test tasks have other seeds; nothing is learnt from either."""


def row(stacked: Any, k: int) -> Any:
    """One of several trees that are stacked leaf by leaf."""
    return jax.tree.map(lambda leaf: leaf[k], stacked)


def first_devices(count: int, lanes: int) -> list[jax.Device]:
    """The first `count` devices (0: all), which must divide the lanes evenly."""
    there = jax.devices()
    count = count or len(there)
    if not 1 <= count <= len(there):
        raise InputError(f"devices must lie in 1..{len(there)}, the number that JAX finds here, got {count}")
    if lanes % count:
        raise InputError(f"lanes must be a multiple of the number of devices, got {lanes} for {count}")
    return there[:count]


class Loop:
    """Training in chunks, of one learner or of several side by side."""

    def __init__(self, configs: list[RunConfig], chunk: int | None = None, devices: int = 1) -> None:
        """Start without any update. The configurations differ in their seeds alone.

        `chunk` is the number of updates per program; with several `devices` each plays its share of the lanes.
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
        # One program for all seeds: operation by operation, the first maps would be compiled piece by piece.
        self._begin = eqx.filter_jit(self.method.begin)
        self._outline = outline_of(lambda: self._new_learner(0), LARGEST, "this learner")
        self._learner: Any = None
        self.done = self.chunks = self.evaluated_at = 0
        self.positives, self.negatives = np.zeros(len(configs), int), np.zeros(len(configs), int)
        self.success: list[float | None] = [None] * len(configs)
        self.began = self.timed_from = time.monotonic()
        self.seconds = 0.0
        """Time that earlier processes spent on these runs."""
        self.untimed = 0

    @property
    def learner(self) -> Any:
        """The learner now, or all learners stacked. Made on first access: a resumed run brings its own."""
        if self._learner is None:
            with readable_errors(self.game):
                self._learner = self._stack([self._new_learner(config.seed) for config in self.configs])
        return self._learner

    @learner.setter
    def learner(self, learner: Any) -> None:
        self._learner = learner

    def _new_learner(self, seed: int) -> Any:
        return self._begin(self.game, self.settings, jax.random.key(seed))

    def _stack(self, each: list[Any]) -> Any:
        learner = each[0] if self.alone else jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        return self._placed(learner)

    def _placed(self, learner: Any) -> Any:
        """The learner on its devices: lanes divided among them, everything else replicated."""
        if len(self.devices) == 1:
            return learner
        mesh = Mesh(np.array(self.devices), ("lanes",))
        replicated = NamedSharding(mesh, PartitionSpec())
        divided = NamedSharding(mesh, PartitionSpec("lanes") if self.alone else PartitionSpec(None, "lanes"))
        places = jax.tree.map(lambda _: replicated, learner)
        lanes = jax.tree.map(lambda _: divided, learner.lanes)
        return jax.device_put(learner, eqx.tree_at(lambda x: x.lanes, places, lanes))

    def outline(self) -> Any:
        """A learner with shapes in place of arrays."""
        return self._outline

    def checkpoints(self) -> list[Checkpoint]:
        """The present state of training, one checkpoint per seed."""
        found = []
        for k, learner in enumerate(self._learners()):
            host = HostState(
                int(self.positives[k]), int(self.negatives[k]), self.success[k], self.evaluated_at, self._elapsed()
            )
            found.append(Checkpoint(self.done, learner, host, self.game.recall(learner.lanes.state)))
        return found

    def _learners(self) -> list[Any]:
        return [self.learner] if self.alone else [row(self.learner, k) for k in range(len(self.configs))]

    def restore(self, each: list[Checkpoint]) -> None:
        """Resume from checkpoints of the same update, one per seed."""
        for one in each:
            self.game.restore(one.learner.lanes.state, one.world)
        if each[0].updates > self.updates:
            raise InputError(f"a checkpoint has {each[0].updates} updates, and this run only {self.updates}")
        self.learner = self._stack([one.learner for one in each])
        self.done = each[0].updates
        self.positives = np.array([one.host.positives for one in each])
        self.negatives = np.array([one.host.negatives for one in each])
        self.success = [one.host.success for one in each]
        self.evaluated_at, self.seconds = each[0].host.evaluated_at, each[0].host.seconds

    def agents(self) -> list[Agent]:
        """The agents in their present state."""
        return [self.method.agent_of(learner, self.game, self.settings) for learner in self._learners()]

    def chunk(self, hurry: Callable[[], bool] = lambda: False) -> list[Progress]:
        """Make some updates, and evaluate if that is due, unless in a `hurry`; return the progress of every seed.

        `NotFiniteError` names the first number that is not finite, if there is one.
        """
        count = min(self.size, self.updates - self.done)
        advance = train_chunk if self.alone else train_chunk_of_each
        with readable_errors(self.game):
            learner, report = advance(
                self.method, self.game, self.settings, self.updates, self.size, jnp.int32(count), self.learner
            )
            report = jax.tree.map(lambda x: np.asarray(x).reshape(len(self.configs), self.size)[:, :count], report)
        self.learner = self._placed(learner)
        self._check(report)
        if self.chunks == 0:  # the first chunk was compiled; the speed is that of the others
            self.timed_from, self.untimed = time.monotonic(), self.done + count
        self.chunks += 1
        self.done += count
        elapsed = time.monotonic() - self.timed_from
        points = (-(-self.updates // 2**k) for k in range(self.eval_points))
        evaluated = any(self.evaluated_at < point <= self.done for point in points) and not hurry()
        if evaluated:
            self._evaluate()
            self.timed_from = time.monotonic() - elapsed
        self.positives += report.found.sum(axis=1)
        self.negatives += report.failed.sum(axis=1)
        return [self._progress(k, row(report, k), elapsed, evaluated) for k in range(len(self.configs))]

    def _evaluate(self) -> None:
        self.evaluated_at = self.done
        if self.eval_tasks:
            planning = planner_settings_for(self.settings)
            results = (evaluate(agent, self.eval_tasks, HELD_BACK_SEED, planning=planning) for agent in self.agents())
            self.success = [float(result.success.mean()) for result in results]

    def _check(self, report: Report) -> None:
        for k, config in enumerate(self.configs):
            wrong = np.flatnonzero(report.fault[k] != NO_FAULT)
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

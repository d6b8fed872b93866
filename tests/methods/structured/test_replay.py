"""Rings of examples, against one plain deque per transition."""

from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.algebra import Natural, Product
from saplan.methods.structured.edge_detector import EdgeDetector, Replay, draw_batch, edge_loss, empty_replay, push

SPACE = Product.of(a=Natural(), b=Natural())
TRANSITIONS, CAPACITY, BATCH = 3, 5, 9
put = jax.jit(push)


Ring = deque[tuple[float, ...]]


def contents(replay: Replay, transition: int) -> list[tuple[float, ...]]:
    """A ring from its oldest example to its newest."""
    filled, following = int(replay.filled[transition]), int(replay.next[transition])
    slots = [(following - filled + i) % CAPACITY for i in range(filled)]
    rho, success, steps = (np.asarray(x[transition]) for x in (replay.rho, replay.success, replay.steps))
    return [(*rho[s].tolist(), float(success[s]), float(steps[s])) for s in slots]


def fed(replay: Replay, rings: list[Ring], seed: int, entries: list[int] | range, keep_share: float) -> Replay:
    """Pushes one random batch into both."""
    random = np.random.default_rng(seed)
    entry = random.choice(list(entries), BATCH)
    rho = random.integers(0, 100, (BATCH, 2)).astype(np.float32)
    success, steps = random.integers(0, 2, BATCH).astype(bool), random.integers(1, 40, BATCH).astype(np.float32)
    keep = random.uniform(size=BATCH) < keep_share
    for i in np.flatnonzero(keep):
        if entry[i] >= 0:
            rings[entry[i]].append((*rho[i].tolist(), float(success[i]), float(steps[i])))
    pushed: Replay = put(replay, *map(jnp.array, (entry, rho, success, steps, keep)))
    return pushed


@pytest.mark.parametrize("seed", range(5))
def test_rings_are_deques(seed: int) -> None:
    replay = empty_replay(SPACE, TRANSITIONS, CAPACITY)
    rings: list[Ring] = [deque(maxlen=CAPACITY) for _ in range(TRANSITIONS)]
    for k in range(12):
        replay = fed(replay, rings, 100 * seed + k, range(-1, TRANSITIONS), keep_share=0.5)
        for transition in range(TRANSITIONS):
            assert contents(replay, transition) == list(rings[transition])


def test_of_a_batch_larger_than_a_ring_the_newest_stay() -> None:
    replay = empty_replay(SPACE, TRANSITIONS, CAPACITY)
    rings: list[Ring] = [deque(maxlen=CAPACITY) for _ in range(TRANSITIONS)]
    for k in range(4):
        replay = fed(replay, rings, k, [1], keep_share=1.1)
        assert contents(replay, 1) == list(rings[1])
    assert replay.filled.tolist() == [0, CAPACITY, 0]


def test_a_common_transition_does_not_drive_out_a_rare_one() -> None:
    replay = empty_replay(SPACE, TRANSITIONS, CAPACITY)
    rings: list[Ring] = [deque(maxlen=CAPACITY) for _ in range(TRANSITIONS)]
    replay = fed(replay, rings, 0, [2], keep_share=0.3)
    rare = contents(replay, 2)
    assert rare
    for k in range(1, 10):
        replay = fed(replay, rings, k, [0, 1], keep_share=1.1)
    assert contents(replay, 2) == rare


def test_draws_come_from_what_is_there() -> None:
    replay = empty_replay(SPACE, TRANSITIONS, CAPACITY)
    rings: list[Ring] = [deque(maxlen=CAPACITY) for _ in range(TRANSITIONS)]
    replay = fed(fed(replay, rings, 3, [0], keep_share=1.1), rings, 4, [2], keep_share=0.3)
    entry, slot = map(np.asarray, draw_batch(jax.random.key(0), replay, 4000))
    assert set(entry.tolist()) == {0, 2}
    assert 0.45 < np.mean(entry == 0) < 0.55, "transitions alike, however many examples they have"
    for transition in (0, 2):
        assert set(slot[entry == transition].tolist()) == set(range(int(replay.filled[transition])))


def test_there_is_nothing_to_learn_from_empty_rings() -> None:
    detector = EdgeDetector.init(jax.random.key(0), SPACE, 4)
    empty = empty_replay(SPACE, TRANSITIONS, CAPACITY)
    some = put(empty, jnp.array([0]), jnp.ones((1, 2)), jnp.array([True]), jnp.ones(1), jnp.array([True]))
    loss = jax.jit(
        jax.value_and_grad(
            lambda d, positives, outcomes: edge_loss(
                d, SPACE, jax.random.key(1), jnp.eye(TRANSITIONS, 2), positives, outcomes, 8
            )
        )
    )
    for positives, outcomes in [(empty, empty), (some, empty), (empty, some)]:
        value, gradient = loss(detector, positives, outcomes)
        assert float(value) == 0.0
        assert all(not np.any(leaf) for leaf in jax.tree.leaves(gradient)), "neither a step nor a NaN"
    value, gradient = loss(detector, some, some)
    assert float(value) > 0
    assert any(np.any(leaf) for leaf in jax.tree.leaves(gradient))

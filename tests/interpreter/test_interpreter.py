"""NumPy evaluates every program as the compiler does: blocks, games, worlds of others, and agents of every method."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Exogenous, Integer, Natural, Product, Real
from saplan.games import GAMES, Game, make_game
from saplan.games.game import task_set
from saplan.interpreter import threefry
from saplan.interpreter.program import interpretable, key_of, without_compiling
from saplan.methods.agent import DEFAULT_PLANNER, PAPER_PLANNER, Agent, PlannerSettings, one_goal
from saplan.methods.oracle.agent import Oracle
from saplan.render.start import start
from saplan.training.shipped import ORACLE, shipped_methods
from saplan.training.store import open_agent
from tests.algebra.samples import BLOCKS, deltas, elements, product_of
from tests.envs.test_jax_env import LampRow, Painted, world_of

GOALS = {
    "switches": "red=1 blue=1", "exchange": "red=2 blue=1", "mining": "m1=5 m2=6", "arm": "shoulder=180 elbow=0",
    "tiles": "red=0 green=1 blue=m0",
}  # fmt: skip


def interpreted(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result by NumPy; fails where the program would be compiled after all."""

    def never(*arguments: Any) -> Any:
        raise AssertionError("the program contains an operation that NumPy does not evaluate")

    never.__wrapped__ = function  # type: ignore[attr-defined]
    with without_compiling():
        return interpretable(never)(*arguments)


def assert_same(found: Any, expected: Any, slack: float = 2e-5) -> None:
    """Integers and flags are equal; real numbers agree up to rounding."""
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        true = np.asarray(other)
        assert isinstance(one, np.ndarray)
        assert (one.shape, one.dtype) == (true.shape, true.dtype)
        if true.dtype.kind == "f":
            np.testing.assert_allclose(one, true, rtol=2e-4, atol=slack)
        else:
            np.testing.assert_array_equal(one, true)


def check(function: Callable[..., Any], *arguments: Any) -> None:
    assert_same(interpreted(function, *arguments), jax.jit(function)(*arguments))


@pytest.mark.parametrize("seed", [0, 1, 7, 2**31 - 1])
def test_random_keys_and_bits(seed: int) -> None:
    key = jax.random.key(seed)
    with without_compiling():
        twin = key_of(seed)
    assert threefry.to_data(np.asarray(twin)).tolist() == jax.random.key_data(key).tolist()
    check(lambda key: jax.random.key_data(jax.random.split(key, (2, 3))), key)
    check(lambda key: jax.random.key_data(jax.random.fold_in(key, 5)), key)
    check(lambda key: jax.random.key_data(jax.vmap(jax.random.split)(jax.random.split(key, 4))), key)
    for dtype in (jnp.uint8, jnp.uint16, jnp.uint32):
        check(lambda key, dtype=dtype: jax.random.bits(key, (3, 5), dtype), key)
    check(lambda key: jax.random.uniform(key, (7,)), key)
    check(lambda key: jax.random.randint(key, (7,), -3, 9), key)
    check(lambda key: jax.random.categorical(key, jnp.log(jnp.arange(1.0, 5.0)), shape=(50,)), key)
    check(lambda key: jax.random.permutation(key, 12), key)


@pytest.mark.parametrize("kind", BLOCKS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_every_block(kind: str, data: st.DataObject) -> None:
    block = data.draw(BLOCKS[kind])
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    a, b, d, e = elements(block, rng, 20), elements(block, rng, 20), deltas(block, rng, 20), deltas(block, rng, 20)

    def all_of(a: Any, b: Any, d: Any, e: Any) -> Any:
        return (
            block.compose(a, d), block.difference(b, a), block.then(d, e), block.inverse(d), block.contains(a),
            block.bin(a), block.snap(d), block.close(a, b), block.decode(block.embed(a)),
        )  # fmt: skip

    check(all_of, a, b, d, e)

    def features(a: Any, d: Any) -> Any:
        return block.encode(a), block.encode_delta(d)

    # Waves of a value that is many resolutions away are known only to a few digits.
    near = jnp.clip(a, -1000, 1000), jnp.clip(d, -1000, 1000)
    assert_same(interpreted(features, *near), jax.jit(features)(*near), slack=5e-2 if kind == "real" else 2e-5)


@pytest.mark.parametrize("kind", BLOCKS)
def test_products_with_every_block(kind: str) -> None:
    block: Block = {
        "natural": Natural(), "integer": Integer(), "cyclic": Cyclic(5), "real": Real(0.5),
        "categorical": Categorical(("a", "b")), "circle": Circle(360.0), "dihedral": Dihedral(4),
    }[kind]  # fmt: skip
    space: Product = product_of([block, Integer(), block, Exogenous(block)])
    rng = np.random.default_rng(0)
    rho = jnp.stack([elements(part, rng, 6) for part in (block, Integer(), block, block)], axis=-1)
    other = jnp.stack([elements(part, rng, 6) for part in (block, Integer(), block, block)], axis=-1)
    check(lambda a, b: (space.difference(b, a), space.compose(a, space.difference(b, a)), space.bin(a)), rho, other)


def worlds() -> list[Any]:
    found = [pytest.param(make_game(name), id=name) for name in GAMES]
    return [*found, pytest.param(world_of(LampRow()), id="numbers"), pytest.param(world_of(Painted()), id="picture")]


@pytest.mark.parametrize("game", worlds())
def test_every_game(game: Game[Any]) -> None:
    key, actions = jax.random.key(3), len(game.actions)
    state = jax.jit(game.reset)(key)
    check(game.reset, key)
    states = jax.jit(jax.vmap(game.reset))(jax.random.split(key, 8))
    for functions in (game.observe, game.place, game.attributes, game.truth, game.confidence, game.over, game.lost):
        check(functions, state)
        check(jax.vmap(functions), states)
    step = jax.jit(game.step)
    for number in range(3 * actions):
        key, step_key = jax.random.split(key)
        action = jnp.int32(number % actions)
        if number < actions:
            check(game.step, step_key, state, action)
        state = step(step_key, state, action)
    check(game.attributes, state)


def agents() -> list[Any]:
    return [(game, method) for game in GAMES for method in (*shipped_methods(game), ORACLE)]


def run(agent: Agent, goal: str, steps: int, planner: PlannerSettings) -> tuple[Any, ...]:
    """One task, step by step: every action that was taken, every decision, and the states at the end."""
    begin = start(agent.game, 1)
    states = jax.tree.map(lambda x: x[None], begin.state)
    executor = agent.executor(states, one_goal(agent.game.space, goal), planner)
    decided, places = [], []
    for _ in executor.moves(steps, 5):
        decided.append(executor.decisions[0].chosen)
        places.append(jax.tree.map(np.asarray, executor.state))
    return begin.rho, decided, executor.result, jax.tree.leaves(places)


@pytest.mark.parametrize(("game", "method"), agents())
@pytest.mark.parametrize("paper", [False, True])
def test_agents_act_the_same(game: str, method: str, paper: bool) -> None:
    agent = open_agent(game, method)[0]
    planner = PAPER_PLANNER if paper else DEFAULT_PLANNER
    compiled = run(agent, GOALS[game], 12, planner)
    with without_compiling():
        by_numpy = run(agent, GOALS[game], 12, planner)
    assert by_numpy[0] == pytest.approx(compiled[0], abs=1e-5)
    assert by_numpy[1] == compiled[1]
    assert by_numpy[2].attempts == compiled[2].attempts or game == "mining"
    assert_same(by_numpy[3], compiled[3])


def test_unknown_operations_are_compiled() -> None:
    compiled = jax.jit(lambda key, x: jax.lax.erf_inv(x) + jax.random.uniform(key))
    with without_compiling():
        found = interpretable(compiled)(key_of(2), np.float32(0.25))
    assert float(found) == pytest.approx(float(compiled(jax.random.key(2), 0.25)))


def test_control_flow_and_indexing() -> None:
    table = jnp.arange(24.0).reshape(4, 6)

    def program(x: Any, i: Any) -> Any:
        def body(carry: Any, row: Any) -> Any:
            return carry + row.sum(), carry * row

        total, rows = jax.lax.scan(body, 0.0, x, reverse=True)
        count = jax.lax.while_loop(lambda n: n < total, lambda n: n * 2 + 1, 1.0)
        branch = jax.lax.cond(i[0] > 1, lambda: x[i], lambda: x[i] * 2)
        window = jax.lax.dynamic_slice(x, (i[0], i[1]), (2, 3))
        moved = jax.lax.dynamic_update_slice(x, window, (1, 1))
        sorted_rows = jnp.sort(x * jnp.array([1.0, -1, 1, -1, 1, -1]), axis=1)
        padded = jnp.pad(x, ((1, 0), (0, 2)), constant_values=7.0)
        taken = jnp.take_along_axis(x, i[:, None] % 6, axis=1), x.at[i, i].get(mode="fill", fill_value=-1.0)
        return (
            total, rows, count, branch, window, moved, sorted_rows, padded, taken, jnp.cumsum(x, axis=1, dtype=x.dtype),
            x.at[i, i].set(0.5), x.at[1:3].add(2.0), x.at[i].add(x[0]),
            jnp.einsum("ij,kj->ik", x, x), x // 5, (-x).astype(jnp.int32) // 7, jnp.argmin(x, axis=1), x[::-1],
        )  # fmt: skip

    for i in ([0, 1, 2, 3], [3, 5, 1, 0], [2, 2, 9, 2]):
        check(program, table, jnp.array(i))


def test_shifts_beyond_the_width_keep_the_sign() -> None:
    for dtype in (jnp.int16, jnp.int32):
        x = jnp.array([-7, -1, 0, 5, 3000], dtype)
        check(lambda x: x >> jnp.arange(0, 50, 7, x.dtype)[:, None], x)
        check(lambda x: jax.lax.shift_right_logical(x, jnp.full_like(x, 40)), x)


def test_conversions_saturate() -> None:
    x = jnp.array([1e30, -1e30, jnp.nan, jnp.inf, -0.9, 300.7, -3.0])
    for dtype in (jnp.int32, jnp.int16, jnp.uint8):
        check(lambda x, dtype=dtype: x.astype(dtype), x)


@pytest.mark.parametrize("game", GAMES)
def test_tasks(game: str) -> None:
    """Goals of tasks are drawn by a search over attributes, which contains the widest range of operations."""
    states, goals = task_set(make_game(game), 2, 5)
    assert len(goals.low) == 2
    check(jax.vmap(make_game(game).attributes), states)


@pytest.mark.parametrize("game", GAMES)
def test_a_plan_compiles_nothing(game: str) -> None:
    command = [sys.executable, "-m", "saplan", "plan", game, "--goal", GOALS[game], "--budget", "20"]
    environment = {**os.environ, "JAX_LOG_COMPILES": "1", "JAX_PLATFORMS": "cpu"}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "Carrying it out" in found.stdout
    assert "Finished XLA compilation" not in found.stderr
    assert "Compiling " not in found.stderr


def test_the_oracle_is_not_forgotten() -> None:
    assert isinstance(open_agent("switches", ORACLE)[0], Oracle)

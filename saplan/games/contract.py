"""The promises of `Game`, as a check that any game can be run through, also a user's own."""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PyTree

from saplan.algebra import Product
from saplan.errors import InputError
from saplan.games.game import Game, State
from saplan.games.world_errors import one_line

LANES, STEPS = 8, 64
"""Games played side by side, and random steps in each."""

T = TypeVar("T")
Promises = Iterator[tuple[bool, str]]
"""Whether a promise is kept, and the sentence for a broken one."""


def check_game(game: Game[State], seed: int = 0) -> None:
    """Raises `InputError`, with one line, for the first promise of the protocol that a game breaks.

    The promises are about constants, shapes and types, purity, equal results under `jax.jit` and `jax.vmap`, attributes
    inside the space, admissible changes and the goals of tasks.
    """
    keys = jax.random.split(jax.random.key(seed), LANES)
    for promises in (_constants(game), _shapes(game, keys[0]), _functions(game, keys), _play(game, keys)):
        for kept, complaint in promises:
            if not kept:
                raise InputError(f"{_name(game)}: {complaint}")


def _name(game: Game[State]) -> str:
    return str(getattr(game, "name", type(game).__name__))


def _answer(game: Game[State], what: str, call: Callable[..., T], *arguments: Any) -> T:
    """The result of a call into the game; an exception of the game as an `InputError`."""
    try:
        return call(*arguments)
    except Exception as error:
        fault = game.fault() or error
        raise InputError(f"{_name(game)}: {what} failed: {one_line(fault)}") from fault


def _whole(x: object, least: int) -> bool:
    return type(x) is int and x >= least


def _number(x: object) -> bool:
    return isinstance(x, int | float) and math.isfinite(x) and x >= 0


def _texts(x: object) -> bool:
    return isinstance(x, tuple) and all(isinstance(text, str) and text for text in x)


def _constants(game: Game[State]) -> Promises:
    for name in ("name", "space", "actions", "slots", "vocabulary", "credit", "alphas"):
        _answer(game, name, getattr, game, name)
    yield _texts((game.name,)), "name must be a text"
    yield isinstance(game.space, Product), "space must be a Product"
    yield _texts(game.actions) and 0 < len(game.actions) == len({*game.actions}), "actions must be distinct texts"
    yield _whole(game.slots, 1), "slots must be a whole number from 1 up"
    yield _whole(game.vocabulary, 0), "vocabulary must be a whole number from 0 up"
    pixels = game.slots if game.picture is None else math.prod(game.picture)
    yield pixels == game.slots, "picture must have as many pixels as there are slots"
    yield game.credit in ("attempt", "game"), 'credit must be "attempt" or "game"'
    yield len(game.alphas) == 2 and all(map(_number, game.alphas)), "alphas must be two numbers from 0 up"
    yield _texts(game.vital) and {*game.vital} <= {*game.space.names}, "vital must name attributes of the space"
    yield _number(game.tolerance), "tolerance must be a number from 0 up"
    yield _whole(game.farthest_goal, 0), "farthest_goal must be a whole number from 0 up"
    _answer(game, "hash, which a frozen dataclass has,", hash, game)
    described = _answer(game, "described, as JSON,", lambda: json.loads(json.dumps(game.described())))
    yield isinstance(described, dict) and described.get("game") == game.name, "described must give the name as `game`"
    for row in _answer(game, "admissible", game.admissible):
        fits = len(row) == 2 and isinstance(row[0], str) and np.shape(row[1]) == (game.space.size,)
        yield fits, f"admissible must give pairs of a text and {game.space.size} numbers, got {row}"


def _forms(tree: PyTree, weak: bool = False) -> PyTree:
    """The structure of a tree, with the shape and the type of every leaf."""
    leaves = [(leaf.shape, str(leaf.dtype), weak and leaf.weak_type) for leaf in jax.tree.leaves(tree)]
    return jax.tree.structure(tree), leaves


def _shapes(game: Game[State], key: Key[Array, ""]) -> Promises:
    k = game.space.size

    def shape(name: str, *arguments: Any) -> Any:
        return _answer(game, name, jax.eval_shape, getattr(game, name), *arguments)

    state, action = shape("reset", key), jax.ShapeDtypeStruct((), jnp.int32)
    step = shape("step", key, state, action)
    # A carry of a scan must keep even the weakness of its types.
    yield _forms(step, weak=True) == _forms(state, weak=True), "step must return a state of the form that reset returns"
    yield _forms(shape("anywhere", key)) == _forms(state), "anywhere must return a state of the form of reset"
    task, goal = shape("tasks", key)
    yield _forms(task) == _forms(state), "tasks must return a state of the form of reset"
    rho, mask = (jax.ShapeDtypeStruct((k,), dtype) for dtype in (jnp.float32, jnp.bool_))
    yield _forms((goal.low, goal.high)) == _forms((rho, rho)), f"goals must have bounds of {k} float32 numbers each"
    words = ("int16",) if game.vocabulary else ("float32", "uint8")
    expected = {"observe": " or ".join(f"{word}[{game.slots}]" for word in words)}
    expected |= dict.fromkeys(("attributes", "truth", "confidence"), f"float32[{k}]")
    expected |= {"over": "bool[]", "lost": "bool[]", "feasible": "float32[]"}
    for name, form in expected.items():
        found = shape(name, *((rho, rho) if name == "feasible" else (state,)))
        text = f"{found.dtype}{list(found.shape)}"
        yield text in form.split(" or "), f"{name} must return {form}, got {text}"
    yield shape("place", state).ndim == 1, "place must return an array with one axis"
    if game.farthest_goal:
        fits = _forms(shape("goal_at", key, rho, action)) == _forms((rho, mask))
        yield fits, f"goal_at must return float32[{k}] and bool[{k}]"


def _alike(one: PyTree, other: PyTree, exactly: bool) -> bool:
    """Whether two trees hold the same values, floats within rounding unless `exactly`."""

    def leaf(a: Array, b: Array) -> bool:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        if exactly or not jnp.issubdtype(a.dtype, jnp.floating):
            return np.array_equal(a, b, equal_nan=jnp.issubdtype(a.dtype, jnp.floating))
        return np.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)

    return all(map(leaf, jax.tree.leaves(one), jax.tree.leaves(other)))


def _functions(game: Game[State], keys: Key[Array, "lanes"]) -> Promises:
    """Every function gives the same result when called again, and when compiled for many games at once."""
    actions = jnp.arange(LANES, dtype=jnp.int32) % len(game.actions)
    states = _answer(game, "reset", jax.jit(jax.vmap(game.reset)), keys)
    calls: dict[str, tuple[PyTree, ...]] = {"reset": (keys,), "step": (keys, states, actions), "tasks": (keys,)}
    calls |= dict.fromkeys(("observe", "attributes", "over"), (states,))
    for name, batch in calls.items():
        function = getattr(game, name)
        one = jax.tree.map(lambda x: x[0], batch)
        first, second = (_answer(game, name, function, *one) for _ in range(2))
        yield (
            _alike(first, second, exactly=True),
            f"{name} must be a pure function: the same arguments gave two results",
        )
        together = _answer(game, name, jax.jit(jax.vmap(function)), *batch)
        alone = jax.tree.map(lambda x: x[0], together)
        yield _alike(first, alone, exactly=False), f"{name} gives another result under jax.jit and jax.vmap"
        if name == "tasks":
            low, high = (np.asarray(side) for side in (together[1].low, together[1].high))
            round_zero = np.isfinite([block.period for block in game.space.blocks])
            yield bool(np.all((low <= high) | round_zero)), "the goals of tasks must have low <= high"
            free = np.isinf(low) & np.isinf(high)
            yield not np.any(np.all(free, axis=1)), "the goal of every task must ask for some attribute"


def _play(game: Game[State], keys: Key[Array, "lanes"]) -> Promises:
    """Random play stays inside the space, and changes the attributes only by admissible changes, while not over."""
    space, act_key, step_key = game.space, *jax.random.split(jax.random.fold_in(keys[0], 1))
    actions = jax.random.randint(act_key, (STEPS, LANES), 0, len(game.actions))

    def look(state: State) -> tuple[Array, Array, Array]:
        return jax.vmap(game.attributes)(state), jax.vmap(game.observe)(state), jax.vmap(game.over)(state)

    def step(state: State, turn: tuple[Array, Array]) -> tuple[State, tuple[Array, Array, Array]]:
        state = jax.vmap(game.step)(jax.random.split(turn[0], LANES), state, turn[1])
        return state, look(state)

    @jax.jit
    def play(keys: Key[Array, "lanes"]) -> PyTree:
        state = jax.vmap(game.reset)(keys)
        later = jax.lax.scan(step, state, (jax.random.split(step_key, STEPS), actions))[1]
        return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), look(state), later)

    @jax.jit
    def judge(rho: Array) -> tuple[Array, ...]:
        change = space.difference(rho[1:], rho[:-1])
        known = jnp.array([delta for _, delta in game.admissible()]).reshape(-1, space.size)
        admissible = jnp.any(space.same_change(change[:, :, None], known), axis=2)
        return space.contains(rho), space.changed(rho[:-1], rho[1:]), change, admissible

    rho, seen, over = _answer(game, "step", play, keys)
    inside, moved, change, admissible = (np.asarray(x) for x in judge(rho))
    rho, seen, over = (np.asarray(x) for x in (rho, seen, over))
    for place in np.argwhere(~inside)[:1]:
        yield False, f"the attributes {rho[*place].tolist()} lie outside {space}"
    if game.vocabulary:
        yield bool(np.all((seen >= 0) & (seen < game.vocabulary))), f"words must lie in 0..{game.vocabulary - 1}"
    yield bool(np.all(np.isfinite(seen.astype(np.float32)))), "observations must be finite numbers"
    yield not np.any(moved & over[:-1]), "the attributes changed in a game that is over"
    if len(game.admissible()) and moved.any():
        strange = moved & ~admissible
        text = space.format_delta(change[*np.argwhere(strange)[0]]) if strange.any() else ""
        yield not strange.any(), f"the attributes changed by {text}, which is not admissible"
        feasible = jax.jit(jax.vmap(jax.vmap(game.feasible)))
        chance = np.asarray(_answer(game, "feasible", feasible, rho[:-1], change))[moved]
        yield bool(np.all((chance > 0) & (chance <= 1))), "feasible must lie in (0, 1] for a change that happened"

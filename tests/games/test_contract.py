"""What every game promises, for every game and for rules other than the defaults."""

import dataclasses
from collections import deque
from collections.abc import Callable
from typing import Any

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.errors import InputError
from saplan.games import GAMES, Arm, Exchange, Game, Mining, Switches, Tiles, make_game
from saplan.games.contract import check_game
from saplan.games.grid import PITCH, MapRules

from .play import GAMES as LANES
from .play import STEPS, fresh, long_play

FLAT = ((0, 3, 3), (3, 0, 3), (3, 3, 0))
STEEP = ((0, 1, 2), (1, 0, 1), (2, 1, 0))

RULES: dict[str, Game[Any]] = {
    **{name: make_game(name) for name in GAMES},
    "two switches": Switches(kinds=2),
    "one switch": Switches(kinds=1),
    "four switches": Switches(kinds=4, most=3),
    "other rates": Exchange(gives=FLAT, takes=STEEP, most=5),
    "two kinds of exchange": Exchange(kinds=2, gives=((0, 2), (3, 0)), takes=((0, 1), (1, 0)), most=4),
    "a purse": Exchange(purse=5, most=6),
    "rates that change": Exchange(rates_change_at=4, most=6),
    "few deposits": Mining(deposits=1),
    "large dense maps": Switches(maps=MapRules(smallest=10, largest=10, blocked=0.2)),
    "open maps": Mining(maps=MapRules(blocked=0.0)),
    "a hole in S": Mining(hole=(4.5, 5.0, 7.5, 8.0)),
    "maps twice as wide": Switches(most=8, maps=MapRules(smallest=15, largest=20)),
    "far post": Arm(distance=1.5, turn=30.0, tolerance=20.0),
    "one piece": Tiles(kinds=1),
    "four pieces": Tiles(kinds=4),
}

every_game = pytest.mark.parametrize("game", RULES.values(), ids=RULES.keys())


@every_game
def test_the_protocol_is_kept(game: Game[Any]) -> None:
    check_game(game)
    assert game.actions[:5] == ("up", "down", "left", "right", "interact")


@pytest.mark.parametrize("name", GAMES)
def test_everything_compiles_once(name: str) -> None:
    game, traces = make_game(name), dict.fromkeys(("reset", "step", "observe", "attributes"), 0)

    def counted(part: str) -> Callable[..., Any]:
        def traced(*arguments: Any) -> Any:
            traces[part] += 1
            return getattr(game, part)(*arguments)

        return jax.jit(traced)

    reset, step, observe, attributes = (counted(part) for part in traces)
    for seed in range(3):
        state = reset(jax.random.key(seed))
        for action in range(len(game.actions)):
            state = step(jax.random.key(action), state, jnp.int32(action))
            observe(state)
            attributes(state)
    assert set(traces.values()) == {1}


@pytest.mark.parametrize("name", GAMES)
def test_games_outside_of_jit_do_not_compile_anew_every_time(name: str) -> None:
    """Hundreds of programs for one loop would exhaust the process in the end."""
    game, compiled = make_game(name), []
    game.tasks(jax.random.key(0))

    def listen(event: str, duration_secs: float, **_: Any) -> None:
        if event.endswith("backend_compile_duration"):
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        for seed in range(1, 4):
            game.tasks(jax.random.key(seed))
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert not compiled


@every_game
def test_keys_decide_everything(game: Game[Any]) -> None:
    states, again, other = fresh(game, 7), fresh(game, 7), fresh(game, 8)
    for first, second in zip(jax.tree.leaves(states), jax.tree.leaves(again), strict=True):
        assert np.array_equal(first, second)
    assert len(np.unique(np.concatenate([map_rows(states), map_rows(other)]), axis=0)) == 2 * LANES


def map_rows(states: Any) -> np.ndarray:
    """One row of numbers per map, with everything on it."""
    parts = [states.ground.walls, states.ground.agent[:, None], all_items(states)]
    return np.concatenate([np.asarray(part) for part in parts], axis=1)


def all_items(states: Any) -> np.ndarray:
    return np.asarray(jax.vmap(lambda state: state.items)(states))


def reachable(height: int, width: int, walls: set[tuple[int, int]], start: tuple[int, int]) -> set[tuple[int, int]]:
    found, queue = {start}, deque([start])
    while queue:
        row, column = queue.popleft()
        for cell in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            inside = 0 <= cell[0] < height and 0 <= cell[1] < width
            if inside and cell not in walls and cell not in found:
                found.add(cell)
                queue.append(cell)
    return found


@every_game
def test_maps_are_sound(game: Any) -> None:
    states, rules = fresh(game, 7), game.maps
    ground, items = jax.tree.map(np.asarray, states.ground), all_items(states)
    for g in range(LANES):
        height, width = int(ground.height[g]), int(ground.width[g])
        assert rules.smallest <= height <= rules.largest
        assert rules.smallest <= width <= rules.largest
        walls = [divmod(place, PITCH) for place in ground.walls[g].tolist() if place != -1]
        cells = [divmod(place, PITCH) for place in items[g].tolist() if place != -1]
        agent = divmod(int(ground.agent[g]), PITCH)
        assert len(walls) == len(set(walls))
        assert abs(len(walls) - rules.blocked * height * width) <= 0.501, "rounded, in single precision"
        assert all(0 <= row < height and 0 <= column < width for row, column in [*walls, *cells, agent])
        occupied = [*walls, *cells, agent]
        assert len(set(occupied)) == len(occupied)
        assert set(cells) <= reachable(height, width, set(walls), agent)


def test_height_and_width_are_independent_and_uniform() -> None:
    grounds = [fresh(Switches(), seed).ground for seed in range(8)]
    pairs = np.concatenate([np.stack([ground.height, ground.width]) for ground in grounds], axis=1) - 7
    table = np.zeros((4, 4))
    np.add.at(table, tuple(pairs), 1)
    # Chi-square with 15 degrees of freedom exceeds 45 with probability 1e-4.
    assert np.sum((table - 250) ** 2 / 250) < 45


@pytest.mark.parametrize(
    ("game", "fewest", "most"), [(Switches(), 1, 4), (Exchange(), 1, 8)], ids=["switches", "exchange"]
)
def test_counts_of_objects_are_uniform(game: Game[Any], fewest: int, most: int) -> None:
    objects = np.concatenate([fresh(game, seed).objects for seed in range(8)])
    counts = np.sum(objects.reshape(-1, 3, most) != -1, axis=2)
    for kind in range(3):
        seen = np.bincount(counts[:, kind], minlength=most + 1)[fewest:]
        expected = 4000 / (most + 1 - fewest)
        assert seen.sum() == 4000
        assert np.sum((seen - expected) ** 2 / expected) < 35
    assert abs(np.corrcoef(counts.T) - np.eye(3)).max() < 0.07


@every_game
def test_long_random_play_keeps_the_contract(game: Game[Any]) -> None:
    play, space = long_play(game), game.space
    assert play.actions.size == LANES * STEPS >= 100_000
    assert play.words.min() >= 0
    assert play.words.max() < game.vocabulary
    rhos = play.rhos.reshape(-1, space.size)
    assert np.all(jax.jit(space.contains)(rhos))

    before, after = play.rhos[:-1].reshape(-1, space.size), play.rhos[1:].reshape(-1, space.size)
    moved = np.any(before != after, axis=1)
    before, change = before[moved], np.asarray(jax.jit(space.difference)(after[moved], before[moved]))
    known = jnp.array([delta for _, delta in game.admissible()])
    same = np.asarray(jax.jit(space.same_change)(change[:, None], known[None]))
    assert np.all(same.sum(axis=1) == 1)
    assert np.all(same.sum(axis=0) >= 5), dict(zip([n for n, _ in game.admissible()], same.sum(axis=0), strict=True))

    feasible = np.asarray(jax.jit(jax.vmap(game.feasible))(before, change))
    assert np.all(feasible > 0)
    assert np.all(feasible <= 1)
    # What is over has no change left.
    ended = play.over[:-1].reshape(-1)
    assert not np.any(ended & moved)


@every_game
def test_absurd_changes_are_not_feasible(game: Game[Any]) -> None:
    rhos = jnp.asarray(long_play(game).rhos[::4].reshape(-1, game.space.size))
    feasible = jax.jit(jax.vmap(game.feasible, (0, None)))
    assert not jnp.any(feasible(rhos, jnp.full(game.space.size, 7.0)))
    assert not jnp.any(feasible(rhos, game.space.identity))


def feasibility(game: Game[Any], rhos: np.ndarray) -> np.ndarray:
    """`feasible` for every ρ and every admissible change."""
    known = jnp.array([delta for _, delta in game.admissible()])
    each = jax.vmap(jax.vmap(game.feasible, (None, 0)), (0, None))
    return np.asarray(jax.jit(each)(jnp.asarray(rhos, jnp.float32), known))


def test_feasible_in_exchange_means_that_nothing_gets_negative() -> None:
    game = Exchange()
    rhos = np.stack(np.meshgrid(*[range(2)] * 3, *[range(4)] * 3, indexing="ij"), axis=-1).reshape(-1, 6)
    known = np.array([delta for _, delta in game.admissible()])
    expected = np.all(rhos[:, None] + known[None] >= 0, axis=-1)
    assert known.shape == (9, 6)
    assert np.array_equal(feasibility(game, rhos), expected)


@pytest.mark.parametrize("kinds", [1, 2, 3])
def test_feasible_in_switches_follows_the_switch(kinds: int) -> None:
    game = Switches(kinds=kinds)
    axes = [range(3)] * kinds + [range(2)] * kinds + [range(kinds)]
    rhos = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2 * kinds + 1)
    for rho, row in zip(rhos, feasibility(game, rhos), strict=True):
        picks = [float(rho[kind] > 0 and rho[-1] == kind) for kind in range(kinds)]
        assert row.tolist() == picks + [1.0] * (kinds > 1)


def in_arch(v: np.ndarray) -> np.ndarray:
    distance = np.hypot(v[..., 0] - 6, v[..., 1] - 1)
    inside: np.ndarray = np.all(v >= 0, axis=-1) & (distance >= 2.5) & (distance <= 7)
    return inside


def test_feasible_in_mining_is_the_chance_of_staying_inside() -> None:
    game, rng = Mining(), np.random.default_rng(0)
    points = rng.uniform((0, 0), (13, 8), (2000, 2))
    points = points[in_arch(points)][:500]
    hammers = rng.integers(0, 2, len(points))
    yields = np.linspace(0.5, 1.5, 20_001)
    probabilities = feasibility(game, np.column_stack([points, hammers]))
    assert np.array_equal(probabilities[:, 0], hammers == 0)
    for j in range(2):
        unit = np.eye(2)[j]
        digs = in_arch(points[:, None] + yields[:, None] * unit).mean(axis=1) * hammers
        assert np.max(np.abs(probabilities[:, 1 + j] - digs)) < 0.02
        assert np.array_equal(probabilities[:, 3 + j], in_arch(points - unit))


def test_feasible_in_arm_is_a_turn_clear_of_the_post() -> None:
    """The post cuts the circle of the shoulder, and no turn crosses the cut."""
    game, rng = Arm(), np.random.default_rng(0)
    postures = rng.uniform(0, 360, (4000, 2)).astype(np.float32)
    clear = np.asarray(game.clear(jnp.asarray(postures)))
    assert 0.1 < np.mean(~clear) < 0.25
    cut = np.abs(postures[:, 0] - 120) < np.degrees(np.arcsin(0.3 / 0.9)) - 0.1
    assert not np.any(clear & cut)
    possible = feasibility(game, postures[clear])
    assert np.all(possible.any(axis=1))
    right = (postures[clear][:, 0] < 120) & (postures[clear][:, 0] > 120 - 22.5)
    assert not np.any(possible[right, 0])


@pytest.mark.parametrize("kinds", [1, 2, 3])
def test_feasible_in_tiles_follows_the_choice(kinds: int) -> None:
    game, rng = Tiles(kinds=kinds), np.random.default_rng(0)
    rhos = np.column_stack([rng.integers(0, 8, (50, kinds)), rng.integers(0, kinds, 50)])
    for rho, row in zip(rhos, feasibility(game, rhos), strict=True):
        chosen = [float(rho[-1] == kind) for kind in range(kinds)]
        assert row.tolist() == [*chosen, *chosen] + [1.0] * (kinds > 1)


@pytest.mark.parametrize("name", GAMES)
def test_no_key_is_used_twice(name: str) -> None:
    game = make_game(name)
    with jax.debug_key_reuse(True):
        reset_key, step_key, task_key = jax.random.split(jax.random.key(0), 3)
        state = jax.jit(game.reset)(reset_key)
        jax.jit(game.step)(step_key, state, jnp.int32(4))
        jax.jit(game.tasks)(task_key)


def test_the_check_for_reused_keys_can_fail() -> None:
    def careless(key: jax.Array) -> jax.Array:
        return jax.random.uniform(key) + jax.random.normal(key)

    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        jax.jit(careless)(jax.random.key(0))


@every_game
def test_games_are_static_values(game: Any) -> None:
    twin = type(game)(**{field.name: getattr(game, field.name) for field in dataclasses.fields(game)})
    assert twin == game
    assert hash(twin) == hash(game)
    others = [other for other in RULES.values() if other is not game]
    assert game not in others
    # A game may be a static argument of a compiled function.
    assert jax.jit(lambda g, x: x * g.slots, static_argnums=0)(game, 1) == game.slots
    assert game.space == twin.space


@pytest.mark.parametrize("name", GAMES)
def test_the_scene_shows_what_is_there(name: str) -> None:
    game = make_game(name)
    state = game.reset(jax.random.key(3))
    scene = game.scene(state)
    places = [place for place in state.items.tolist() if place != -1]
    assert {(thing.row, thing.column) for thing in scene.things} == {divmod(place, PITCH) for place in places}
    assert len(scene.things) == len(places)
    assert scene.agent == divmod(int(state.ground.agent), PITCH)
    assert scene.walls == {divmod(place, PITCH) for place in state.ground.walls.tolist() if place != -1}
    assert (scene.height, scene.width) == (int(state.ground.height), int(state.ground.width))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Switches(kinds=0),
        lambda: Switches(kinds=7),
        lambda: Switches(fewest=3, most=2),
        lambda: Switches(fewest=-1),
        lambda: Switches(fewest=0, most=0),
        lambda: Switches(kinds=6, most=16),
        lambda: Exchange(kinds=0),
        lambda: Exchange(kinds=7),
        lambda: Exchange(kinds=2),
        lambda: Exchange(fewest=5, most=4),
        lambda: Exchange(fewest=-2),
        lambda: Exchange(gives=STEEP, takes=FLAT),
        lambda: Exchange(gives=FLAT, takes=FLAT),
        lambda: Exchange(gives=FLAT, takes=((0, 0, 1), (1, 0, 1), (1, 1, 0))),
        lambda: Exchange(gives=((0, 2), (2, 0))),
        lambda: Mining(deposits=0),
        lambda: Mining(deposits=40),
        lambda: Mining(centre=()),
        lambda: Mining(yield_low=2.0, yield_high=1.0),
        lambda: Mining(yield_low=-1.0),
        lambda: Mining(dumps=0.0),
        lambda: Mining(inner=7.0, outer=7.0),
        lambda: Arm(turn=100.0),
        lambda: Arm(tolerance=10.0),
        lambda: Arm(distance=0.2),
        lambda: Arm(radius=0.0),
        lambda: Arm(post=float("inf")),
        lambda: Tiles(kinds=0),
        lambda: Tiles(kinds=5),
        lambda: Switches(maps=MapRules(smallest=3, largest=3)),
        lambda: Exchange(maps=MapRules(smallest=5, largest=5)),
        lambda: Mining(maps=MapRules(smallest=3, largest=3)),
        lambda: MapRules(smallest=2),
        lambda: MapRules(largest=33),
        lambda: MapRules(smallest=9, largest=8),
        lambda: MapRules(blocked=-0.1),
        lambda: MapRules(blocked=0.5),
        lambda: MapRules(blocked=float("nan")),
        lambda: make_game("chess"),
    ],
)
def test_impossible_rules_are_refused_in_one_line(make: Callable[[], object]) -> None:
    with pytest.raises(InputError) as error:
        make()
    assert "\n" not in str(error.value)


def test_a_misspelt_game_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'switches'"):
        make_game("swiches")

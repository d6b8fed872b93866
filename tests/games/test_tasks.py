"""The tasks of every game: possible, not yet done, and drawn by the law that its rule card names."""

import heapq
import itertools
from collections import Counter, defaultdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.algebra.real import Continuous
from saplan.games import Arm, Exchange, Game, Mining, Switches, Tiles, task_set
from saplan.games.exchange import GIVES, TAKES
from saplan.games.grid import MapRules

from .play import TASKS, fixed_tasks

TASK_GAMES: dict[str, Game[Any]] = {
    "switches": Switches(),
    "exchange": Exchange(),
    "mining": Mining(),
    "arm": Arm(),
    "tiles": Tiles(),
    "one switch": Switches(kinds=1),
    "two kinds of exchange": Exchange(kinds=2, gives=((0, 2), (3, 0)), takes=((0, 1), (1, 0)), most=4),
    "open maps": Switches(kinds=2, maps=MapRules(blocked=0.0)),
}


def asked(game: Any) -> np.ndarray:
    """The counts that the tasks of a game ask for."""
    _, goals = fixed_tasks(game)
    wanted = np.isfinite(goals.low)
    assert np.array_equal(wanted, np.broadcast_to(wanted[0], wanted.shape))
    assert np.array_equal(np.flatnonzero(wanted[0]), np.arange(game.kinds, 2 * game.kinds))
    assert np.array_equal(goals.low[wanted], goals.high[wanted])
    return np.asarray(goals.low[:, game.kinds : 2 * game.kinds]).astype(int)


def offered(game: Any) -> np.ndarray:
    """The counts on the maps of the tasks of a game."""
    states, _ = fixed_tasks(game)
    counts: np.ndarray = np.sum(np.asarray(states.objects).reshape(TASKS, game.kinds, game.most) != -1, axis=2)
    return counts


@pytest.mark.parametrize("name", TASK_GAMES)
def test_tasks_are_fixed_by_their_seed_and_can_be_asked(name: str, request: pytest.FixtureRequest) -> None:
    if name == "exchange":  # a table of distances per task
        request.getfixturevalue("optimised")
    game = TASK_GAMES[name]
    states, goals = fixed_tasks(game)
    again = task_set(game, TASKS, seed=1)
    for first, second in zip(jax.tree.leaves((states, goals)), jax.tree.leaves(again), strict=True):
        assert np.array_equal(first, second)
    _, other = task_set(game, TASKS, seed=2)
    assert not np.array_equal(other.low, goals.low)
    assert goals.low.shape == goals.high.shape == (TASKS, game.space.size)

    rhos = jax.vmap(game.attributes)(states)
    assert jnp.all(game.space.contains(rhos))
    low, high, middle = np.asarray(goals.low), np.asarray(goals.high), goals.centre(game.space)
    for k, block in enumerate(game.space.blocks):
        named = np.isfinite(low[:, k])
        assert np.array_equal(named, np.isfinite(high[:, k]))
        assert jnp.all(block.contains(jnp.asarray(middle[named, k])))
    # A goal on ℝ or S¹ may by chance lie where the game starts.
    real = any(isinstance(block, Continuous) for block in game.space.blocks)
    assert np.mean(goals.reached(rhos)) <= (0.05 if real else 0)


def test_a_switches_goal_is_uniform_among_those_the_map_allows() -> None:
    game = Switches()
    goals, offers = asked(game), offered(game)
    assert np.all((goals >= 0) & (goals <= offers))
    assert np.all(goals.sum(axis=1) > 0)
    # Given its map, a goal is one of prod(n + 1) - 1, so that every share of them is known.
    options = np.prod(offers + 1, axis=1) - 1
    for kind in range(3):
        zero = np.mean(goals[:, kind] == 0)
        others = np.delete(offers, kind, axis=1) + 1
        expected_zero = np.mean((np.prod(others, axis=1) - 1) / options)
        assert abs(zero - expected_zero) < 4 * np.sqrt(0.25 / TASKS)
        full = np.mean(goals[:, kind] == offers[:, kind])
        assert abs(full - np.mean(np.prod(others, axis=1) / options)) < 4 * np.sqrt(0.25 / TASKS)
    smallest = np.all(offers == 1, axis=1)
    assert len({tuple(goal) for goal in goals[smallest]}) == 7


Held = tuple[int, ...]


def shortest_paths(offers: Held, gives: Any, takes: Any) -> dict[Held, int]:
    """Dijkstra over the whole attribute graph (left on the map, held): distances of all held vectors from nothing."""
    q = len(offers)
    start = (offers, (0,) * q)
    best: dict[tuple[Held, Held], int] = {start: 0}
    queue = [(0, start)]
    goals: dict[Held, int] = {}
    while queue:
        length, node = heapq.heappop(queue)
        if length > best[node]:
            continue
        left, held = node
        goals.setdefault(held, length)
        for i, j in itertools.product(range(q), repeat=2):
            new_left, new_held = list(left), list(held)
            if i == j:
                new_left[i] -= 1
                new_held[i] += 1
            else:
                new_held[i] -= gives[i][j]
                new_held[j] += takes[i][j]
            after = (tuple(new_left), tuple(new_held))
            if min(*after[0], *after[1]) >= 0 and length + 1 < best.get(after, 1 << 30):
                best[after] = length + 1
                heapq.heappush(queue, (length + 1, after))
    del goals[(0,) * q]
    return goals


FLAT = ((0, 3, 3), (3, 0, 3), (3, 3, 0))
STEEP = ((0, 1, 2), (1, 0, 1), (2, 1, 0))
SMALL_OFFERS = [*itertools.product((1, 3), repeat=3), (2, 1, 0), (0, 0, 0), (4, 3, 5), (4, 2, 4)]


@pytest.mark.parametrize(
    "game", [Exchange(), Exchange(gives=FLAT, takes=STEEP, most=5)], ids=["default rates", "other rates"]
)
def test_goal_distances_are_those_of_the_attribute_graph(game: Exchange) -> None:
    distances = jax.jit(game.goal_distances)
    for offers in SMALL_OFFERS:
        table = np.asarray(distances(jnp.array(offers)))
        found = {tuple(goal): int(table[tuple(goal)]) for goal in np.argwhere(table >= 0).tolist()}
        assert found == shortest_paths(offers, game.gives, game.takes), offers


def test_goal_distances_with_two_kinds() -> None:
    game: Any = TASK_GAMES["two kinds of exchange"]
    distances = jax.jit(game.goal_distances)
    for offers in itertools.product(range(5), repeat=2):
        table = np.asarray(distances(jnp.array(offers)))
        found = {tuple(goal): int(table[tuple(goal)]) for goal in np.argwhere(table >= 0).tolist()}
        assert found == shortest_paths(offers, game.gives, game.takes), offers


def test_no_goal_of_the_law_lies_beyond_the_table() -> None:
    """Brute force on a table so large that nothing can leave it, as trades only lose."""
    game, side = Exchange(), 3 * 8 + 1
    far, distances = 1 << 20, jax.jit(game.goal_distances)
    cells = np.indices((side,) * 3)
    for offers in [(8, 8, 8), (8, 8, 7), (8, 7, 8), (7, 8, 8), (8, 8, 4), (4, 8, 8), (8, 4, 8), (1, 8, 8), (5, 6, 7)]:
        cost = np.where(np.all(cells <= np.array(offers).reshape(3, 1, 1, 1), axis=0), cells.sum(axis=0), far)
        while True:
            better = cost.copy()
            for i, j in itertools.permutations(range(3), 2):
                give, take = GIVES[i][j], TAKES[i][j]
                # From n to n - give·e_i + take·e_j: read n with the two axes in front.
                source, target = np.moveaxis(cost, (i, j), (0, 1)), np.moveaxis(better, (i, j), (0, 1))
                reached = source[give:, : side - take] + 1
                np.minimum(target[: side - give, take:], reached, out=target[: side - give, take:])
            if np.array_equal(better, cost):
                break
            cost = better
        reachable = np.argwhere((cost > 0) & (cost < far))
        beyond = [goal for goal in reachable.tolist() if max(goal) >= game.goal_side]
        assert all(cost[tuple(goal)] > game.farthest for goal in beyond), beyond
        inside = (slice(game.goal_side),) * 3
        table = np.asarray(distances(jnp.array(offers)))
        assert np.array_equal(table, np.where((cost > 0) & (cost < far), cost, -1)[inside])


def test_an_exchange_goal_has_a_uniform_distance() -> None:
    game = Exchange()
    goals, offers = asked(game), offered(game)
    tables = np.asarray(jax.jit(lambda o: jax.lax.map(game.goal_distances, o, batch_size=64))(jnp.asarray(offers)))
    lengths = tables[np.arange(TASKS), *goals.T]
    assert np.all((lengths >= 1) & (lengths <= game.farthest))
    # Every map has its own possible distances; the rank of the drawn one among them must be flat.
    expected: dict[int, float] = defaultdict(float)
    for table in tables:
        possible = [int(length) for length in np.unique(table) if 1 <= length <= game.farthest]
        for length in possible:
            expected[length] += 1 / len(possible)
    drawn = np.bincount(lengths, minlength=game.farthest + 1)
    common = [length for length in expected if expected[length] >= 10]
    chi_square = sum((drawn[length] - expected[length]) ** 2 / expected[length] for length in common)
    assert len(common) >= 15
    # Its mean is the number of terms, its standard deviation sqrt(2 terms): five of them are never seen.
    assert chi_square < len(common) + 5 * np.sqrt(2 * len(common))


def test_an_exchange_goal_is_uniform_among_those_at_its_distance() -> None:
    """With one object of each kind the goals are few enough to count each."""
    game = Exchange(most=1, fewest=1)
    _, goals = task_set(game, TASKS, seed=1)
    drawn = Counter(tuple(int(x) for x in row[3:]) for row in np.asarray(goals.low))
    paths = shortest_paths((1, 1, 1), GIVES, TAKES)
    assert set(drawn) == set(paths)
    per_length = Counter(paths.values())
    for goal, length in paths.items():
        expected = TASKS / len(per_length) / per_length[length]
        assert abs(drawn[goal] - expected) < 5 * np.sqrt(expected)


def arch(points: np.ndarray) -> np.ndarray:
    distance = np.hypot(points[:, 0] - 6, points[:, 1] - 1)
    inside: np.ndarray = (points.min(axis=1) >= 0) & (distance >= 2.5) & (distance <= 7)
    return inside


def assert_uniform(points: np.ndarray, reference: np.ndarray) -> None:
    """Whether points fill a region as evenly as (many more) reference points do, cell by cell."""
    edges = (np.linspace(0, 13, 14), np.linspace(0, 8, 9))
    drawn = np.histogram2d(points[:, 0], points[:, 1], bins=edges)[0]
    expected = np.histogram2d(reference[:, 0], reference[:, 1], bins=edges)[0] * len(points) / len(reference)
    common = expected >= 8
    assert common.sum() >= 5
    chi_square = np.sum((drawn - expected)[common] ** 2 / expected[common])
    assert chi_square < common.sum() + 5 * np.sqrt(2 * common.sum())


def test_mining_starts_in_the_feet_and_asks_for_any_point() -> None:
    states, goals = fixed_tasks(Mining())
    reference = np.random.default_rng(0).uniform((0, 0), (13, 8), (1_000_000, 2))
    starts = np.asarray(states.minerals)
    assert np.all(arch(starts))
    assert np.all(starts[:, 1] <= 1)
    feet = np.random.default_rng(1).uniform((0, 0), (13, 1), (1_000_000, 2))
    assert_uniform(starts, feet[arch(feet)])
    assert np.all(np.asarray(states.hammer) == 0)

    targets = np.asarray(goals.low + goals.high)[:, :2] / 2
    distance = np.hypot(*(targets - (6, 1)).T)
    assert np.all((targets > -1e-4) & (np.abs(distance - 4.75) < 2.2501)[:, None])
    assert_uniform(targets, reference[arch(reference)])
    np.testing.assert_allclose(np.asarray(goals.high - goals.low)[:, :2], 1.0, atol=1e-4)
    assert np.all(np.isinf(goals.low[:, 2]))
    # Independent: where one starts says nothing about where one should go.
    assert abs(np.corrcoef(starts[:, 0], targets[:, 0])[0, 1]) < 0.1


def test_arm_asks_for_any_posture_clear_of_the_post() -> None:
    game = Arm()
    states, goals = fixed_tasks(game)
    for postures in (np.asarray(states.angles), goals.centre(game.space)):
        assert jnp.all(game.clear(jnp.asarray(postures)))
        # The elbow is uniform but for what the post takes away; chi-square with 11 degrees of freedom.
        table = np.histogram(postures[:, 0], bins=12, range=(0, 360))[0]
        assert table[3] + table[4] < 0.06 * TASKS  # 90 to 150 degrees, most of which the post takes
        free = np.delete(table, [2, 3, 4, 5])
        assert np.sum((free - free.mean()) ** 2 / free.mean()) < 35
    assert np.any(np.asarray(goals.low) > np.asarray(goals.high))  # some goals go round through zero


def test_tiles_asks_for_any_orientations_but_those_at_the_start() -> None:
    game = Tiles()
    states, goals = fixed_tasks(game)
    wanted, pieces = np.asarray(goals.low)[:, :3].astype(int), np.asarray(states.pieces).astype(int)
    assert not np.any(np.all(wanted == pieces, axis=1))
    assert not np.isfinite(np.asarray(goals.low)[:, 3]).any()
    for k in range(3):
        table = np.zeros((8, 8))
        np.add.at(table, (pieces[:, k], wanted[:, k]), 1)
        # Chi-square with 63 degrees of freedom exceeds 125 with probability 1e-5.
        assert np.sum((table - TASKS / 64) ** 2 / (TASKS / 64)) < 125


@pytest.mark.parametrize(("game", "most"), [(Arm(), 16), (Tiles(), 10)], ids=["arm", "tiles"])
def test_goals_at_a_distance_of_arm_and_tiles(game: Game[Any], most: int) -> None:
    """The shortest path by the rules is as long as asked for; the post can only make it longer."""
    assert game.farthest_goal == most
    deltas = jnp.array([delta for _, delta in game.admissible()])
    each = jax.jit(jax.vmap(jax.vmap(game.feasible, (None, 0)), (0, None)))
    for distance in (1, 2, 5):
        keys = jax.random.split(jax.random.key(distance), 4)
        for key in keys:
            rho = np.asarray(game.attributes(game.reset(key)))
            value, asked = jax.jit(game.goal_at)(key, jnp.asarray(rho), jnp.int32(distance))
            layer, depth = {tuple(np.round(rho, 2).tolist())}, 0
            met = set(layer)
            while not any(np.all(near(game, np.array(place), value) | ~np.asarray(asked)) for place in layer):
                nodes = jnp.array(sorted(layer))
                ends = np.asarray(game.space.compose(nodes[:, None], deltas[None]))[np.asarray(each(nodes, deltas)) > 0]
                layer = {tuple(place) for place in np.round(ends, 2).tolist()} - met
                met |= layer
                depth += 1
            assert depth >= distance if isinstance(game, Arm) else depth == distance


def near(game: Game[Any], rho: np.ndarray, value: Any) -> np.ndarray:
    apart = np.abs(rho - np.asarray(value))
    shorter: np.ndarray = np.minimum(apart, np.array([block.period for block in game.space.blocks]) - apart)
    return shorter < 0.1

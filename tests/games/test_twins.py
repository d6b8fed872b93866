"""The games against independent twins in plain Python: 100,000 random steps each, everything compared."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from saplan.games import Arm, Exchange, Game, Mining, Switches, Tiles

from .play import GAMES, STEPS, Play, long_play
from .twins.arm import ArmTwin
from .twins.board import Board, Cell
from .twins.exchange import COLOURS, ExchangeTwin
from .twins.mining import MiningTwin
from .twins.switches import SwitchesTwin
from .twins.tiles import TilesTwin

PITCH, WINDOW, SIDE = 32, 19, 10


def cell(place: int) -> Cell:
    return divmod(int(place), PITCH)


def board_of(ground: Any, g: int) -> Board:
    walls = {cell(place) for place in ground.walls[0, g] if place >= 0}
    return Board(int(ground.height[0, g]), int(ground.width[0, g]), walls, cell(ground.agent[0, g]))


def switches_twin(play: Play, g: int) -> SwitchesTwin:
    places = play.states.objects[0, g].reshape(3, 4)
    objects = {cell(place): kind for kind in range(3) for place in places[kind] if place >= 0}
    board = board_of(play.states.ground, g)
    return SwitchesTwin(board, objects, 3, cell(play.states.switch_place[0, g]), int(play.states.switch[0, g]))


def exchange_twin(play: Play, g: int) -> ExchangeTwin:
    places = play.states.objects[0, g].reshape(3, 8)
    objects = {cell(place): COLOURS[kind] for kind in range(3) for place in places[kind] if place >= 0}
    return ExchangeTwin(board_of(play.states.ground, g), objects)


def mining_twin(play: Play, g: int) -> MiningTwin:
    names = ["deposit 0"] * 3 + ["deposit 1"] * 3 + ["store", "dump 0", "dump 1"]
    items = {cell(place): name for place, name in zip(play.states.places[0, g], names, strict=True)}
    return MiningTwin(board_of(play.states.ground, g), items, play.states.minerals[0, g].tolist())


def arm_twin(play: Play, g: int) -> ArmTwin:
    turns = [(0, 1), (0, -1), (1, 1), (1, -1)]
    cranks = {cell(place): turn for place, turn in zip(play.states.places[0, g], turns, strict=True)}
    return ArmTwin(board_of(play.states.ground, g), cranks, play.states.angles[0, g].tolist())


def tiles_twin(play: Play, g: int) -> TilesTwin:
    names = ["turntable", "mirror", "carousel"]
    stations = {cell(place): name for place, name in zip(play.states.places[0, g], names, strict=True)}
    pieces, chosen = play.states.pieces[0, g].tolist(), int(play.states.chosen[0, g])
    return TilesTwin(board_of(play.states.ground, g), stations, pieces, chosen)


def read_words(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edge distances, and the codes of the seen items (see `item_codes`) sorted, absent ones first as -1.

    By `grid`: 0 is padding, then ten words for the distance to each edge, then 19 × 19 offsets for every kind.
    """
    edges, items = words[..., :4].astype(int) - 1, words[..., 4:].astype(int) - 1 - 4 * SIDE
    assert np.array_equal(edges // SIDE, np.broadcast_to(np.arange(4), edges.shape))
    kind, offset = np.divmod(items, WINDOW * WINDOW)
    down, right = offset // WINDOW - 9, offset % WINDOW - 9
    absent = words[..., 4:] == 0
    assert np.all(absent | (items >= 0))
    return edges % SIDE, np.sort(np.where(absent, -1, kind * 10_000 + (down + 50) * 100 + right + 50), axis=-1)


def item_codes(seen: Iterable[tuple[int, int, int]], slots: int) -> list[int]:
    codes = [kind * 10_000 + (down + 50) * 100 + right + 50 for kind, down, right in seen]
    return [-1] * (slots - len(codes)) + sorted(codes)


def replay(game: Game[Any], play: Play, make_twin: Callable[[Play, int], Any], tolerance: float) -> Counter[str]:
    """Plays the same games in the twin, comparing after every step; returns what happened how often."""
    edges, items = read_words(play.words)
    slots = items.shape[-1]
    happened: Counter[str] = Counter()
    for g in range(GAMES):
        twin = make_twin(play, g)
        names = [game.actions[a] for a in play.actions[:, g]]
        agents, rhos = play.states.ground.agent[:, g].tolist(), play.rhos[:, g].tolist()
        seen, borders, over = items[:, g].tolist(), edges[:, g].tolist(), play.over[:, g].tolist()
        for t in range(STEPS + 1):
            if t:
                event = twin.act(names[t - 1])
                happened[event] += 1
                if event == "buy":
                    twin.yields = float(play.states.yields[t, g])
                    assert 0.5 <= twin.yields <= 1.5
            where = f"game {g}, step {t}, after {names[t - 1] if t else 'reset'}"
            assert twin.board.agent == divmod(agents[t], PITCH), where
            assert len(rhos[t]) == len(twin.attributes())
            for block, x, y in zip(game.space.blocks, rhos[t], twin.attributes(), strict=True):
                assert min(abs(x - y), block.period - abs(x - y)) <= tolerance, where
            assert borders[t] == list(twin.board.edges()), where
            assert seen[t] == item_codes(twin.seen(), slots), where
            assert over[t] == (twin.over() if hasattr(twin, "over") else False), where
    return happened


def assert_happened(happened: Counter[str], least: dict[str, int]) -> None:
    rare = {event: happened[event] for event, count in least.items() if happened[event] < count}
    assert not rare, f"too rare to have been tested: {rare} of {happened}"


def test_switches_agrees_with_its_twin() -> None:
    game = Switches()
    play = long_play(game)
    assert np.array_equal(play.states.held, play.rhos[..., 3:6])
    assert np.array_equal(play.states.switch, play.rhos[..., 6])
    happened = replay(game, play, switches_twin, 0.0)
    picks = {f"pick {kind}": 300 for kind in range(3)}
    assert_happened(happened, {**picks, "turn": 1000, "refused pick": 1000, "bump": 1000, "nothing here": 1000})


def test_exchange_agrees_with_its_twin() -> None:
    game = Exchange()
    play = long_play(game)
    assert np.array_equal(play.states.held, play.rhos[..., 3:])
    happened = replay(game, play, exchange_twin, 0.0)
    picks = {f"pick {colour}": 1000 for colour in COLOURS}
    trades = {action: 200 for action in game.actions if action.startswith("trade")}
    assert len(trades) == 6
    assert_happened(happened, {**picks, **trades, "refused trade": 1000, "bump": 1000})
    assert np.any(play.over)


def test_mining_agrees_with_its_twin() -> None:
    game = Mining()
    play = long_play(game)
    assert np.array_equal(play.states.hammer, play.rhos[..., 2])
    # The hidden yield is drawn with the hammer and at no other time.
    bought, redrawn = np.diff(play.states.hammer, axis=0) > 0, np.diff(play.states.yields, axis=0) != 0
    assert np.array_equal(bought, redrawn)
    happened = replay(game, play, mining_twin, 1e-4)
    changes = {"buy": 300, "dig 0": 100, "dig 1": 100, "dump 0": 100, "dump 1": 50}
    refusals = {"refused dig 0": 50, "refused dig 1": 10, "refused dump 0": 100, "refused dump 1": 100}
    assert_happened(happened, {**changes, **refusals, "refused purchase": 100, "bare hands": 300, "bump": 1000})


def test_arm_agrees_with_its_twin() -> None:
    game = Arm()
    happened = replay(game, long_play(game), arm_twin, 1e-2)
    turns = {f"turn {joint} {sign}": 1000 for joint in (0, 1) for sign in ("+1", "-1")}
    assert_happened(happened, {**turns, **{f"refused {turn}": 50 for turn in turns}, "bump": 1000})


def test_tiles_agrees_with_its_twin() -> None:
    game = Tiles()
    happened = replay(game, long_play(game), tiles_twin, 0.0)
    changes = {f"{station} {piece}": 500 for station in ("turntable", "mirror") for piece in range(3)}
    assert_happened(happened, {**changes, "carousel": 1000, "bump": 1000, "nothing here": 1000})


@pytest.mark.parametrize("word", [0, 1, 40, 41, 41 + 361 - 1])
def test_reading_words_back(word: int) -> None:
    edges, items = read_words(np.array([[1, 11, 21, 31, word if word > 40 or word == 0 else 0]]))
    assert edges.tolist() == [[0, 0, 0, 0]]
    assert items.tolist() == [[{41: 4141, 401: 5959}.get(word, -1)]]

"""Every game with every method, and worlds of one's own: docs/reliability.md makes its promises of all of them."""

from functools import cache
from typing import Any

from saplan.games import Exchange, Mining
from saplan.games.grid import MapRules
from saplan.methods.registry import METHODS
from saplan.training.config import RunConfig
from tests.reliability import FULL
from tests.reliability.own import lamps, tower
from tests.reliability.tiny import GAME, tiny_config

SMALL_MAPS = MapRules(smallest=5, largest=6)
GAMES = {
    "switches": GAME,
    "exchange": Exchange(kinds=2, most=3, gives=((0, 2), (3, 0)), takes=((0, 1), (2, 0)), maps=SMALL_MAPS),
    "mining": Mining(deposits=1, maps=SMALL_MAPS),
}
OWN: dict[str, Any] = {"tower": tower, "lamps": lamps}
EVERY = (*(f"{game}-{method}" for game in GAMES for method in METHODS), *OWN)
USUAL = EVERY[0]
CASES = (
    EVERY if FULL else tuple(case for case in EVERY if "-" not in case or "switches" in case or "-structured" in case)
)
"""In `make test` every game and every method, but not each game with each method."""


@cache
def config_of(case: str) -> RunConfig:
    """The configuration of a case; its world is made once, so that its compiled program is used again."""
    if case in OWN:
        # Many short rollouts, so that there are more episodes in play than a look at tasks leaves room for.
        return tiny_config(game=OWN[case](), lanes=64, rollout=1)
    game, method = case.split("-")
    return tiny_config(method, game=GAMES[game])


def world_of(case: str) -> Any:
    """The world that has to be given to resume a case; None where a run says all that is needed."""
    return config_of(case).game if case in OWN else None

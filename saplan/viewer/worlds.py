"""Worlds to watch: games, and for each the methods with an agent.

Agents are loaded, and their modules imported, when they are first needed: a map can be shown before.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from saplan.errors import InputError, unknown_name
from saplan.games import GAMES, Game
from saplan.games.rule_cards import with_rules
from saplan.training.shipped import ORACLE, STRUCTURED, shipped_methods, shipped_steps, steps_trained


@dataclass(frozen=True)
class World:
    """A game with agents for it."""

    name: str
    """The game's name, or the run directory."""
    kind: str
    """The game's name."""
    methods: tuple[str, ...]
    """The page begins with the first."""
    trained: tuple[int | None, ...]
    """Environment steps that each was trained for; None where they are unknown."""
    example: str
    """A goal to begin with."""
    rules: Game[Any] | None = None
    """The game of a run, or one with other rules than usual."""
    changed: tuple[str, ...] = ()
    """The rules that differ from the usual ones, such as `most=8`."""

    @cached_property
    def game(self) -> Game[Any]:
        """The game, created on first use: some take a while."""
        return self.rules or GAMES[self.kind]()


EXAMPLES = {
    "switches": "red=1 green=1 blue=1",
    "exchange": "red=0 green=0 blue=3",
    "mining": "m1=8 m2=6",
    "arm": "shoulder=180 elbow=0",
    "tiles": "red=0 green=1 blue=m0",
}


class Worlds:
    """All worlds, and the agents loaded so far."""

    def __init__(self, run: str | None = None, world: Game[Any] | None = None, rules: Sequence[str] = ()) -> None:
        """Enter the games with their shipped agents; a named run comes first. `InputError` if it is not a run.

        `rules` such as `most=8` change those of the named run or game, and its agents move there.
        """
        self._lock = threading.Lock()
        self._agents: dict[tuple[str, str], Any] = {}
        self.worlds: dict[str, World] = {}
        if run is not None and run not in GAMES:
            self._add_run(run, world, rules)
        elif rules:
            self._add_variant(run, rules)
        for name in sorted(GAMES, key=lambda name: name != run):  # stable: the named one first, then the usual order
            methods = shipped_methods(name)
            trained = (*(shipped_steps(name, method) for method in methods), None)
            self.worlds[name] = World(name, name, (*methods, ORACLE), trained, EXAMPLES.get(name, ""))

    def _add_variant(self, game: str | None, rules: Sequence[str]) -> None:
        """Enter a game with other rules, with the shipped agents that can move there and the oracle."""
        if game is None:
            raise InputError("--rules needs the name of a game or a run first")
        name = " ".join([game, *rules])
        trained = shipped_steps(game, STRUCTURED), None
        rules_game = with_rules(GAMES[game](), rules)
        example = EXAMPLES.get(game, "")
        self.worlds[name] = World(name, game, (STRUCTURED, ORACLE), trained, example, rules_game, tuple(rules))

    def _add_run(self, run: str, world: Game[Any] | None, rules: Sequence[str]) -> None:
        """Enter a run, with the shipped agents if its game is one of ours with default rules."""
        from saplan.training.config import is_ours
        from saplan.training.store import open_agent

        agent, config, about = open_agent(run, rules=rules, world=world)
        assert config is not None
        game, method = agent.game if rules else config.game, config.method
        usual = game.name in GAMES and GAMES[game.name]() == game
        others = [name for name in shipped_methods(game.name) if usual and name != method]
        trained = (steps_trained(about), *(shipped_steps(game.name, name) for name in others), None)
        example = EXAMPLES.get(game.name, "") if usual else next(iter(getattr(game, "goals", ())), "")
        methods = (method, *others, *([ORACLE] if is_ours(game) else []))
        self.worlds[run] = World(run, game.name, methods, trained, example, game)
        self._agents[run, method] = agent

    @property
    def first(self) -> World:
        """The world that the page begins with."""
        return next(iter(self.worlds.values()))

    def find(self, name: str) -> World:
        """The world of a name, or `InputError`."""
        if name not in self.worlds:
            raise unknown_name("game", name, self.worlds)
        return self.worlds[name]

    def agent(self, name: str, method: str) -> Any:
        """The agent of a method in a world; loaded once."""
        world = self.find(name)
        if method not in world.methods:
            raise unknown_name("method", method, world.methods)
        with self._lock:
            if (name, method) not in self._agents:
                self._agents[name, method] = self._open(world, method)
            return self._agents[name, method]

    def _open(self, world: World, method: str) -> Any:
        from saplan.methods.oracle.agent import Oracle
        from saplan.training.store import open_agent

        return Oracle(world.game) if method == ORACLE else open_agent(world.kind, method, world.changed)[0]

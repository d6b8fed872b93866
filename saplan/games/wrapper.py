"""A game with some of its members replaced, such as its attributes."""

import operator
from dataclasses import dataclass
from typing import Any

from saplan.games.game import Game, State


def _forward(name: str) -> Any:
    """Property with the value that the wrapped game has under this name; for a method, the game's bound method."""
    return property(operator.attrgetter(f"game.{name}"))


@dataclass(frozen=True)
class GameWrapper(Game[State]):
    """The same game, except for the members that a subclass overrides.

    Every member of `Game` is listed, since a default of `Game` would otherwise hide the wrapped game's own.
    """

    game: Game[State]

    name = _forward("name")
    actions = _forward("actions")
    slots = _forward("slots")
    vocabulary = _forward("vocabulary")
    picture = _forward("picture")
    cell = _forward("cell")
    credit = _forward("credit")
    vital = _forward("vital")
    misread = _forward("misread")
    alphas = _forward("alphas")
    tolerance = _forward("tolerance")
    farthest_goal = _forward("farthest_goal")
    space = _forward("space")
    reset = _forward("reset")
    step = _forward("step")
    observe = _forward("observe")
    place = _forward("place")
    attributes = _forward("attributes")
    truth = _forward("truth")
    confidence = _forward("confidence")
    anywhere = _forward("anywhere")
    shelf = _forward("shelf")
    over = _forward("over")
    lost = _forward("lost")
    tasks = _forward("tasks")
    task_groups = _forward("task_groups")
    goal_at = _forward("goal_at")
    admissible = _forward("admissible")
    feasible = _forward("feasible")
    rules_out = _forward("rules_out")
    item_facts = _forward("item_facts")
    recall = _forward("recall")
    restore = _forward("restore")
    fault = _forward("fault")
    described = _forward("described")
    scene = _forward("scene")

    def __getattr__(self, name: str) -> Any:
        """A member that only the wrapped game has, such as a number of its rules."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "game"), name)


def unwrapped(game: Game[Any]) -> Game[Any]:
    """The game inside all wrappers."""
    while isinstance(game, GameWrapper):
        game = game.game
    return game

"""A trained agent in another world of the same attributes and actions."""

import dataclasses
from typing import Any

from saplan.errors import InputError
from saplan.games import Game
from saplan.games.sight import limited
from saplan.methods.ablations import Ablated, ablated
from saplan.methods.agent import Agent
from saplan.perception.fitted import FittedGame


def transfer(agent: Agent, game: Game[Any]) -> Agent:
    """The agent in another world, which it sees as far as it has learnt to see.

    `InputError` if it has other attributes or actions, or shows other observations.
    """
    trained = agent.game
    if isinstance(trained, FittedGame) or isinstance(game, FittedGame):
        raise InputError("an agent with fitted attributes cannot move to another world: its attributes belong to one")
    if isinstance(trained, Ablated):
        game = ablated(game, trained.algebra)
    check_same_kind(trained, game)
    moved: Agent = dataclasses.replace(agent, game=limited(game, trained))  # type: ignore[type-var]
    return moved


def check_same_kind(trained: Game[Any], game: Game[Any]) -> None:
    """Raises `InputError` unless a game has the attributes, actions and observations of the trained one."""
    for what, had, has in (
        ("attributes", trained.space, game.space),
        ("actions", ", ".join(trained.actions), ", ".join(game.actions)),
        ("words in its observations", trained.vocabulary, game.vocabulary),
        ("pictures as observations", trained.picture, game.picture),
    ):
        if had != has:
            raise InputError(f"the agent cannot move to this world, whose {what} differ: {had} there, {has} here")
    if not game.vocabulary and trained.slots != game.slots:
        raise InputError(f"the agent cannot move to this world: it sees {trained.slots} numbers, not {game.slots}")

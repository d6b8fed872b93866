"""A trained agent in another world of the same attributes and actions."""

import dataclasses
from typing import Any

from saplan.errors import InputError
from saplan.games import Game
from saplan.games.sight import limited
from saplan.games.wrapper import unwrapped
from saplan.methods.ablations import Ablated, ablated
from saplan.methods.agent import Agent
from saplan.methods.oracle.agent import Oracle
from saplan.perception.fitted import FittedGame
from saplan.training.evaluate import evaluate

BUDGET = 150
"""Steps per task in the paper."""
ORACLE_TASKS, ORACLE_SEED, ORACLE_BUDGET = 200, 1_000_004, 2000
"""The tasks by which the oracle's need is measured."""


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


def scaled_budget(game: Game[Any], trained: Game[Any]) -> int:
    """The usual budget of steps, scaled with the steps that the oracle needs in a game and in the trained one.

    Without an oracle, or where it needs fewer steps, the usual budget.
    """
    try:
        here, there = (oracle_need(one, ORACLE_TASKS, ORACLE_SEED, ORACLE_BUDGET) for one in (game, trained))
    except InputError:
        return BUDGET
    return max(BUDGET, round(BUDGET * here / there))


def oracle_need(game: Game[Any], tasks: int, seed: int, budget: int) -> float:
    """The mean steps of the tasks that the oracle solves: those that it does not solve say nothing of their need."""
    result = evaluate(Oracle(unwrapped(game)), tasks, seed, budget)
    return float(result.steps[result.success].mean()) if result.success.any() else float(budget)


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

"""The rule card of a game: what a person, or a program, must know to play it."""

import inspect
from typing import Any

import jax.numpy as jnp
import numpy as np

from saplan.envs.goal_env import GoalEnv
from saplan.envs.text import strong
from saplan.games import Game
from saplan.games.scene import Scene

PORTRAIT_SEED = 5
PORTRAIT_STEPS = 250


def rule_card(game: Game[Any], colour: bool = False) -> str:
    """The card as text: the rules in words, then attributes, actions and admissible transitions."""
    space = game.space
    attributes = [f"{name} ∈ {block.symbol}" for name, block in zip(space.names, space.blocks, strict=True)]
    transitions = game.admissible()
    widest = max(len(name) for name, _ in transitions)
    lines = [f"{name:<{widest}}  {space.format_delta(jnp.array(delta))}" for name, delta in transitions]
    sections = [
        strong(game.name.upper(), colour),
        _rules(game),
        strong("Attributes", colour) + "\n  " + "  ".join(attributes),
        strong("Actions", colour) + "\n  " + "  ".join(_quoted(action) for action in game.actions),
        strong("Admissible transitions δρ", colour) + "".join(f"\n  {line}" for line in lines),
    ]
    return "\n\n".join(sections)


def rule_data(game: Game[Any]) -> dict[str, Any]:
    """The card as data, for `--json`."""
    space = game.space
    return {
        "name": game.name,
        "rules": _rules(game),
        "attributes": [{"name": n, "algebra": b.symbol} for n, b in zip(space.names, space.blocks, strict=True)],
        "actions": list(game.actions),
        "transitions": [{"name": name, "delta": _changes(game, delta)} for name, delta in game.admissible()],
    }


def portrait(game: Game[Any]) -> Scene:
    """A game well under way, the same one every time, for pictures."""
    env = GoalEnv(game)
    env.reset(seed=PORTRAIT_SEED)
    for action in np.random.default_rng(PORTRAIT_SEED).integers(len(game.actions), size=PORTRAIT_STEPS):
        env.step(action)
    return env.scene()


def _rules(game: Game[Any]) -> str:
    """A game's docstring is its rule card."""
    return inspect.getdoc(type(game)) or ""


def _changes(game: Game[Any], delta: tuple[float, ...]) -> dict[str, float]:
    parts = zip(game.space.names, game.space.blocks, delta, strict=True)
    return {name: x for name, block, x in parts if x != block.identity}


def _quoted(action: str) -> str:
    return f"'{action}'" if " " in action else action

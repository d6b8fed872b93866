"""Why a task failed, in sentences: what is missing, what was attempted how often, and what is out of reach."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from saplan.algebra import Product
from saplan.games.game import Game
from saplan.goals import Goal, format_goal, meets
from saplan.planning.certificate import why_not
from saplan.render.explanation import Explanation

NAMED = 3
"""Transitions that are listed, those that failed most often first."""


def why_failed(
    game: Game[Any],
    rho: Sequence[float],
    goal: Goal,
    attempts: Iterable[tuple[str, bool | None]],
    explanation: Explanation,
    ending: str,
) -> tuple[str, ...]:
    """Sentences about a task that ended at ρ without its goal.

    `attempts` are the names of the transitions with their success, None for changes by a method without attempts.
    """
    now = np.array(rho, np.float32)
    sentences = [f"{ending}: {', '.join(missing(game.space, now, goal))}.", *tried_sentences(list(attempts))]
    if (reason := why_not(game, now, goal)) is not None:
        sentences.append(f"From here the goal is out of reach: {reason}.")
    elif not explanation.found:
        sentences.append(f"The last search: {explanation.words}.")
    elif explanation.path:
        steps = [step.steps for step in explanation.path if step.steps is not None]
        about = f", about {sum(steps):.0f} steps" if steps else ""
        sentences.append(f"The plan still had {_counted(len(explanation.path), 'transition')}{about}.")
    return tuple(sentences)


def missing(space: Product, rho: Float[np.ndarray, "K"], goal: Goal) -> list[str]:
    """The conditions of the goal that do not hold, with the present values."""
    low, high = np.asarray(goal.low), np.asarray(goal.high)
    found = []
    for k, (name, block) in enumerate(zip(space.names, space.blocks, strict=True)):
        if not bool(meets(low[k], high[k], rho[k])):
            alone = np.arange(space.size) == k
            asked = format_goal(space, Goal(np.where(alone, low, -np.inf), np.where(alone, high, np.inf)))
            found.append(f"{name} is {block.format(float(rho[k]))} (goal {asked})")
    return found


def tried_sentences(attempts: list[tuple[str, bool | None]]) -> list[str]:
    """How often each transition was attempted, and how often it failed."""
    if not attempts:
        return ["No attribute changed."]
    if all(success is None for _, success in attempts):
        return [f"This method makes no plans. It made {_counted(len(attempts), 'change')} of attributes."]
    made, failed = (Counter(name for name, success in attempts if success is one) for one in (True, False))
    if not failed:
        return [f"{_counted(len(attempts), 'attempt')}, none of them failed."]
    listed = [f"“{name}” failed {times} of {times + made[name]} times" for name, times in failed.most_common(NAMED)]
    return [f"{len(attempts)} attempts, {failed.total()} of them failed: {', '.join(listed)}."]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

"""All methods under one roof: what training, storing and evaluating an agent need to know of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from saplan.errors import unknown_name
from saplan.games import Game
from saplan.methods import base as training
from saplan.methods import curriculum
from saplan.methods.agent import Agent
from saplan.methods.base import Report
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.memory import condense
from saplan.methods.unstructured import learner as unstructured
from saplan.methods.unstructured.settings import UnstructuredSettings, unstructured_settings
from saplan.rl.settings import Settings, settings_for

AnyAgent = Agent


@dataclass(frozen=True)
class Method:
    """A way to train an agent."""

    name: str
    settings: type[Settings]
    settings_for: Callable[[Game[Any], bool], Settings]
    """The defaults for a game; with True, the variant nearest to the paper."""
    begin: Callable[[Game[Any], Any, PRNGKeyArray], Any]
    """A learner that knows nothing."""
    update: Callable[[Game[Any], Any, int, Any], tuple[Any, Report]]
    """One rollout and all that is learnt from it."""
    agent_of: Callable[[Any, Game[Any], Any], AnyAgent]
    """What of a learner is used after training."""
    untrained: Callable[[Game[Any], Any], AnyAgent]
    """An agent of the right shape, to be filled."""
    counts: str
    """What `Report.known` counts."""


def _agent_of(learner: training.Learner, game: Game[Any], settings: Settings) -> StructuredAgent:
    return StructuredAgent(learner.policy, learner.detector, *condense(learner.memory), game, settings)


def _untrained(game: Game[Any], settings: Settings) -> StructuredAgent:
    return _agent_of(training.begin_training(game, settings, jax.random.key(0)), game, settings)


METHODS = {
    method.name: method
    for method in (
        Method(
            "structured", Settings, settings_for, training.begin_training, training.update, _agent_of, _untrained, "|𝓑|"
        ),
        Method(
            "unstructured", UnstructuredSettings, unstructured_settings,
            unstructured.begin_unstructured, unstructured.update_unstructured, unstructured.agent_of,
            unstructured.untrained, "pairs",
        ),
        Method(
            "curriculum", curriculum.CurriculumSettings, curriculum.curriculum_settings, curriculum.begin_curriculum,
            curriculum.update_curriculum, curriculum.agent_of, curriculum.untrained, "stage",
        ),
    )
}  # fmt: skip
"""Those that are trained. The oracle is not."""


def find_method(name: str) -> Method:
    """The method of a name, or `InputError`."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]

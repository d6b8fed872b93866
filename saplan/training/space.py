"""A space found before training: by random play, and again by the play of an agent that has learnt to explore."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
from jaxtyping import Array, Int, PRNGKeyArray

from saplan.errors import InputError
from saplan.games.game import Game
from saplan.methods.policy import exploration_preference
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.settings import StructuredSettings
from saplan.perception.found_space import FoundGame, found_from_json, with_space
from saplan.perception.suggest import Suggestion, suggest
from saplan.perception.transitions import Transitions, play_freely
from saplan.storage.json_data import read_json
from saplan.training.train import train

PLAY = 200_000
"""Steps of play before each suggestion."""
SCOUT = 0.1
"""Share of the training steps after which the space is asked for again."""
AUTO, DECLARED = "auto", "declared"


def find_space(
    game: Game[Any], settings: StructuredSettings, steps: int, seed: int, show: Callable[[str], None]
) -> FoundGame[Any]:
    """The game with a found space. The same seed finds the same space."""
    return with_space(game, explored_suggestion(game, settings, int(SCOUT * steps), PLAY, seed, show))


def explored_suggestion(
    game: Game[Any], settings: StructuredSettings, scout: int, play: int, seed: int, show: Callable[[str], None]
) -> Suggestion:
    """The space that play suggests, half of it beyond random play.

    `play` steps of random play suggest a first space. A scout trains with it for `scout` steps, and its exploration
    policy plays as long where random play does not get to; both plays together decide. The scout is then forgotten.
    """
    played = play_freely(game, play, seed)
    first = suggest(played)
    for line in first.lines():
        show(line)
    scout = max(settings.lanes * settings.rollout, scout)
    agent = train(with_space(game, first), scout, seed, settings, eval_points=0)
    assert isinstance(agent, StructuredAgent)
    found = suggest(played + explorer_play(agent, play, seed + 1))
    changes = list(changed_verdicts(first, found))
    show(f"asked again after {scout:,} steps of training: {'; '.join(changes) or 'the same space'}")
    return found


def explorer_play(agent: StructuredAgent, steps: int, seed: int) -> Transitions:
    """Play by an agent's exploration policy, in the raw attributes of its game."""
    seen = agent.game

    def act(key: PRNGKeyArray, states: Any) -> Int[Array, "lanes"]:
        trunk = agent.policy.trunk(jax.vmap(seen.observe)(states), jax.vmap(seen.attributes)(states))
        return jax.random.categorical(key, exploration_preference(agent.policy, agent.settings, trunk), axis=-1)

    raw = seen.game if isinstance(seen, FoundGame) else seen
    return play_freely(raw, steps, seed, act=act, game_steps=agent.settings.game_steps)


def changed_verdicts(before: Suggestion, after: Suggestion) -> Iterator[str]:
    """What a later suggestion says differently, in words."""
    old = {one.names: one for one in before.verdicts}
    for one in after.verdicts:
        earlier = old.get(one.names)
        if earlier is None:
            yield f"{one.name} is one attribute in {one.block.symbol}"
        elif earlier.block.symbol != one.block.symbol or earlier.candidate.order != one.candidate.order:
            yield f"{one.name} is in {one.block.symbol}, not in {earlier.block.symbol}"
        elif one.turns and one.turns != earlier.turns:
            yield f"{' and '.join(one.turns)} move in the frame of {one.name}"
        elif one.decided and not earlier.decided:
            yield f"{one.name} is in {one.block.symbol}, now decided"


def read_space(path: Path, game: Game[Any]) -> FoundGame[Any]:
    """The game with the space in a file that `saplan suggest --json` wrote."""
    data = read_json(path)
    rows = data.get("attributes") if isinstance(data, dict) else data
    try:
        return with_space(game, found_from_json(rows))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None

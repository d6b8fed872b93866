"""Copies trained agents into the package, in half precision: python benchmarks/ship.py RUN [RUN ...].

    python benchmarks/ship.py --evidence switches exchange mining

gives agents that ship already, but were trained before training gathered evidence of what holds beyond its range
(`saplan.methods.structured.evidence`), that evidence: they play as in training, without learning, and the outcomes of
their attempts are tested.
"""

import sys
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.evidence import gather_evidence
from saplan.methods.structured.learner import Structured, StructuredKnowledge, write_replays
from saplan.methods.structured.memory import NO_ENTRY, PER_ENTRY
from saplan.methods.update import Learner
from saplan.storage.json_data import read_json
from saplan.training.provenance import code, command
from saplan.training.store import MANIFEST, load_agent, save_agent, shipped

LANES, UPDATES, SEED = 256, 128, 0
"""Games side by side, rollouts, and the seed of the play that gathers evidence."""


def ship(run: Path) -> None:
    """Copies one agent with the facts about its training in its manifest."""
    agent, config = load_agent(run)
    about = {**(read_json(run / MANIFEST).get("about") or {}), "command": command(config)}
    place = shipped(config.game.name, config.method)
    save_agent(place, agent, config, half=True, about=about)
    print(f"{run} → {place}")


def add_evidence(name: str) -> None:
    """Gives the shipped structured agent of a game evidence from play."""
    place = shipped(name, "structured")
    agent, config = load_agent(place)
    assert isinstance(agent, StructuredAgent)
    found = play_for_evidence(agent)
    steps = LANES * UPDATES * agent.settings.rollout
    about = {**(read_json(place / MANIFEST).get("about") or {}), "evidence": {"steps": steps, "code": code()}}
    save_agent(place, found, config, half=True, about=about)
    print(f"{place}: {found.evidence.tested.tolist()} tests, shares right {found.evidence.right.tolist()}")


def play_for_evidence(agent: StructuredAgent) -> StructuredAgent:
    """The agent with evidence from the outcomes of its attempts, in games as training plays them."""
    method, game, settings = Structured(), agent.game, replace(agent.settings, lanes=LANES)
    key, begin_key = jax.random.split(jax.random.key(SEED))
    learner = method.begin(game, settings, begin_key)
    known = (*PER_ENTRY, "size", "overflow", "explored", "executed")
    memory = replace(learner.knowledge.memory, **{field: getattr(agent.memory, field) for field in known})
    knowledge = replace(learner.knowledge, memory=memory, detector=agent.detector)
    learner = replace(learner, policy=agent.policy, knowledge=knowledge)

    @eqx.filter_jit
    def play(learner: Learner[StructuredKnowledge], key: PRNGKeyArray) -> Learner[StructuredKnowledge]:
        rollout = method.play(game, settings, learner, key)
        entry = jnp.full(len(rollout.flat.action), NO_ENTRY, jnp.int32)
        _, outcomes = write_replays(learner.knowledge, entry, rollout.flat, False)
        knowledge = replace(learner.knowledge, outcomes=outcomes)
        played: Learner[StructuredKnowledge] = replace(learner, knowledge=knowledge, lanes=rollout.lanes)
        return played

    for one in jax.random.split(key, UPDATES):
        learner = play(learner, one)
    evidence = gather_evidence(agent.detector, game.space, memory.delta, learner.knowledge.outcomes)
    found: StructuredAgent = replace(agent, evidence=evidence)
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--evidence"]:
        for argument in sys.argv[2:]:
            add_evidence(argument)
    else:
        for argument in sys.argv[1:]:
            ship(Path(argument))

"""The learnt model of an agent as a planning problem: for export to other planners, and for plans by algebra.

An edge detector is a function of ρ; other planners read conditions. So the conditions of every change are read off the
detector, and compared with it at states that were not used for reading.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from saplan.algebra import Product
from saplan.errors import InputError
from saplan.goals import Goal
from saplan.methods.agent import Agent, PlannerSettings, planner_settings_for
from saplan.methods.structured.agent import StructuredAgent
from saplan.planning import Edges
from saplan.planning.algebraic import find_plan
from saplan.planning.certificate import unreachable_because
from saplan.planning.integer_program import Status
from saplan.planning.needs import Needs, read_needs
from saplan.planning.problem import Problem

WALKS, LENGTH = 64, 48
"""Random walks through the model, and their changes."""
REFERENCES = 64
"""States from which needs are read off."""
NOISE = (0.0, 0.02, 0.1)
"""Shares of states at which the detector may contradict a condition; the share that agrees best is taken."""
NODES = 20_000
"""Nodes of the search that answers what counts of changes leave open."""


@dataclass(frozen=True)
class LearntModel:
    """What an agent has learnt, from one start on."""

    agent: StructuredAgent
    planner: PlannerSettings
    problem: Problem
    """The trusted changes with their typical costs and their needs. A goal need not be set."""
    entries: Int[np.ndarray, "C"]
    """The entry of 𝓑 that each change comes from."""
    agreement: Float[np.ndarray, "C"]
    """Share of states at which the conditions of each change say the same as the edge detector."""
    states: int
    """How many states that is; none of them was used to read the conditions."""
    cost_range: tuple[Float[np.ndarray, "C"], Float[np.ndarray, "C"]]
    """The least and the greatest cost of each change at the states where it can be made."""

    @property
    def agrees(self) -> float:
        """The mean agreement of all changes that can be made."""
        return float(np.mean(self.agreement[self.problem.usable])) if self.problem.usable.any() else 1.0

    def edges(self, rho: Float[np.ndarray, "n K"]) -> Edges:
        """The trusted changes as the detector prices them."""
        found = self.agent.edges(np.asarray(rho, np.float32), self.planner)
        ends, cost, *estimates = found
        own = [x if x is None else x[:, self.entries] for x in estimates]
        return Edges(ends[:, self.entries], cost[:, self.entries], *own)

    def feasible(self, rho: Float[np.ndarray, "n K"]) -> Bool[np.ndarray, "n C"]:
        """Whether the detector finds each change feasible at each ρ."""
        return np.asarray(np.isfinite(self.edges(rho).cost))

    def notes(self) -> list[str]:
        """One line about each change: how far its conditions can be trusted, and how far its cost varies."""
        least, greatest = self.cost_range
        return [
            f"agrees with the edge detector at {share:.1%} of {self.states} states. cost {low:.3g} to {high:.3g}"
            for share, low, high in zip(self.agreement, least, greatest, strict=True)
        ]

    def summary(self) -> list[str]:
        """What the conditions are and how well they agree, in sentences."""
        count = int(self.problem.usable.sum())
        return [
            f"The model that a structured agent learnt of {self.agent.game.name}: {count} changes.",
            f"The conditions are read off the edge detector. They agree with it at {self.agrees:.1%} of "
            f"{self.states} states reached by random changes from the start.",
        ]


def learnt_model(
    agent: Agent, start: Float[np.ndarray, "K"], goal: Goal | None = None, planner: PlannerSettings | None = None
) -> LearntModel:
    """The learnt model of a structured agent, read off at states that random changes lead to from a start."""
    if not isinstance(agent, StructuredAgent):
        raise InputError("only structured agents have learnt a set of changes; this agent has no such model")
    planner = planner_settings_for(agent.settings) if planner is None else planner
    entries = np.flatnonzero(agent.planned)
    size = agent.game.space.size
    free = np.full(size, np.inf)
    low, high = (-free, free) if goal is None else (np.asarray(goal.low, float), np.asarray(goal.high, float))
    deltas = np.asarray(agent.memory.delta, float)[entries]
    spread = np.asarray(agent.memory.spread, float)[entries]
    spread = np.where(spread > np.array(agent.game.space.grain), spread, 0.0)
    problem = Problem(
        agent.game.space, np.asarray(start, float), low, high, deltas, np.ones(len(entries)), spread=spread
    )
    unread = np.ones(len(entries))
    return _read(LearntModel(agent, planner, problem, entries, unread, 0, (unread, unread)))


def _read(model: LearntModel) -> LearntModel:
    """The model with needs, costs and agreement, read off the detector."""
    random = np.random.default_rng(0)
    met = random.permutation(_walk(model, random))
    references, others = met[::2][:REFERENCES], met[1::2]
    others = others if len(others) else references
    can = model.feasible(others)
    problem = model.problem
    choices = [read_needs(problem.space, model.feasible, references, noise=noise) for noise in NOISE]
    known = model.feasible(references)
    needs = max(choices, key=lambda choice: np.mean(_holds(problem, choice, references) == known))
    cost = model.edges(met).cost.astype(float)
    real = np.isfinite(cost)
    typical = [float(np.median(column[ok])) if ok.any() else np.inf for column, ok in zip(cost.T, real.T, strict=True)]
    ranges = np.min(cost, axis=0, initial=np.inf), np.max(np.where(real, cost, 0.0), axis=0, initial=0.0)
    agreement = np.mean(_holds(problem, needs, others) == can, axis=0)
    problem = replace(problem, needs=needs, costs=np.array(typical))
    return replace(model, problem=problem, agreement=agreement, states=len(others), cost_range=ranges)


def _holds(problem: Problem, needs: Needs, rho: Float[np.ndarray, "n K"]) -> Bool[np.ndarray, "n C"]:
    """Whether the conditions of each change hold at each ρ, and its end lies in the space."""
    changes = np.arange(len(problem.costs))
    ends = problem.repeat(np.repeat(rho, len(changes), axis=0), np.tile(changes, len(rho)))
    return np.asarray(needs.hold(rho) & problem.inside(ends).reshape(len(rho), len(changes)))


def _walk(model: LearntModel, random: np.random.Generator) -> Float[np.ndarray, "n K"]:
    """Every ρ on random walks from the start, along changes that the detector finds feasible, varied as they vary.

    Each walk prefers some changes, so that the walks spread out and do not all stay near the start.
    """
    problem, start = model.problem, np.asarray(model.problem.start, np.float32)
    rho = np.tile(start, (WALKS, 1))
    preference = random.exponential(size=(WALKS, len(problem.costs))) ** 2
    met = [rho]
    for _ in range(LENGTH):
        priced = model.edges(rho)
        can = np.isfinite(priced.cost)
        chosen = np.argmax(can * preference * random.uniform(0.01, 1.0, can.shape), axis=1)
        moved = priced.ends[np.arange(WALKS), chosen]
        varied = moved + problem.width[chosen] * random.uniform(-np.sqrt(3), np.sqrt(3), moved.shape)
        moved = np.where(problem.inside(varied)[:, None], varied, moved).astype(np.float32)
        rho = np.where(can.any(axis=1, keepdims=True), moved, start)
        met.append(rho)
    return np.unique(np.concatenate(met), axis=0).astype(float)


def plan_data(model: LearntModel) -> dict[str, Any]:
    """The plan by algebra as data: every change with its cost and probability where the plan passes.

    Changes that vary count with their means.
    """
    problem, space = replace(model.problem, spread=None), model.problem.space
    plan = find_plan(problem, model.feasible, nodes=NODES)
    priced = model.edges(plan.rho) if plan.found else None
    steps = []
    for k, change in enumerate(map(int, plan.transitions)):
        assert priced is not None
        assert priced.probability is not None
        steps.append(
            {
                "change": space.format_delta(problem.deltas[change]),
                "entry": int(model.entries[change]),
                "needs": "" if problem.needs is None else problem.needs.describe(space, change),
                "cost": round(float(priced.cost[k, change]), 6),
                "probability": round(float(priced.probability[k, change]), 6),
                "rho": _rho_data(space, plan.rho[k + 1]),
            }
        )
    why = unreachable_because(problem) if plan.status is Status.INFEASIBLE else None
    return {
        "game": model.agent.game.name,
        "start": _rho_data(space, problem.start),
        "outcome": plan.status.name.lower(),
        "words": why or plan.status.value,
        "cost": None
        if priced is None
        else round(float(np.sum(priced.cost[np.arange(len(steps)), plan.transitions])), 6),
        "model_cost": round(plan.cost, 6) if plan.found else None,
        "model_lower_bound": round(plan.bound, 6) if np.isfinite(plan.bound) else None,
        "agreement": round(model.agrees, 6),
        "states": model.states,
        "steps": steps,
    }


def _rho_data(space: Product, rho: Float[np.ndarray, "K"]) -> dict[str, str]:
    return {name: block.format(float(x)) for name, block, x in zip(space.names, space.blocks, rho, strict=True)}

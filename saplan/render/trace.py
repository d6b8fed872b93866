"""What a method thinks at one moment: the path it means to take, and the first transitions that it weighed."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from saplan.games import Game
from saplan.methods.executor import AnyRoute, Executor, PlanExecutor, PlannerSettings
from saplan.methods.oracle import FAR, GraphOracle, MiningOracle, OracleExecutor, exact_edges, lengths
from saplan.methods.structured.agent import Agent, InExpectation, edge_outlook, in_batches
from saplan.methods.unstructured.agent import TablePlanner
from saplan.planning import Outcome, Plan, Ways

MOST_OPTIONS = 12
"""First transitions that are shown."""
SEEMS_REACHED = "as the agent perceives things, the goal holds already"
OUTSIDE = "leads outside"
"""A change that leaves the space is none that was weighed: what networks say of it means nothing."""


@dataclass(frozen=True)
class PlanStep:
    """One transition of a path."""

    name: str
    change: str
    chance: float | None
    steps: float | None
    """What is expected of it, where the method knows."""
    rho: tuple[float, ...]
    """Where it leads."""


@dataclass(frozen=True)
class Alternative:
    """A transition that could come first."""

    name: str
    change: str
    chance: float | None
    steps: float | None
    cost: float | None
    """What the whole way costs that begins with it; None if it leads nowhere."""
    note: str
    """Why it has no cost."""
    chosen: bool


@dataclass(frozen=True)
class Explanation:
    """A path, or why there is none, and what was weighed."""

    found: bool
    words: str
    outcome: str
    """`found`, `unreachable`, `spent` or `late` of a search; `none` by a method that makes no plan."""
    path: tuple[PlanStep, ...] = ()
    options: tuple[Alternative, ...] = ()
    unit: str = ""
    """What costs are counted in."""


class Outlook(NamedTuple):
    """What is expected of all transitions at several ρ; NaN where nothing is known."""

    chance: Float[np.ndarray, "n C"]
    steps: Float[np.ndarray, "n C"]


def explain(executor: Executor) -> Explanation:
    """What the walker of a single task has on its mind, once it has settled what to try."""
    if isinstance(executor, PlanExecutor | GraphOracle):
        return _on_a_route(executor)
    if isinstance(executor, MiningOracle):
        return _by_values(executor)
    return Explanation(True, "this method makes no plan: one policy walks straight for the goal", "none")


def name_of(game: Game[Any], delta: Float[np.ndarray, "K"]) -> str:
    """A change in words, where the game has words for it."""
    slack = np.array([block.tolerance for block in game.space.blocks])
    for words, known in game.admissible():
        if np.all(np.abs(np.asarray(known) - delta) <= slack + 1e-6):
            return words
    return game.space.format_delta(delta)


def _on_a_route(executor: PlanExecutor | GraphOracle) -> Explanation:
    route, rho = executor.routes[0], executor.rho[0]
    unit = "steps" if isinstance(executor, GraphOracle) else "nats"
    ways = None if route is None else route.ways(rho)
    if route is None or ways is None:
        holds = bool(np.all((rho >= executor.low[0]) & (rho <= executor.high[0])))
        outcome = Outcome.FOUND if holds else Outcome.SPENT
        return Explanation(False, SEEMS_REACHED if holds else outcome.value, outcome.name.lower(), unit=unit)
    chosen = int(executor.change[0] if isinstance(executor, GraphOracle) else executor.transition[0])
    plan = _plan_from(route, rho, chosen, bool(np.isfinite(ways.total[chosen])))
    found = plan.outcome is Outcome.FOUND
    words = plan.outcome.value if found else _why_lost(executor, route, plan.outcome)
    first, leads = _first_steps(executor), np.isfinite(ways.total)
    total = np.where(leads, ways.total, np.inf)
    total[leads] += (_first_costs(executor, ways, first) - ways.cost)[leads]
    options = _options(executor, total, first, chosen)
    return Explanation(found, words, plan.outcome.name.lower(), _legs(executor, plan), options, unit)


def _plan_from(route: AnyRoute, rho: Float[np.ndarray, "K"], chosen: int, leads: bool) -> Plan:
    """The path that begins with the transition that was chosen: of several good ones not always the cheapest."""
    plan = route.plan(rho)
    if plan.outcome is not Outcome.FOUND or not plan.transitions or plan.transitions[0] == chosen or not leads:
        return plan
    end = route.end(rho, chosen)
    rest = route.plan(end)
    path = (tuple(map(float, rho)), *(rest.rho or (tuple(map(float, end)),)))
    return Plan(Outcome.FOUND, plan.cost, path, (chosen, *rest.transitions))


def _legs(executor: PlanExecutor | GraphOracle, plan: Plan) -> tuple[PlanStep, ...]:
    if not plan.transitions:
        return ()
    places = np.array(plan.rho, np.float32)
    outlook = _outlook(executor, places[:-1])
    plan_steps = []
    for k, transition in enumerate(plan.transitions):
        delta = _change(executor, places[k], transition)
        plan_steps.append(
            PlanStep(
                name_of(executor.game, delta), executor.seen.space.format_delta(delta),
                _number(outlook.chance[k, transition]), _number(outlook.steps[k, transition]), plan.rho[k + 1],
            )
        )  # fmt: skip
    return tuple(plan_steps)


def _options(
    executor: PlanExecutor | GraphOracle,
    total: Float[np.ndarray, "C"],
    steps: Float[np.ndarray, "C"],
    chosen: int,
) -> tuple[Alternative, ...]:
    chance = _outlook(executor, executor.rho).chance[0]
    # What leads nowhere is shown as well, the likelier first: one wants to know why it was not taken.
    known = np.isfinite(total) | _known(executor)
    known[chosen] = True
    order = np.lexsort((-np.nan_to_num(chance), total))
    best = [transition for transition in order if known[transition]][:MOST_OPTIONS]
    shown = [int(transition) for transition in (*best, *([chosen] if chosen not in best else []))]
    options = (_option(executor, transition, chance, steps, total, transition == chosen) for transition in shown)
    return tuple(option for option in options if option.note != OUTSIDE or option.chosen)


def _option(
    executor: PlanExecutor | GraphOracle,
    transition: int,
    chance: Float[np.ndarray, "C"],
    steps: Float[np.ndarray, "C"],
    total: Float[np.ndarray, "C"],
    chosen: bool,
) -> Alternative:
    delta, note = _change(executor, executor.rho[0], transition), ""
    if not np.isfinite(total[transition]):
        note = _why_no_way(executor, delta, float(chance[transition]))
    return Alternative(
        name_of(executor.game, delta), executor.seen.space.format_delta(delta), _number(chance[transition]),
        _number(steps[transition]), _number(total[transition]), note, chosen,
    )  # fmt: skip


def _why_no_way(executor: PlanExecutor | GraphOracle, delta: Float[np.ndarray, "K"], chance: float) -> str:
    space = executor.seen.space
    if not bool(space.contains(space.compose(jnp.asarray(executor.rho[0]), jnp.asarray(delta)))):
        return OUTSIDE
    floor = executor.planning.floor if isinstance(executor, PlanExecutor) else 0.0
    return "too unlikely" if chance <= floor else "no way on"


def _known(executor: PlanExecutor | GraphOracle) -> Bool[np.ndarray, "C"]:
    """Which transitions the method could try at all."""
    if isinstance(executor, GraphOracle):
        return np.ones(len(executor.oracle.delta), bool)
    return np.asarray(executor.agent.known(executor.rho[0])) > 0


def _first_steps(executor: PlanExecutor | GraphOracle) -> Float[np.ndarray, "C"]:
    """The steps that every transition should take from the present state, as it is seen."""
    if isinstance(executor, GraphOracle):
        return executor.nearest()[0][0]
    return np.asarray(executor.agent.first_edges(executor.state, executor.planning)[1][0], float)


def _first_costs(
    executor: PlanExecutor | GraphOracle, ways: Ways, steps: Float[np.ndarray, "C"]
) -> Float[np.ndarray, "C"]:
    """What a first transition costs as the walker sees it, which may know more than its route."""
    if isinstance(executor, GraphOracle):
        return steps
    seen = executor.agent.first_edges(executor.state, executor.planning)[0]
    return ways.cost if seen is None else np.asarray(seen[0], float) + ways.raised


def _change(executor: PlanExecutor | GraphOracle, rho: Float[np.ndarray, "K"], transition: int) -> np.ndarray:
    if isinstance(executor, GraphOracle):
        return executor.oracle.delta[transition]
    return np.asarray(executor.agent.change(rho, transition))


def _outlook(executor: PlanExecutor | GraphOracle, rho: Float[np.ndarray, "n K"]) -> Outlook:
    """What the method expects of all transitions at several ρ."""
    if isinstance(executor, GraphOracle):
        parts = in_batches(rho, partial(_by_rules, executor))
        chance = np.concatenate([np.asarray(part, float) for part in parts])[: len(rho)]
        return Outlook(chance, np.full(chance.shape, np.nan))
    planner = executor.agent.agent if isinstance(executor.agent, InExpectation) else executor.agent
    if isinstance(planner, Agent):
        parts = in_batches(rho, lambda batch: _learnt(planner, batch, executor.planning))
        return Outlook(*(np.concatenate([np.asarray(part[k], float) for part in parts])[: len(rho)] for k in (0, 1)))
    assert isinstance(planner, TablePlanner)
    chance = np.exp(-planner.edges(rho, executor.planning)[1].astype(float))
    return Outlook(chance, np.full(chance.shape, np.nan))


def _by_rules(executor: GraphOracle, rho: Float[np.ndarray, "n K"]) -> Float[Array, "n C"]:
    return exact_edges(executor.game, jnp.asarray(rho), jnp.asarray(executor.oracle.delta))[1]


@partial(jax.jit, static_argnames="planning")
def _learnt(
    agent: Agent, rho: Float[Array, "n K"], planning: PlannerSettings
) -> tuple[Float[Array, "n C"], Float[Array, "n C"]]:
    log_success, steps = edge_outlook(agent, rho, planning)
    return jnp.exp(log_success), steps


def _by_values(executor: MiningOracle) -> Explanation:
    """Mining's oracle has no path: it knows from everywhere how many steps are left, by way of every item."""
    length = np.asarray(lengths(executor.state, executor.walk_lengths))[0]
    remaining = executor.remaining(0, length)
    options = []
    for change, delta in enumerate(executor.oracle.delta):
        serving = executor.change_of == change
        if serving.any() and remaining[serving].min() < FAR:
            item = np.flatnonzero(serving)[np.argmin(remaining[serving])]
            options.append(
                Alternative(
                    name_of(executor.game, delta), executor.game.space.format_delta(delta), None,
                    float(length[item] + 1), round(float(remaining[item]), 2), "", change == int(executor.change[0]),
                )
            )  # fmt: skip
    options.sort(key=lambda option: option.cost or 0.0)
    words = "no path, but the steps that are left are known from everywhere" if options else Outcome.UNREACHABLE.value
    outcome = Outcome.FOUND if options else Outcome.UNREACHABLE
    return Explanation(bool(options), words, outcome.name.lower(), (), tuple(options), "steps")


def _why_lost(executor: OracleExecutor | PlanExecutor, route: AnyRoute, outcome: Outcome) -> str:
    """The outcome, and which conditions hold nowhere that the search came to."""
    met, low, high = route.met, executor.low[0], executor.high[0]
    space = executor.seen.space
    never = [
        f"{name} stays within {block.format(float(met[:, k].min()))} to {block.format(float(met[:, k].max()))}"
        if block.ordered
        else f"{name} never gets there"
        for k, (name, block) in enumerate(zip(space.names, space.blocks, strict=True))
        if not np.any((met[:, k] >= low[k]) & (met[:, k] <= high[k]))
    ]
    return f"{outcome.value}: {', '.join(never)}" if never else outcome.value


def _number(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None

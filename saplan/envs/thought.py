"""What a method thinks at one moment: the path it means to take, and the first transitions that it weighed."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from saplan.baselines.oracle import FAR, GraphOracle, MiningOracle, OracleWalker, exact_edges, lengths
from saplan.baselines.unstructured import TablePlanner
from saplan.games import Game
from saplan.model.agent import Agent, InExpectation, edge_outlook, in_batches
from saplan.model.walk import AnyRoute, Planning, PlanWalker, Walker
from saplan.planning import Outcome, Plan, Ways

MOST_OPTIONS = 12
"""First transitions that are shown."""
SEEMS_REACHED = "as the agent perceives things, the goal holds already"
OUTSIDE = "leads outside"
"""A change that leaves the space is none that was weighed: what networks say of it means nothing."""


@dataclass(frozen=True)
class Leg:
    """One transition of a path."""

    name: str
    change: str
    chance: float | None
    steps: float | None
    """What is expected of it, where the method knows."""
    rho: tuple[float, ...]
    """Where it leads."""


@dataclass(frozen=True)
class Option:
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
class Thought:
    """A path, or why there is none, and what was weighed."""

    found: bool
    words: str
    outcome: str
    """`found`, `unreachable`, `spent` or `late` of a search; `none` by a method that makes no plan."""
    path: tuple[Leg, ...] = ()
    options: tuple[Option, ...] = ()
    unit: str = ""
    """What costs are counted in."""


class Outlook(NamedTuple):
    """What is expected of all transitions at several ρ; NaN where nothing is known."""

    chance: Float[np.ndarray, "n C"]
    steps: Float[np.ndarray, "n C"]


def think(walker: Walker) -> Thought:
    """What the walker of a single task has on its mind, once it has settled what to try."""
    if isinstance(walker, PlanWalker | GraphOracle):
        return _on_a_route(walker)
    if isinstance(walker, MiningOracle):
        return _by_values(walker)
    return Thought(True, "this method makes no plan: one policy walks straight for the goal", "none")


def name_of(game: Game[Any], delta: Float[np.ndarray, "K"]) -> str:
    """A change in words, where the game has words for it."""
    slack = np.array([block.tolerance for block in game.space.blocks])
    for words, known in game.admissible():
        if np.all(np.abs(np.asarray(known) - delta) <= slack + 1e-6):
            return words
    return game.space.format_delta(delta)


def _on_a_route(walker: PlanWalker | GraphOracle) -> Thought:
    route, rho = walker.routes[0], walker.rho[0]
    unit = "steps" if isinstance(walker, GraphOracle) else "nats"
    ways = None if route is None else route.ways(rho)
    if route is None or ways is None:
        holds = bool(np.all((rho >= walker.low[0]) & (rho <= walker.high[0])))
        outcome = Outcome.FOUND if holds else Outcome.SPENT
        return Thought(False, SEEMS_REACHED if holds else outcome.value, outcome.name.lower(), unit=unit)
    chosen = int(walker.change[0] if isinstance(walker, GraphOracle) else walker.transition[0])
    plan = _plan_from(route, rho, chosen, bool(np.isfinite(ways.total[chosen])))
    found = plan.outcome is Outcome.FOUND
    words = plan.outcome.value if found else _why_lost(walker, route, plan.outcome)
    first, leads = _first_steps(walker), np.isfinite(ways.total)
    total = np.where(leads, ways.total, np.inf)
    total[leads] += (_first_costs(walker, ways, first) - ways.cost)[leads]
    options = _options(walker, total, first, chosen)
    return Thought(found, words, plan.outcome.name.lower(), _legs(walker, plan), options, unit)


def _plan_from(route: AnyRoute, rho: Float[np.ndarray, "K"], chosen: int, leads: bool) -> Plan:
    """The path that begins with the transition that was chosen: of several good ones not always the cheapest."""
    plan = route.plan(rho)
    if plan.outcome is not Outcome.FOUND or not plan.transitions or plan.transitions[0] == chosen or not leads:
        return plan
    end = route.end(rho, chosen)
    rest = route.plan(end)
    path = (tuple(map(float, rho)), *(rest.rho or (tuple(map(float, end)),)))
    return Plan(Outcome.FOUND, plan.cost, path, (chosen, *rest.transitions))


def _legs(walker: PlanWalker | GraphOracle, plan: Plan) -> tuple[Leg, ...]:
    if not plan.transitions:
        return ()
    places = np.array(plan.rho, np.float32)
    outlook = _outlook(walker, places[:-1])
    legs = []
    for k, transition in enumerate(plan.transitions):
        delta = _change(walker, places[k], transition)
        legs.append(
            Leg(
                name_of(walker.game, delta), walker.seen.space.format_delta(delta),
                _number(outlook.chance[k, transition]), _number(outlook.steps[k, transition]), plan.rho[k + 1],
            )
        )  # fmt: skip
    return tuple(legs)


def _options(
    walker: PlanWalker | GraphOracle,
    total: Float[np.ndarray, "C"],
    steps: Float[np.ndarray, "C"],
    chosen: int,
) -> tuple[Option, ...]:
    chance = _outlook(walker, walker.rho).chance[0]
    # What leads nowhere is shown as well, the likelier first: one wants to know why it was not taken.
    known = np.isfinite(total) | _known(walker)
    known[chosen] = True
    order = np.lexsort((-np.nan_to_num(chance), total))
    best = [transition for transition in order if known[transition]][:MOST_OPTIONS]
    shown = [int(transition) for transition in (*best, *([chosen] if chosen not in best else []))]
    options = (_option(walker, transition, chance, steps, total, transition == chosen) for transition in shown)
    return tuple(option for option in options if option.note != OUTSIDE or option.chosen)


def _option(
    walker: PlanWalker | GraphOracle,
    transition: int,
    chance: Float[np.ndarray, "C"],
    steps: Float[np.ndarray, "C"],
    total: Float[np.ndarray, "C"],
    chosen: bool,
) -> Option:
    delta, note = _change(walker, walker.rho[0], transition), ""
    if not np.isfinite(total[transition]):
        note = _why_no_way(walker, delta, float(chance[transition]))
    return Option(
        name_of(walker.game, delta), walker.seen.space.format_delta(delta), _number(chance[transition]),
        _number(steps[transition]), _number(total[transition]), note, chosen,
    )  # fmt: skip


def _why_no_way(walker: PlanWalker | GraphOracle, delta: Float[np.ndarray, "K"], chance: float) -> str:
    space = walker.seen.space
    if not bool(space.contains(space.compose(jnp.asarray(walker.rho[0]), jnp.asarray(delta)))):
        return OUTSIDE
    floor = walker.planning.floor if isinstance(walker, PlanWalker) else 0.0
    return "too unlikely" if chance <= floor else "no way on"


def _known(walker: PlanWalker | GraphOracle) -> Bool[np.ndarray, "C"]:
    """Which transitions the method could try at all."""
    if isinstance(walker, GraphOracle):
        return np.ones(len(walker.oracle.delta), bool)
    return np.asarray(walker.agent.known(walker.rho[0])) > 0


def _first_steps(walker: PlanWalker | GraphOracle) -> Float[np.ndarray, "C"]:
    """The steps that every transition should take from the present state, as it is seen."""
    if isinstance(walker, GraphOracle):
        return walker.nearest()[0][0]
    return np.asarray(walker.agent.first_look(walker.state, walker.planning)[1][0], float)


def _first_costs(walker: PlanWalker | GraphOracle, ways: Ways, steps: Float[np.ndarray, "C"]) -> Float[np.ndarray, "C"]:
    """What a first transition costs as the walker sees it, which may know more than its route."""
    if isinstance(walker, GraphOracle):
        return steps
    seen = walker.agent.first_look(walker.state, walker.planning)[0]
    return ways.cost if seen is None else np.asarray(seen[0], float) + ways.raised


def _change(walker: PlanWalker | GraphOracle, rho: Float[np.ndarray, "K"], transition: int) -> np.ndarray:
    if isinstance(walker, GraphOracle):
        return walker.oracle.delta[transition]
    return np.asarray(walker.agent.change(rho, transition))


def _outlook(walker: PlanWalker | GraphOracle, rho: Float[np.ndarray, "n K"]) -> Outlook:
    """What the method expects of all transitions at several ρ."""
    if isinstance(walker, GraphOracle):
        parts = in_batches(rho, partial(_by_rules, walker))
        chance = np.concatenate([np.asarray(part, float) for part in parts])[: len(rho)]
        return Outlook(chance, np.full(chance.shape, np.nan))
    planner = walker.agent.agent if isinstance(walker.agent, InExpectation) else walker.agent
    if isinstance(planner, Agent):
        parts = in_batches(rho, lambda batch: _learnt(planner, batch, walker.planning))
        return Outlook(*(np.concatenate([np.asarray(part[k], float) for part in parts])[: len(rho)] for k in (0, 1)))
    assert isinstance(planner, TablePlanner)
    chance = np.exp(-planner.edges(rho, walker.planning)[1].astype(float))
    return Outlook(chance, np.full(chance.shape, np.nan))


def _by_rules(walker: GraphOracle, rho: Float[np.ndarray, "n K"]) -> Float[Array, "n C"]:
    return exact_edges(walker.game, jnp.asarray(rho), jnp.asarray(walker.oracle.delta))[1]


@partial(jax.jit, static_argnames="planning")
def _learnt(
    agent: Agent, rho: Float[Array, "n K"], planning: Planning
) -> tuple[Float[Array, "n C"], Float[Array, "n C"]]:
    log_success, steps = edge_outlook(agent, rho, planning)
    return jnp.exp(log_success), steps


def _by_values(walker: MiningOracle) -> Thought:
    """Mining's oracle has no path: it knows from everywhere how many steps are left, by way of every item."""
    length = np.asarray(lengths(walker.state, walker.walk_lengths))[0]
    remaining = walker.remaining(0, length)
    options = []
    for change, delta in enumerate(walker.oracle.delta):
        serving = walker.change_of == change
        if serving.any() and remaining[serving].min() < FAR:
            item = np.flatnonzero(serving)[np.argmin(remaining[serving])]
            options.append(
                Option(
                    name_of(walker.game, delta), walker.game.space.format_delta(delta), None, float(length[item] + 1),
                    round(float(remaining[item]), 2), "", change == int(walker.change[0]),
                )
            )  # fmt: skip
    options.sort(key=lambda option: option.cost or 0.0)
    words = "no path, but the steps that are left are known from everywhere" if options else Outcome.UNREACHABLE.value
    outcome = Outcome.FOUND if options else Outcome.UNREACHABLE
    return Thought(bool(options), words, outcome.name.lower(), (), tuple(options), "steps")


def _why_lost(walker: OracleWalker | PlanWalker, route: AnyRoute, outcome: Outcome) -> str:
    """The outcome, and which conditions hold nowhere that the search came to."""
    met, low, high = route.met, walker.low[0], walker.high[0]
    space = walker.seen.space
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

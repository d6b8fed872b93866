"""A decision in words and rounded numbers, for the command line, the page, the films and JSON."""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from saplan.algebra import Product
from saplan.games.rule_cards import name_of
from saplan.goals import meets
from saplan.interpreter.program import interpretable
from saplan.methods.agent import Agent
from saplan.methods.decision import Alternatives, Decision
from saplan.methods.structured.agent import StructuredAgent
from saplan.planning import AnyRoute, Outcome, Plan, Route

MOST_OPTIONS = 12
"""First transitions that are shown."""
NO_PATH = "no path, but the expected steps to the goal are known from every place"
BOUNDS = {Outcome.SPENT: "max_nodes", Outcome.LATE: "max_seconds"}
"""The setting behind every bound of a search."""
NO_GAP = 0.005
"""Share of a plan's cost below which its distance from the lower bound rounds to nothing."""
OUTSIDE = "leads outside"
"""Note on a change that leaves the space. It is shown only if chosen: the estimates of networks mean nothing there."""


@dataclass(frozen=True)
class PlanStep:
    """One transition of a path."""

    name: str
    change: str
    chance: float | None
    steps: float | None
    """Estimated probability of success and expected steps; None where the method has no estimate."""
    rho: tuple[float, ...]
    """Attributes after it."""


@dataclass(frozen=True)
class Alternative:
    """A transition that could come first."""

    name: str
    change: str
    chance: float | None
    steps: float | None
    cost: float | None
    """Cost of the whole path that begins with it; None if no path does."""
    note: str
    """Why it has no cost."""
    chosen: bool


@dataclass(frozen=True)
class Explanation:
    """A path, or why there is none, and the alternatives that were weighed."""

    found: bool
    words: str
    outcome: str
    """`found`, `unreachable`, `spent` or `late` after a search; `holds` if the goal holds as the agent perceives it;
    `none` by a method that makes no plan."""
    path: tuple[PlanStep, ...] = ()
    options: tuple[Alternative, ...] = ()
    unit: str = ""
    """Unit of the costs."""
    step_price: float = 0.0
    """What one expected step costs in that unit; 0 where time has no price."""
    beyond: tuple[str, ...] = ()
    """Values on the path, or of the present ρ without one, that training never met, each in a sentence."""


def explain(agent: Agent, decision: Decision) -> Explanation:
    """A decision of an agent's executor in words."""
    outcome, weighed = decision.outcome, decision.alternatives
    found = outcome in (Outcome.FOUND, Outcome.NONE)
    if weighed is None:
        return Explanation(found, outcome.value, outcome.name.lower())
    path = tuple(
        PlanStep(*_named(agent, weighed.change(np.array(before, np.float32), step.transition)),
                 _rounded(step.probability), _rounded(step.steps), step.rho)
        for before, step in zip(decision.plan.rho[:-1], decision.plan.path, strict=True)
    )  # fmt: skip
    words = outcome.value
    if found and not path:
        words = NO_PATH
    elif found:
        words += _how_good(decision.plan)
    elif decision.route is not None:
        words = ": ".join([outcome.value, *_never_met(agent.perceived.space, decision.route)])
        words += _how_to_raise(outcome, decision.route)
    options = _options(agent, weighed, decision.chosen)
    rho = decision.plan.rho or (tuple(map(float, weighed.rho)),)
    beyond = agent.beyond(rho) if isinstance(agent, StructuredAgent) else ()
    return Explanation(found, words, outcome.name.lower(), path, options, weighed.unit, weighed.step_price, beyond)


def path_by_rules(agent: Agent, decision: Decision) -> list[Float[np.ndarray, "K"]]:
    """The changes of a path that leads to the goal from the true ρ; empty without a path, or if ρ is estimated."""
    return [] if agent.perceived is not agent.game or decision.outcome is not Outcome.FOUND else decision.changes


def _named(agent: Agent, delta: Float[np.ndarray, "K"]) -> tuple[str, str]:
    """Name and text of a change."""
    return name_of(agent.game, delta), agent.perceived.space.format_delta(delta)


def _options(agent: Agent, weighed: Alternatives, chosen: int | None) -> tuple[Alternative, ...]:
    """The cheapest alternatives, then those without a path, the likelier first: a reader asks why they lost."""
    order = np.lexsort((-np.nan_to_num(weighed.probability), weighed.cost))
    known = np.isfinite(weighed.cost) | np.isfinite(weighed.probability)
    shown = [int(transition) for transition in order if known[transition]][:MOST_OPTIONS]
    if chosen is not None and chosen not in shown and known.any():
        shown.append(chosen)
    options = (_option(agent, weighed, transition, transition == chosen) for transition in shown)
    return tuple(option for option in options if option.note != OUTSIDE or option.chosen)


def _option(agent: Agent, weighed: Alternatives, transition: int, chosen: bool) -> Alternative:
    delta, cost = weighed.change(weighed.rho, transition), float(weighed.cost[transition])
    numbers = _rounded(weighed.probability[transition]), _rounded(weighed.steps[transition]), _rounded(cost)
    note = "" if np.isfinite(cost) else _reason(agent.perceived.space, weighed, transition, delta)
    return Alternative(*_named(agent, delta), *numbers, note, chosen)


def _reason(space: Product, weighed: Alternatives, transition: int, delta: Float[np.ndarray, "K"]) -> str:
    """Why no path begins with a transition."""
    if not bool(_stays_inside(space, weighed.rho, delta)):
        return OUTSIDE
    return "too unlikely" if weighed.probability[transition] <= weighed.floor else "no path from there"


@interpretable
@partial(jax.jit, static_argnums=0)
def _stays_inside(space: Product, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Bool[Array, ""]:
    return space.contains(space.compose(rho, delta))


def _never_met(space: Product, route: AnyRoute) -> list[str]:
    """What arithmetic says, or the conditions of the goal that hold at no ρ that the search came to, as one text."""
    if isinstance(route, Route) and route.why:
        return [route.why]
    met = route.met
    never = [
        f"{name} stays within {block.format(float(met[:, k].min()))} to {block.format(float(met[:, k].max()))}"
        if block.ordered
        else f"{name} never gets there"
        for k, (name, block) in enumerate(zip(space.names, space.blocks, strict=True))
        if not np.any(meets(route.low[k], route.high[k], met[:, k]))
    ]
    return [", ".join(never)] if never else []


def _how_good(plan: Plan) -> str:
    """How far a plan is from the lower bound on the cost of any path."""
    if not plan.bound:  # in expectation, and beyond the start of a search that was cut short, nothing is proved
        return ""
    share = plan.gap / plan.cost if plan.cost > 0 else 0.0
    return ", proved cheapest" if share < NO_GAP else f", at most {share:.0%} above the lower bound"


def _how_to_raise(outcome: Outcome, route: AnyRoute) -> str:
    """What a search came to before a bound ended it, and the setting that raises the bound."""
    if outcome not in BOUNDS:
        return ""
    return (
        f"; it came to {len(route.met):,} values of the attributes, and PlannerSettings.{BOUNDS[outcome]} allows more"
    )


def _rounded(value: float | np.floating | None) -> float | None:
    return round(float(value), 4) if value is not None and np.isfinite(value) else None

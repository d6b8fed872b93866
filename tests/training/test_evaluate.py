"""Tasks carried out in the corridor, where the fewest possible steps are known."""

import itertools
import time
from collections import deque
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.games import make_game, task_set
from saplan.goals import Goal
from saplan.methods.agent import DEFAULT_PLANNER, PAPER_PLANNER, PlannerSettings, in_words
from saplan.methods.curriculum import CurriculumAgent, CurriculumSettings
from saplan.methods.executor import Attempt, EvalResult
from saplan.methods.oracle.agent import Oracle
from saplan.methods.plan_executor import FirstEdges, PlanExecutor
from saplan.methods.structured.agent import StructuredAgent
from saplan.planning import Outcome, Successors
from saplan.training.evaluate import causes_of_failure, evaluate, success_by_group
from saplan.training.store import load
from tests.methods.probe import COUNT_UP, GAME, TOGGLE, agent_of, begun, standing, trained

TASKS, BUDGET = 100, 40
STRICT = replace(DEFAULT_PLANNER, attempt_steps=12, penalty=2.0)


def fewest_steps(place: int, count: int, lamp: int, wanted: int) -> int:
    """Breadth-first search over the corridor's rules, written down once more."""
    queue, seen = deque([(place, count, lamp, 0)]), set()
    while queue:
        place, count, lamp, steps = queue.popleft()
        if count == wanted:
            return steps
        if (place, count, lamp) in seen:
            continue
        seen.add((place, count, lamp))
        last = GAME.length - 1
        queue.append((max(place - 1, 0), count, lamp, steps + 1))
        queue.append((min(place + 1, last), count, lamp, steps + 1))
        pressed = (count + (place == 0 and lamp == 1 and count < GAME.most), (lamp + (place == last)) % 2)
        queue.append((place, *pressed, steps + 1))
    raise AssertionError("unreachable")


def best_steps() -> np.ndarray:
    states, goals = task_set(GAME, TASKS, 0)
    rows = zip(
        *(np.asarray(x).tolist() for x in (states.place, states.count, states.lamp, goals.low[:, 0])), strict=True
    )
    return np.array([fewest_steps(place, count, lamp, int(wanted)) for place, count, lamp, wanted in rows])


@pytest.mark.parametrize("planning", [DEFAULT_PLANNER, PAPER_PLANNER], ids=["improved", "faithful"])
def test_the_tasks_succeed_nearly_as_fast_as_possible(planning: PlannerSettings) -> None:
    result = evaluate(trained(), TASKS, budget=BUDGET, planning=planning)
    assert result.success.mean() > 0.95
    best = best_steps()
    assert (result.steps >= best).all(), "nobody is faster than the fastest"
    assert result.steps[result.success].mean() < best.mean() + 1.5
    assert np.mean([attempt.success for attempt in result.attempts]) > 0.9


def test_the_books_of_a_walk_add_up() -> None:
    result = evaluate(trained(), TASKS, budget=BUDGET, planning=STRICT)
    spent = np.zeros(TASKS, int)
    for attempt in result.attempts:
        assert 1 <= attempt.steps <= STRICT.attempt_steps
        spent[attempt.task] += attempt.steps
    np.testing.assert_array_equal(spent[result.success], result.steps[result.success])


def test_evaluation_repeats_itself_and_seeds_matter() -> None:
    first, again = (evaluate(trained(), TASKS, budget=BUDGET) for _ in range(2))
    assert first.attempts == again.attempts
    np.testing.assert_array_equal(first.steps, again.steps)
    other = evaluate(trained(), TASKS, task_seed=1, budget=BUDGET)
    assert other.attempts != first.attempts


def executor(
    state,
    low: tuple[float, float],
    high: tuple[float, float],
    agent: StructuredAgent | None = None,
    planning=DEFAULT_PLANNER,
):
    goal, agent = Goal(jnp.array([low]), jnp.array([high])), agent or trained()
    return PlanExecutor(agent, agent.route_finder(planning), jax.tree.map(lambda x: x[None], state), goal, planning)


def test_who_is_there_takes_no_step() -> None:
    there = executor(standing(2, 2, 0), (2, -np.inf), (2, np.inf))
    result = there.run(BUDGET, 0)
    assert result.success.tolist() == [True]
    assert result.steps.tolist() == [0]
    assert result.attempts == []


def test_a_goal_is_reached_at_its_first_moment() -> None:
    one = executor(standing(0, 0, 1), (2, -np.inf), (2, np.inf))
    ends = [bool(moved[0]) for moved in one.moves(BUDGET, 0)]
    assert one.result.steps.tolist() == [2] == [len(ends)]
    assert ends == [True, True]
    assert [attempt.success for attempt in one.result.attempts] == [True, True]
    assert [attempt.rho for attempt in one.result.attempts] == [(0.0, 1.0), (1.0, 1.0)]


def test_a_budget_too_small_is_a_failure_that_cost_all_of_it() -> None:
    result = executor(standing(0, 0, 0), (3, -np.inf), (3, np.inf)).run(5, 0)
    assert result.success.tolist() == [False]
    assert result.steps.tolist() == [5]


def test_what_cannot_be_reached_is_tried_to_the_end() -> None:
    one = executor(standing(0, 3, 1), (1, -np.inf), (1, np.inf))
    result = one.run(BUDGET, 0)
    assert result.success.tolist() == [False]
    assert result.attempts, "it did not stand still"


@pytest.mark.parametrize("planning", [replace(DEFAULT_PLANNER, max_seconds=0.0), replace(DEFAULT_PLANNER, max_nodes=1)])
def test_a_search_without_time_or_room_is_no_crash(planning: PlannerSettings) -> None:
    result = executor(standing(0, 0, 0), (3, -np.inf), (3, np.inf), planning=planning).run(5, 0)
    assert result.success.tolist() == [False]


def test_an_agent_that_knows_nothing_fails_without_a_crash() -> None:
    ignorant = agent_of(begun(0))
    assert int(ignorant.memory.size) == 0
    result = executor(standing(0, 0, 0), (3, -np.inf), (3, np.inf), ignorant).run(5, 0)
    assert result.success.tolist() == [False]


@pytest.mark.parametrize(("patience", "steps"), [(1e9, 12), (1.5, 7)])
def test_an_attempt_that_takes_too_long_is_closed_and_its_edge_priced_up(patience: float, steps: int) -> None:
    # A policy that sees no goal and always walks left never toggles the lamp. It is sure that one step is enough, so
    # that it is given 1.5 × 1 + 5 steps, unless patience is endless.
    planning = replace(STRICT, patience=patience)
    agent = trained()
    outputs = agent.policy.network.head.outputs
    bias = jnp.array([100.0, 0, 0, 0, 0, 0])
    stubborn = eqx.tree_at(
        lambda a: (a.policy.network.head.outputs.weight, a.policy.network.head.outputs.bias),
        agent,
        (jnp.zeros_like(outputs.weight), bias),
    )
    one = executor(standing(0, 0, 0), (3, -np.inf), (3, np.inf), stubborn, planning)
    toggle = int(agent.memory.index(GAME.space, jnp.array(TOGGLE)))
    before = agent.edges(np.array([[0.0, 0.0]], np.float32), STRICT).cost[0, toggle]
    result = one.run(2 * steps + 1, 0)
    assert result.attempts == [Attempt(0, (0.0, 0.0), TOGGLE, False, steps)] * 2
    route = one.routes[0]
    assert route is not None
    successors = route.successors(np.zeros(2, np.float32))
    assert successors is not None
    assert successors.cost[toggle] == pytest.approx(before + 2 * STRICT.penalty, rel=1e-4)
    assert route.graph.cost[route.node(np.zeros(2)), toggle] == pytest.approx(before), "other tasks share the graph"


def test_causes_of_failure() -> None:
    result = EvalResult(
        success=np.array([True, False, False, False, False, False]),
        steps=np.full(6, 50),
        attempts=[
            Attempt(0, (0.0, 0.0), COUNT_UP, False, 50),  # succeeded in the end: no cause at all
            Attempt(1, (0.0, 0.0), TOGGLE, False, 10),  # possible, and a fifth of the budget
            Attempt(2, (0.0, 0.0), COUNT_UP, False, 12),  # impossible: the lamp is off
            Attempt(3, (0.0, 0.0), COUNT_UP, False, 9),  # impossible, but that was not much
            Attempt(4, (0.0, 0.0), TOGGLE, True, 40),  # no failed attempt
            Attempt(5, (0.0, 1.0), COUNT_UP, False, 6),  # possible, and more than what was not
            Attempt(5, (3.0, 1.0), COUNT_UP, False, 5),
        ],
    )
    assert causes_of_failure(trained(), result, 50) == {"navigation": 2, "edge detector wrong": 1, "out of steps": 2}
    settings = CurriculumSettings(hidden=trained().settings.hidden)
    agent_without = CurriculumAgent(trained().policy, jnp.ones((), jnp.int32), GAME, settings)
    assert causes_of_failure(agent_without, result, 50) == {"out of steps": 5}, (
        "no edge detector, nothing wrong with it"
    )
    nothing = EvalResult(np.array([True]), np.zeros(1, int))
    assert causes_of_failure(trained(), nothing, 50) == {"navigation": 0, "edge detector wrong": 0, "out of steps": 0}


def test_exchange_tells_apart_what_needs_a_trade() -> None:
    game = make_game("exchange")
    result = EvalResult(np.array([True] * 20 + [False] * 20), np.zeros(40, int))
    apart = success_by_group(Oracle(game), result, task_seed=3)
    assert apart["needs a trade"]["tasks"] + apart["needs no trade"]["tasks"] == 40
    assert apart["needs a trade"]["tasks"] > 5
    both = sum(part["tasks"] * part["success"] for part in apart.values())
    assert both == pytest.approx(20)
    states, goals = task_set(game, 40, 3)
    on_map, wanted = np.asarray(jax.vmap(game.attributes)(states))[:, :3], np.asarray(goals.low)[:, 3:]
    assert apart["needs no trade"]["tasks"] == (wanted <= on_map).all(axis=1).sum()
    assert success_by_group(trained(), result, 0) == {}


def test_the_critic_does_not_forget_that_a_transition_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both lead to the goal at nearly the same cost; the first failed here, and looks a little nearer."""
    one = executor(standing(0, 0, 0), (3, -np.inf), (3, np.inf))
    one.settle()
    total, raised, first = np.array([2.25, 2.0]), np.array([0.25, 0.0]), np.array([1.0, 1.1])
    nearer, probability, steps = np.array([True, True]), np.array([0.9, 0.8]), np.array([2.0, 3.0])
    found = Successors(np.array([1.25, 1.0]), raised, total, nearer, probability, steps)
    for successors, chosen, cost in ((found, 1, [2.25, 2.1]), (found._replace(raised=np.zeros(2)), 0, [2.0, 2.1])):
        monkeypatch.setattr(type(one.routes[0]), "successors", lambda *_, given=successors: given)
        priced = FirstEdges(first[None], steps[None])
        monkeypatch.setattr(type(one.model), "first_edges", lambda *_, given=priced: given)
        (decision,) = one.decide(np.array([0]))
        assert decision.chosen == chosen == one.transition[0]
        np.testing.assert_allclose(decision.alternatives.cost, cost)
        np.testing.assert_array_equal(decision.alternatives.probability, probability)


def test_after_a_spent_search_the_agent_searches_from_where_it_is() -> None:
    one = executor(
        standing(0, 0, 0), (3, -np.inf), (3, np.inf), planning=replace(DEFAULT_PLANNER, max_nodes=3, algebra=False)
    )
    one.settle()
    first = one.routes[0]
    assert first is not None
    assert first.outcome is Outcome.SPENT
    one.decide(np.array([0]))
    assert one.routes[0] is first, "from the same ρ it would find nothing else"
    one.rho = np.array([[2.0, 1.0]], np.float32)
    one.decide(np.array([0]))
    assert one.routes[0] is not first
    assert one.routes[0].outcome is Outcome.FOUND


def test_a_search_that_found_nothing_is_not_repeated_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    one = executor(standing(0, 3, 1), (1, -np.inf), (1, np.inf))
    one.settle()
    assert one.routes[0].outcome is Outcome.UNREACHABLE
    monkeypatch.setattr(one, "find_routes", None)
    one.ended(0, False)
    assert one.routes[0] is not None


def test_success_does_not_depend_on_how_fast_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock costs an hour: where searches were bounded in seconds, they were all cut off."""
    for agent in (trained(), load("mining")):
        clock = itertools.count(step=3600)
        usual = evaluate(agent, 10, budget=40, task_seed=5)
        with monkeypatch.context() as patch:
            patch.setattr(time, "monotonic", lambda clock=clock: float(next(clock)))
            slow = evaluate(agent, 10, budget=40, task_seed=5)
        assert slow.attempts == usual.attempts
        np.testing.assert_array_equal(slow.success, usual.success)


@pytest.mark.parametrize("seed", range(3))
def test_the_plan_that_is_told_is_the_one_that_is_carried_out(seed: int) -> None:
    """On mining changes are uncertain: `plan` took means while walkers planned in expectation."""
    agent = load("mining")
    state, goals = jax.tree.map(lambda x: x[0], task_set(agent.game, 3, 40 + seed))
    one = agent.executor(jax.tree.map(lambda x: x[None], state), jax.tree.map(lambda x: x[None], goals))
    assert isinstance(one, PlanExecutor)
    one.settle()
    told = agent.plan(state, goals)
    route = one.routes[0]
    assert route is not None
    carried_out = in_words(agent.game, route.plan(one.rho[0]))
    assert told == replace(carried_out, uncertain_attributes=told.uncertain_attributes, beyond=told.beyond)

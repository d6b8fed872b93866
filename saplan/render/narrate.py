"""A plan and how it went, as text or data: the map, the path, then attempt by attempt."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from saplan.errors import NoPathError
from saplan.games.game import uncertain_attributes
from saplan.goals import Goal, format_goal, parse_goal
from saplan.methods.executor import DEFAULT_PLANNER, Attempt, Executor, PlannerSettings
from saplan.methods.registry import AnyAgent
from saplan.planning.certificate import why_not
from saplan.render.ansi import strong, write
from saplan.render.trace import Explanation, PlanStep, explain

HOLDS = "the goal holds already"


class Story:
    """One task by one agent: what it decided, and what came of it. Text and data tell the same story."""

    def __init__(self, agent: AnyAgent, goal_text: str, seed: int, planning: PlannerSettings) -> None:
        """Draws the map and makes the first decision; nothing is done yet."""
        self.agent, self.seed, self.space = agent, seed, agent.game.space
        self.goal = parse_goal(self.space, goal_text)
        self.state = jax.jit(agent.game.reset)(jax.random.key(seed))
        self.start = np.asarray(agent.game.attributes(self.state))
        one = Goal(np.asarray(self.goal.low)[None], np.asarray(self.goal.high)[None])
        self.executor: Executor = agent.executor(jax.tree.map(lambda x: x[None], self.state), one, planning)
        self.reason = why_not(agent.game, self.start, self.goal)
        self.executor.settle()
        self.explanation = explain(self.executor)
        self.steps = 0

    @property
    def done(self) -> bool:
        """Whether the goal holds."""
        return bool(self.executor.done[0])

    @property
    def found(self) -> bool:
        """Whether the agent knows what to do."""
        return self.done or (self.reason is None and self.explanation.found)

    @property
    def verdict(self) -> str:
        """What the search found, in words."""
        if self.done:
            return HOLDS
        return self.explanation.words if self.reason is None else f"out of reach: {self.reason}"

    @property
    def outcome(self) -> str:
        """The same as a name."""
        return "unreachable" if self.reason is not None else self.explanation.outcome

    def refusal(self) -> NoPathError:
        """What a person is told when there is nothing to carry out."""
        return NoPathError(f"no plan: {self.verdict}; nothing was done (--anyway lets the agent try all the same)")

    def carry_out(self, budget: int) -> Iterator[tuple[list[Attempt], Explanation | None]]:
        """Steps until the goal holds or the budget is spent: after each, the attempts that ended, and the decision that
        followed if the agent changed its plan.
        """
        told = 0
        for _ in self.executor.moves(budget, self.seed):
            self.steps += 1
            ended, told = self.executor.result.attempts[told:], len(self.executor.result.attempts)
            yield ended, self._decide()

    def _decide(self) -> Explanation | None:
        """The next decision, if one is due and does not simply follow the plan."""
        if self.done or not bool(self.executor.undecided[0] | self.executor.late()[0]):
            return None
        expected = [plan_step.change for plan_step in self.explanation.path[1:]]
        self.executor.settle()
        self.explanation = explain(self.executor)
        return None if [plan_step.change for plan_step in self.explanation.path] == expected else self.explanation


def narrate(
    agent: AnyAgent,
    goal_text: str,
    seed: int,
    budget: int,
    colour: bool,
    planning: PlannerSettings = DEFAULT_PLANNER,
    anyway: bool = False,
) -> Iterator[str]:
    """Paragraphs: the map and the goal, the plan with the probability of every edge, every attempt, the end.

    `NoPathError` after the plan if there is none, unless the agent is to try `anyway`.
    """
    story = Story(agent, goal_text, seed, planning)
    text = lambda rho: story.space.format(np.asarray(rho))  # noqa: E731
    yield write(agent.game.scene(story.state), colour)
    yield f"\nnow   {text(story.start)}\ngoal  {format_goal(story.space, story.goal)}"
    yield "\n" + strong(f"Plan: {story.verdict}", colour)
    if doubts := uncertain_attributes(agent.game, story.state):
        yield f"  made on attributes that are not sure: {', '.join(f'{name} ({p:.0%})' for name, p in doubts)}"
    for number, plan_step in enumerate(story.explanation.path, start=1):
        yield f"  {number:2d}. {plan_step.change:<32} → {text(plan_step.rho)}{_expected(plan_step)}"
    if not story.found and not anyway:
        raise story.refusal()

    yield "\n" + strong("Carrying it out", colour)
    for ended, decision in story.carry_out(budget):
        for attempt in ended:
            change = agent.seen.space.format_delta(np.array(attempt.delta))
            end = "done" if attempt.success else "FAILED"
            now = text(story.executor.rho[0])
            yield f"  step {story.steps:3d}: {change:<32} {end} after {attempt.steps:2d} steps   {now}"
        if decision is not None:
            path = " → ".join(plan_step.change for plan_step in decision.path)
            yield f"            new plan: {path}" if path else f"            no plan: {decision.words}"
    yield "\n" + write(agent.game.scene(jax.tree.map(lambda x: x[0], story.executor.state)), colour)
    yield f"\ngoal reached in {story.steps} steps" if story.done else f"\ngoal not reached within {budget} steps"


def tell_json(
    agent: AnyAgent,
    goal_text: str,
    seed: int,
    budget: int,
    planning: PlannerSettings = DEFAULT_PLANNER,
    anyway: bool = False,
) -> dict[str, Any]:
    """The same as data; without a plan nothing is carried out, unless the agent is to try `anyway`."""
    story = Story(agent, goal_text, seed, planning)
    named = lambda rho: dict(zip(story.space.names, map(float, rho), strict=True))  # noqa: E731
    told = {
        "game": agent.game.name,
        "goal": format_goal(story.space, story.goal),
        "start": named(story.start),
        "outcome": story.outcome,
        "reason": None if story.found else story.verdict,
        "unsure": dict(uncertain_attributes(agent.game, story.state)),
        "path": [
            {
                "transition": plan_step.change,
                "rho": named(plan_step.rho),
                "probability": plan_step.chance,
                "steps": plan_step.steps,
            }
            for plan_step in story.explanation.path
        ],
    }
    changes = []
    if story.found or anyway:
        for _, decision in story.carry_out(budget):
            if decision is not None:
                changes.append({"step": story.steps, "path": [plan_step.change for plan_step in decision.path]})
    attempts = [
        {
            "transition": agent.seen.space.format_delta(np.array(attempt.delta)),
            "success": attempt.success,
            "steps": attempt.steps,
        }
        for attempt in story.executor.result.attempts
    ]
    return {**told, "attempts": attempts, "new_plans": changes, "success": story.done, "steps": story.steps}


def _expected(plan_step: PlanStep) -> str:
    chance = "" if plan_step.chance is None else f"   p = {plan_step.chance:.2f}"
    return chance + ("" if plan_step.steps is None else f", about {plan_step.steps:.0f} steps")

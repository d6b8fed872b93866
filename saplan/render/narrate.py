"""A plan and its execution, as text or data: the map, the path, then attempt by attempt."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from saplan.errors import NoPathError
from saplan.games.game import uncertain_attributes
from saplan.games.rule_cards import changed_text, name_of
from saplan.goals import format_goal, parse_goal
from saplan.methods.agent import DEFAULT_PLANNER, Agent, PlannerSettings, one_goal
from saplan.methods.executor import Attempt
from saplan.planning.certificate import why_not
from saplan.planning.printing import WIDTH, plan_row, shortened
from saplan.render.ansi import scene_text, strong
from saplan.render.explanation import Explanation, explain, path_by_rules
from saplan.render.failure import why_failed
from saplan.render.start import start

HOLDS = "the goal holds already"


class Story:
    """One task by one agent: its decisions and their results. Text and data show the same story."""

    def __init__(self, agent: Agent, goal_text: str, seed: int, planner: PlannerSettings) -> None:
        """Draw the map and make the first decision; no step is taken yet."""
        self.agent, self.seed, self.space = agent, seed, agent.game.space
        self.goal = parse_goal(self.space, goal_text)
        begin = start(agent.game, seed)
        self.state, self.start = begin.state, np.array(begin.rho, np.float32)
        states = jax.tree.map(lambda x: x[None], self.state)
        self.executor = agent.executor(states, one_goal(self.space, self.goal), planner)
        self.explanation = self._decide()
        self.reason = why_not(agent.game, self.start, self.goal, path_by_rules(agent, self.executor.decisions[0]))
        self.steps = 0

    @property
    def done(self) -> bool:
        """Whether the goal holds."""
        return bool(self.executor.done[0])

    @property
    def found(self) -> bool:
        """Whether the agent has a plan, or needs none."""
        return self.done or (self.reason is None and self.explanation.found)

    @property
    def now(self) -> tuple[float, ...]:
        """ρ as the agent perceives it."""
        return tuple(map(float, self.executor.rho[0]))

    @property
    def verdict(self) -> str:
        """How the search ended, in words."""
        if self.done:
            return HOLDS
        return self.explanation.words if self.reason is None else f"out of reach: {self.reason}"

    @property
    def outcome(self) -> str:
        """How the search ended, as a name."""
        if self.done:
            return "found"
        return self.explanation.outcome if self.reason is None else "unreachable"

    def refusal(self) -> NoPathError:
        """The error for a person whose task has no plan."""
        return NoPathError(f"no plan: {self.verdict}; nothing was done (--anyway lets the agent try all the same)")

    def rows(self) -> Iterator[str]:
        """The plan, one row per transition."""
        before = self.now
        for number, step in enumerate(self.explanation.path, start=1):
            result = changed_text(self.agent.perceived.space, before, step.rho)
            yield plan_row(number, step.name, step.chance, step.steps, result)
            before = step.rho

    def name(self, attempt: Attempt) -> str:
        """The words of the transition that an attempt was for."""
        return name_of(self.agent.game, np.array(attempt.delta))

    def failure(self, budget: int) -> tuple[str, ...]:
        """Why the goal was not reached, in sentences."""
        ending = "The budget is spent" if self.steps >= budget else "No change is possible any more"
        attempts = ((self.name(attempt), attempt.success) for attempt in self.executor.result.attempts)
        return why_failed(self.agent.game, self.now, self.goal, attempts, self.explanation, ending)

    def carry_out(self, budget: int) -> Iterator[tuple[list[Attempt], Explanation | None]]:
        """Step until the goal holds or the budget is spent; yields after each step the attempts that ended, and the
        next decision if it changes the plan.
        """
        recorded = 0
        for _ in self.executor.moves(budget, self.seed):
            self.steps += 1
            ended, recorded = self.executor.result.attempts[recorded:], len(self.executor.result.attempts)
            yield ended, self._change_of_plan()

    def _decide(self) -> Explanation:
        self.executor.settle()
        return explain(self.agent, self.executor.decisions[0])

    def _change_of_plan(self) -> Explanation | None:
        """The next decision, if one is due and does not simply follow the plan."""
        if self.done or not bool(self.executor.undecided[0] | self.executor.late()[0]):
            return None
        expected = [plan_step.change for plan_step in self.explanation.path[1:]]
        self.explanation = self._decide()
        return None if [plan_step.change for plan_step in self.explanation.path] == expected else self.explanation


def narrate(
    agent: Agent,
    goal_text: str,
    seed: int,
    budget: int,
    colour: bool,
    planner: PlannerSettings = DEFAULT_PLANNER,
    anyway: bool = False,
) -> Iterator[str]:
    """Paragraphs: the map and the goal, the plan with the probability of every edge, every attempt, the end.

    Without a plan it raises `NoPathError` after the first two, unless the agent is to try `anyway`.
    """
    story = Story(agent, goal_text, seed, planner)
    text = story.space.format
    if before := scene_text(agent.game.scene(story.state), colour):
        yield before + "\n"
    yield f"now   {text(story.start)}\ngoal  {format_goal(story.space, story.goal)}"
    yield "\n" + strong(textwrap.fill(f"Plan: {story.verdict}", WIDTH, subsequent_indent="  "), colour)
    if doubts := uncertain_attributes(agent.game, story.state):
        yield f"  made on attributes that are not sure: {', '.join(f'{name} ({p:.0%})' for name, p in doubts)}"
    for sentence in story.explanation.beyond:
        yield textwrap.fill(f"  beyond training: {sentence}", WIDTH, subsequent_indent="    ")
    if story.explanation.path:
        yield "  (p: chance of success, ~: expected steps, →: attributes that change)"
    yield from story.rows()
    if not story.found and not anyway:
        raise story.refusal()

    yield "\n" + strong("Carrying it out", colour)
    for ended, decision in story.carry_out(budget):
        for attempt in ended:
            words, end = story.name(attempt), "done" if attempt.success else "FAILED"
            now = changed_text(agent.perceived.space, attempt.rho, story.now) or "no change"
            time = f"{end}, {attempt.steps:2d} step{'' if attempt.steps == 1 else 's'}"
            row = f"  step {story.steps:3d}: {shortened(words, 24):<24} {time:<17}  → {now}"
            yield shortened(row, WIDTH)
        if decision is not None:
            path = " → ".join(plan_step.name for plan_step in decision.path)
            yield shortened(f"    new plan: {path}" if path else f"    no plan: {decision.words}", WIDTH)
    if after := scene_text(agent.game.scene(jax.tree.map(lambda x: x[0], story.executor.state)), colour):
        yield "\n" + after
    if story.done:
        yield f"\ngoal reached in {story.steps} steps"
        return
    yield f"\ngoal not reached within {budget} steps"
    for sentence in story.failure(budget):
        yield textwrap.fill(f"  {sentence}", WIDTH, subsequent_indent="    ")


def tell_json(
    agent: Agent,
    goal_text: str,
    seed: int,
    budget: int,
    planner: PlannerSettings = DEFAULT_PLANNER,
    anyway: bool = False,
) -> dict[str, Any]:
    """The same story as data; without a plan no step is taken, unless the agent is to try `anyway`."""
    story = Story(agent, goal_text, seed, planner)

    def named(rho: Sequence[float] | Float[np.ndarray, "K"]) -> dict[str, float]:
        return dict(zip(story.space.names, map(float, rho), strict=True))

    story_data = {
        "game": agent.game.name,
        "goal": format_goal(story.space, story.goal),
        "start": named(story.start),
        "outcome": story.outcome,
        "reason": None if story.found else story.verdict,
        "beyond": list(story.explanation.beyond),
        "unsure": dict(uncertain_attributes(agent.game, story.state)),
        "path": [
            {
                "transition": plan_step.change,
                "name": plan_step.name,
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
            "transition": agent.perceived.space.format_delta(np.array(attempt.delta)),
            "name": story.name(attempt),
            "success": attempt.success,
            "steps": attempt.steps,
        }
        for attempt in story.executor.result.attempts
    ]
    return {**story_data, "attempts": attempts, "new_plans": changes, "success": story.done, "steps": story.steps}

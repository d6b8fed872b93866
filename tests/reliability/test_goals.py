"""Goals that no plan can reach, or none in reasonable time: an answer comes within the bounds."""

import random
import resource
import time
from dataclasses import replace

import jax
import pytest

from saplan.cli import main
from saplan.games import GAMES
from saplan.goals import parse_goal
from saplan.methods.agent import DEFAULT_PLANNER
from saplan.planning import Outcome
from saplan.training.store import load
from tests.reliability import record, times

NODES, SECONDS = 3000, 1.0
PLANNING = replace(DEFAULT_PLANNER, max_nodes=NODES, max_seconds=SECONDS)
SLACK = 20.0
"""Seconds that an answer may come late, since machines can be busy. The figure that counts is the one written down."""


def adversarial(game: str, chance: random.Random) -> str:
    """A goal that is well-formed and hard."""
    many = chance.choice([10**3, 10**5, 10**6, 2**24 - 1])
    colour, other = chance.sample(["red", "green", "blue"], 2)
    few, more, a, b = chance.randrange(9), chance.randrange(9, 40), chance.uniform(0, 13), chance.uniform(0, 7)
    shapes = {
        "switches": [
            f"{colour}={many}", f"{colour}>={many} switch=1", f"map_{colour}={few} {other}=0",
            f"{colour}=0 map_{colour}=0", f"{colour}={few} {other}={chance.randrange(9)}",
        ],
        "exchange": [
            f"{colour}={many}", f"{colour}>={more}", f"{colour}={more} {other}={few}", f"map_{colour}={many} {other}=1",
            f"{colour}=0 {other}=0 map_{colour}=0 map_{other}=0",
        ],
        "mining": [
            f"m1={a:.4f}±{10 ** chance.uniform(-7, -2):.7f}", f"m1={4 + a / 4:.3f} m2={b / 5:.3f}",
            f"m1={a:.5f}±0.00001 m2={b:.5f}±0.00001", "hammer=1000000",
            f"m1>={12 + a / 13:.3f} m2>={5 + b / 3:.3f} hammer=1",
        ],
        "arm": [
            f"shoulder={25 * a:.4f}±{10 ** chance.uniform(-7, -2):.7f}", f"shoulder={25 * a:.2f} elbow={50 * b:.2f}",
            f"shoulder={100 + 5 * a:.1f}±15 elbow={b:.1f}±1", f"elbow={50 * b:.5f}±0.00001",
        ],
        "tiles": [
            f"red=m{few % 4} green={more % 4} blue=m{few % 3}", f"{colour}=m{few % 4} {other}={more % 4}",
            f"{colour}={few % 4}", f"chosen={few % 3} {colour}=m{more % 4}",
        ],
    }  # fmt: skip
    return chance.choice(shapes[game])


def test_every_goal_is_answered_within_the_bounds() -> None:
    agents, chance = {name: load(name) for name in GAMES}, random.Random(0)
    tried, good, slowest = times(500, 45), 0, 0.0
    outcomes = dict.fromkeys((Outcome.FOUND, Outcome.UNREACHABLE, Outcome.SPENT, Outcome.LATE), 0)
    for agent in agents.values():  # compiles
        agent.plan(agent.game.reset(jax.random.key(0)), adversarial(agent.game.name, chance), PLANNING)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k in range(tried):
        agent = agents[list(agents)[k % len(agents)]]
        goal = parse_goal(agent.game.space, adversarial(agent.game.name, chance))
        state = agent.game.reset(jax.random.key(k))
        began = time.monotonic()
        plan = agent.plan(state, goal, PLANNING)
        slowest = max(slowest, time.monotonic() - began)
        outcomes[plan.outcome] += 1
        good += time.monotonic() - began < SECONDS + SLACK and (plan.outcome is Outcome.FOUND) == bool(plan.rho)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    assert grown < 500, f"{grown:.0f} MiB"
    assert all(count for outcome, count in outcomes.items() if outcome is not Outcome.LATE), outcomes
    record(
        "adversarial goals answered within the bounds of nodes and time", good, tried,
        slowest_seconds=round(slowest, 2), memory_grown_mib=round(grown), max_nodes=NODES, max_seconds=SECONDS,
        outcomes={outcome.name.lower(): number for outcome, number in outcomes.items()},
    )  # fmt: skip


@pytest.mark.parametrize("goal", ["red=16777217", "red=1e30", "m1=inf", "red=-1", "red=nan", "red=2 red=3"])
def test_goals_outside_the_space_are_bad_input(goal: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "mining" if "m1" in goal else "switches", "--goal", goal]) == 2
    assert capsys.readouterr().err.count("\n") == 1

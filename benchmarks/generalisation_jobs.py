"""What `generalisation.py` trains, and the worlds in which the agents are measured."""

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from saplan.games import Game, Mining, make_game
from saplan.games.game import State
from saplan.games.grid import MapRules
from saplan.games.mining import in_box
from saplan.games.wrapper import GameWrapper
from saplan.goals import Goal
from saplan.methods.ablations import FULL, ablated
from saplan.methods.registry import find_method
from saplan.methods.structured.learner import Structured, StructuredKnowledge
from saplan.methods.targets import Rollout
from saplan.methods.update import Learner
from saplan.training.config import RunConfig

SEEDS, TASKS, TASK_SEED = 5, 500, 7_000
BOX = (4.5, 5.0, 7.5, 8.0)
"""An eighth of S: amounts of both minerals, least and greatest."""
HALF = 0.5
"""A success below the paper's, to which steps are counted too."""
MARGIN = 0.5
"""How far the yield of a blow may differ from its mean."""
LARGE = MapRules(10, 10)


@dataclass(frozen=True)
class GoalsIn(GameWrapper[State]):
    """Mining whose goals lie inside the box, or all of them outside."""

    inside: bool

    def tasks(self, key: PRNGKeyArray) -> tuple[State, Goal]:
        """A task of the game, drawn until its goal lies where it should."""

        def fits(goal: Goal) -> Array:
            middle: Float[Array, "q"] = (jnp.asarray(goal.low) + jnp.asarray(goal.high))[: len(BOX) // 2] / 2
            return in_box(middle, BOX) == self.inside

        def again(carry: tuple[PRNGKeyArray, tuple[State, Goal]]) -> tuple[PRNGKeyArray, tuple[State, Goal]]:
            key, task_key = jax.random.split(carry[0])
            return key, self.game.tasks(task_key)

        first = again((key, self.game.tasks(key)))
        drawn: tuple[State, Goal] = jax.lax.while_loop(lambda carry: ~fits(carry[1][1]), again, first)[1]
        return drawn


class LeftOut(Structured):
    """The structured method, to which nothing is known that happened inside the box."""

    def play(self, game: Game[Any], settings: Any, learner: Learner[StructuredKnowledge], key: Any) -> Rollout:
        """A rollout whose steps inside the box are unusable, as after the end of a game.

        Attempts at entering it are not known either: with their failures alone, the box would seem closed.
        """
        rollout = super().play(game, settings, learner, key)
        steps, q = rollout.trajectory, len(BOX) // 2
        out = jnp.any(in_box(jnp.stack([steps.rho, steps.after])[..., :q], BOX), axis=0)
        around = (*(x - MARGIN for x in BOX[:q]), *(x + MARGIN for x in BOX[q:]))
        enters = in_box((steps.rho + steps.subgoal)[..., :q], around) & ~steps.explores
        hidden = {name: getattr(steps, name) & ~out for name in ("changed", "success", "lost")}
        hidden["failure"] = steps.failure & ~out & ~enters
        return Rollout.of(replace(steps, **hidden, game_over=steps.game_over | out), rollout.lanes)


@dataclass(frozen=True)
class Job:
    """Agents of one method in one world, one per seed."""

    game: Game[Any]
    method: str = "structured"
    algebra: str = FULL
    steps: int = 50_000_000
    lanes: int = 4096
    left_out: bool = False
    """Whether training takes no notice of what happens in the box."""
    efficiency: bool = False
    """Whether success is followed during training, and the agents are not kept."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings other than the defaults."""


def configs_of(job: Job, steps: int | None, seeds: int, lanes: int | None) -> list[RunConfig]:
    """The configurations of a job, which differ in their seeds."""
    game = ablated(job.game, job.algebra)
    settings = replace(find_method(job.method).settings_for(game, False), lanes=lanes or job.lanes, **job.settings)
    return [RunConfig(game, settings, steps or job.steps, seed, job.method, 0, 0) for seed in range(seeds)]


def up_to(most: int) -> Game[Any]:
    """Switches with 1 to `most` objects of a kind; many of them need large maps."""
    return make_game("switches", most=most, maps=LARGE if most > 8 else MapRules())


def _jobs() -> dict[str, dict[str, Job]]:
    few = {name: make_game(name, most=3) for name in ("switches", "exchange")}
    objects = {f"{name}-structured": Job(game) for name, game in few.items()}
    objects |= {f"{name}-raw": Job(game, algebra="raw") for name, game in few.items()}
    blind = {"sees_rho": False}
    objects |= {f"{name}-without-rho": Job(game, settings=blind) for name, game in few.items()}
    objects["switches-integers"] = Job(few["switches"], algebra="integers")
    objects |= {f"{name}-{method}": Job(game, method) for method in ("unstructured", "curriculum")
                for name, game in few.items()}  # fmt: skip
    mining = {"mining-left-out": Job(Mining(), left_out=True), "mining-plain": Job(Mining()),
              "mining-hole": Job(Mining(hole=BOX))}  # fmt: skip
    efficiency = {
        f"efficiency-{method}-{most}": Job(up_to(most), method, lanes=1024, efficiency=True)
        for most in (4, 8, 16)
        for method in ("structured", "unstructured")
    }
    return {"objects": objects, "mining": mining, "efficiency": efficiency}


JOBS = _jobs()
ALL_JOBS = {name: job for group in JOBS.values() for name, job in group.items()}

TRAINED = "trained"
WORLDS: dict[str, dict[str, Game[Any]]] = {
    "switches": {
        TRAINED: make_game("switches", most=3),
        "4..5": make_game("switches", fewest=4, most=5),
        "6..8": make_game("switches", fewest=6, most=8),
        "12..16": make_game("switches", fewest=12, most=16, maps=LARGE),
        "maps 15": make_game("switches", most=3, maps=MapRules(15, 15)),
        "maps 20": make_game("switches", most=3, maps=MapRules(20, 20)),
    },
    "exchange": {
        TRAINED: make_game("exchange", most=3),
        "4..5": make_game("exchange", fewest=4, most=5),
        "6..8": make_game("exchange", fewest=6, most=8),
        "maps 15": make_game("exchange", most=3, maps=MapRules(15, 15)),
        "maps 20": make_game("exchange", most=3, maps=MapRules(20, 20)),
        "no purse": make_game("exchange", most=8),
        "purse 5": make_game("exchange", most=8, purse=5),
        "no change": make_game("exchange", most=12, maps=LARGE),
        "rates 10": make_game("exchange", most=12, rates_change_at=10, maps=LARGE),
    },
    "mining": {
        TRAINED: Mining(),
        "goals outside": GoalsIn(Mining(), False),
        "goals inside": GoalsIn(Mining(), True),
        "hole": Mining(hole=BOX),
        "maps 15": Mining(maps=MapRules(15, 15)),
        "maps 20": Mining(maps=MapRules(20, 20)),
    },
}
"""The worlds of every game, the trained one first."""
OBJECTS = (TRAINED, "4..5", "6..8", "12..16")
"""Worlds that differ in the number of objects."""
TRAPS = {"purse 5": "no purse", "rates 10": "no change", "hole": TRAINED}
"""Worlds where structure must not carry over, and the same worlds without the trap."""

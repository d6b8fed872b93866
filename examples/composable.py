"""The two games of the predecessor's paper, and its planner on them: python examples/composable.py [--steps N].

Zhang et al., *Composable Planning with Attributes* (2018), report 83.1 % on Colored Switches and 99.8 % on Crafting.
The paper describes its games in words; these follow the words, on our maps. They also show how short a game of your own
can be.
"""

import argparse
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int16, PRNGKeyArray

import saplan
from saplan import Cyclic, Game, Goal, Natural, Product
from saplan.games.game import Words
from saplan.games.grid import INTERACT, MOVES, NOWHERE, Map, MapRules, Places, draw_map, move, vocabulary, words
from saplan.games.scene import COLOURS, Scene, Thing, ground_scene
from saplan.goals import exactly

REPORTED = {"coloured-switches": 0.831, "crafting": 0.998}
"""Success that the authors report."""


class SwitchBoard(eqx.Module):
    """A map with switches, each showing a colour."""

    ground: Map
    places: Places
    colour: Int16[Array, "switches"]


@dataclass(frozen=True)
class ColouredSwitches(Game[SwitchBoard]):
    """Four switches of four colours; `interact` cycles the one the agent stands on. A task is a configuration."""

    switches: int = 4
    colours: int = 4
    maps: MapRules = field(default_factory=MapRules)

    name: ClassVar[str] = "coloured-switches"
    actions: ClassVar[tuple[str, ...]] = (*MOVES, "interact")
    credit: ClassVar[str] = "attempt"
    alphas: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @property
    def slots(self) -> int:
        return 4 + self.maps.max_walls + self.switches

    @property
    def vocabulary(self) -> int:
        return vocabulary(self.switches * self.colours)

    @property
    def space(self) -> Product:
        return Product(tuple(f"switch{k + 1}" for k in range(self.switches)), (Cyclic(self.colours),) * self.switches)

    def reset(self, key: PRNGKeyArray) -> SwitchBoard:
        map_key, colour_key = jax.random.split(key)
        ground, places = draw_map(self.maps, map_key, self.switches)
        return SwitchBoard(ground, places, self._colours(colour_key))

    def _colours(self, key: PRNGKeyArray) -> Int16[Array, "switches"]:
        return jax.random.randint(key, (self.switches,), 0, self.colours).astype(jnp.int16)

    def step(self, key: PRNGKeyArray, state: SwitchBoard, action: Int[Array, ""]) -> SwitchBoard:
        ground = move(state.ground, action)
        turned = (action == INTERACT) & (state.places == ground.agent)
        return SwitchBoard(ground, state.places, ((state.colour + turned) % self.colours).astype(jnp.int16))

    def observe(self, state: SwitchBoard) -> Words:
        kinds = 1 + jnp.arange(self.switches) * self.colours + state.colour
        return words(state.ground, kinds.astype(jnp.int32), state.places)

    def attributes(self, state: SwitchBoard) -> Float[Array, "K"]:
        return state.colour.astype(jnp.float32)

    def over(self, state: SwitchBoard) -> Bool[Array, ""]:
        return jnp.zeros((), bool)

    def tasks(self, key: PRNGKeyArray) -> tuple[SwitchBoard, Goal]:
        state_key, goal_key = jax.random.split(key)
        goal = self._colours(goal_key).astype(jnp.float32)
        return self.reset(state_key), exactly(goal, 0.0, jnp.ones(self.switches, bool))

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        return tuple(
            (f"turn switch {k + 1}", tuple(float(j == k) for j in range(self.switches))) for k in range(self.switches)
        )

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        known = jnp.array([change for _, change in self.admissible()])
        return jnp.any(jnp.all(known == delta, axis=1)).astype(jnp.float32)

    def scene(self, state: SwitchBoard) -> Scene:
        things = [
            (place, Thing(0, 0, "switch", COLOURS[int(colour) % len(COLOURS)]))
            for place, colour in zip(state.places.tolist(), state.colour, strict=True)
        ]
        return ground_scene(state.ground, things, ())


RECIPES = ((1, 1, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0), (0, 0, 0, 1, 1, 0))
"""Resources and products that each product needs; the third is made of the other two."""
KINDS = len(RECIPES)


class Workshop(eqx.Module):
    """A map with resources and tables, and the held numbers of the three resources and the three products."""

    ground: Map
    places: Places
    held: Int16[Array, "6"]


@dataclass(frozen=True)
class Crafting(Game[Workshop]):
    """`interact` grabs a resource, or crafts a product on its own table. A task is to hold one of the products."""

    maps: MapRules = field(default_factory=MapRules)

    name: ClassVar[str] = "crafting"
    actions: ClassVar[tuple[str, ...]] = (*MOVES, "interact")
    credit: ClassVar[str] = "attempt"
    alphas: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @property
    def slots(self) -> int:
        return 4 + self.maps.max_walls + 2 * KINDS

    @property
    def vocabulary(self) -> int:
        return vocabulary(2 * KINDS)

    @property
    def space(self) -> Product:
        names = (*(f"resource{k + 1}" for k in range(KINDS)), *(f"product{k + 1}" for k in range(KINDS)))
        return Product(names, (Natural(bins=4),) * (2 * KINDS))

    def reset(self, key: PRNGKeyArray) -> Workshop:
        ground, places = draw_map(self.maps, key, 2 * KINDS)
        return Workshop(ground, places, jnp.zeros(2 * KINDS, jnp.int16))

    def step(self, key: PRNGKeyArray, state: Workshop, action: Int[Array, ""]) -> Workshop:
        ground = move(state.ground, action)
        here = (action == INTERACT) & (state.places == ground.agent)
        grabbed, recipes = here[:KINDS], jnp.array(RECIPES, jnp.int16)
        crafted = here[KINDS:] & jnp.all(state.held >= recipes, axis=1)
        used = jnp.sum(recipes * crafted[:, None], axis=0, dtype=jnp.int16)
        places = state.places.at[:KINDS].set(jnp.where(grabbed, NOWHERE, state.places[:KINDS]).astype(jnp.int16))
        gained = jnp.concatenate([grabbed, crafted]).astype(jnp.int16)
        return Workshop(ground, places, state.held + gained - used)

    def observe(self, state: Workshop) -> Words:
        return words(state.ground, 1 + jnp.arange(2 * KINDS), state.places)

    def attributes(self, state: Workshop) -> Float[Array, "K"]:
        return state.held.astype(jnp.float32)

    def over(self, state: Workshop) -> Bool[Array, ""]:
        craftable = jnp.all(state.held >= jnp.array(RECIPES, jnp.int16), axis=1)
        return jnp.all(state.places[:KINDS] == NOWHERE) & ~jnp.any(craftable)

    def tasks(self, key: PRNGKeyArray) -> tuple[Workshop, Goal]:
        state_key, goal_key = jax.random.split(key)
        wanted = jnp.arange(2 * KINDS) == KINDS + jax.random.randint(goal_key, (), 0, KINDS)
        return self.reset(state_key), exactly(jnp.ones(2 * KINDS), 0.0, wanted)

    def admissible(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        grabs = ((f"grab resource {k + 1}", _unit(k)) for k in range(KINDS))
        crafts = (
            (f"craft product {k + 1}", tuple(a - b for a, b in zip(_unit(KINDS + k), recipe, strict=True)))
            for k, recipe in enumerate(RECIPES)
        )
        return (*grabs, *crafts)

    def feasible(self, rho: Float[Array, "K"], delta: Float[Array, "K"]) -> Float[Array, ""]:
        # One resource of each kind: it is on the map while neither it nor anything made of it is held.
        grabs = jnp.array([rho[0] + rho[3] + rho[5] == 0, rho[1] + rho[3] + rho[5] == 0, rho[2] + rho[4] + rho[5] == 0])
        crafts = jnp.all(rho >= jnp.array(RECIPES), axis=1)
        known = jnp.array([change for _, change in self.admissible()])
        return jnp.any(jnp.all(known == delta, axis=1) & jnp.concatenate([grabs, crafts])).astype(jnp.float32)

    def scene(self, state: Workshop) -> Scene:
        shapes = [Thing(0, 0, shape, COLOURS[k]) for shape in ("deposit", "store") for k in range(KINDS)]
        held = tuple((name, "grey", str(int(n))) for name, n in zip(self.space.names, state.held, strict=True))
        return ground_scene(state.ground, list(zip(state.places.tolist(), shapes, strict=True)), held)


def _unit(k: int) -> tuple[float, ...]:
    return tuple(float(j == k) for j in range(2 * KINDS))


def main() -> None:
    """Trains the planner without algebra on both games, and ours for comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=float, default=2e6)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", default=["unstructured", "structured"])
    parser.add_argument("--json", type=Path, help="also write the result here")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for game in (ColouredSwitches(), Crafting()):
        for method in options.methods:
            agents = []
            for seed in options.seeds:
                with contextlib.closing(saplan.ProgressBar(20)) as bar:
                    agents.append(
                        saplan.train(game, int(options.steps), seed, eval_points=0, progress=bar, method=method)
                    )
            success = [float(saplan.evaluate(agent).success.mean()) for agent in agents]
            row = {"game": game.name, "method": method, "success": success, "steps": options.steps}
            rows.append(row | {"seeds": options.seeds, "tasks": 1000, "reported": REPORTED[game.name]})
            print(
                f"{game.name}, {method}: {mean(success):.1%} {success} (reported: {REPORTED[game.name]:.1%})",
                flush=True,
            )
            saplan.write_result(options.json, {"rows": rows})


if __name__ == "__main__":
    main()

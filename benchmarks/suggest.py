"""How often `saplan suggest` finds the algebra of attributes, and how many transitions it needs.

    python benchmarks/suggest.py games taxi minigrid random --json results/suggest.json
    python benchmarks/suggest.py craftax --add --json results/suggest.json    # needs `pip install craftax`
    python benchmarks/suggest.py minigrid craftax --from-start --json results/suggest-from-start.json
    python benchmarks/suggest.py minigrid --scout 150000

Every world is played at random for 200,000 steps, and the beginnings of that play are judged as well. Half of the games
begin where an attribute has a rare value; with `--from-start`, none does. The twenty random
worlds are drawn by `benchmarks/random_worlds.py` from seeds that its numbers were not tuned on. An attribute is

- right, if the block is that of the rules; the resolution of ℝ may differ by a factor of 2, the period of S¹ by 1 %;
- equivalent, if another block has the same changes, such as ℕ and ℤ/2 for two values;
- undecided, if the margin is below 8 bits, and unseen, if random play never changed it or saw two of its values only;
- wrong, if the answer is another one, given with confidence.

With `--scout`, as in `saplan train --space auto`, random play is half of the 200,000 steps. An agent trains with the
space that it suggests, for as many steps as the option says, and its exploration policy plays the other half.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from common import ROOT, make_parser, progress
from random_worlds import as_world, draw_world
from random_worlds import judged as judged_part

from saplan.algebra import Block, Categorical, Circle, Cyclic, Exogenous, Integer, Natural, Real
from saplan.experiments.result_file import write_result
from saplan.games import GAMES, make_game
from saplan.games.game import Game
from saplan.methods.structured.settings import StructuredSettings
from saplan.perception.suggest import Suggestion, Verdict, suggest
from saplan.perception.transitions import play_freely
from saplan.storage.json_data import read_json
from saplan.training.space import explored_suggestion

STEPS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
TEST_SEED = 20_000
"""The first of the seeds of the random worlds."""
RANDOM_WORLDS = 20
RIGHT, EQUIVALENT, UNDECIDED, UNSEEN, WRONG = "right", "equivalent", "undecided", "unseen", "wrong"
DOOR, BOX = Categorical(("open", "closed", "locked")), Categorical(("there", "held", "gone"))
Truth = dict[str, Block]


class Case(NamedTuple):
    """A world, and a function that judges a suggestion about it: one word per attribute."""

    name: str
    world: Game[Any]
    judge: Callable[[Suggestion], dict[str, str]]
    steps: tuple[int, ...] = STEPS
    lanes: int = 64
    settings: StructuredSettings = StructuredSettings(lanes=64, minibatches=8)
    """Of the scout."""


def judged(truth: Block, one: Verdict) -> str:
    """One verdict against the block that the rules of a world have."""
    if not one.decided:
        return UNSEEN if one.evidence == "never changed" else UNDECIDED
    if one.evidence.startswith("two values") and not _two_valued(truth):
        return UNSEEN
    if isinstance(truth, Exogenous) or one.exogenous:
        return RIGHT if isinstance(truth, Exogenous) and one.exogenous else WRONG
    block = one.candidate.block
    if isinstance(truth, Real):
        return RIGHT if isinstance(block, Real) and 0.5 <= block.resolution / truth.resolution <= 2 else WRONG
    if isinstance(truth, Circle):
        return RIGHT if isinstance(block, Circle) and abs(block.period / truth.period - 1) < 0.01 else WRONG
    if isinstance(truth, Categorical):
        return RIGHT if isinstance(block, Categorical) and block.bins == truth.bins else WRONG
    if block.symbol == truth.symbol:
        return RIGHT
    return EQUIVALENT if one.evidence.startswith("two values") else WRONG


def _two_valued(truth: Block) -> bool:
    return isinstance(truth, Natural | Integer) or (isinstance(truth, Cyclic | Categorical) and truth.bins == 2)


def by_truth(truth: Truth) -> Callable[[Suggestion], dict[str, str]]:
    """Judge with the block of every attribute; attributes that were joined in error are wrong."""

    def judge(found: Suggestion) -> dict[str, str]:
        named = {one.names: one for one in found.verdicts}
        return {name: judged(block, named[name,]) if (name,) in named else WRONG for name, block in truth.items()}

    return judge


def games() -> Iterator[Case]:
    """The games of the package."""
    for name in GAMES:
        game = make_game(name)
        yield Case(name, game, by_truth(dict(zip(game.space.names, game.space.blocks, strict=True))))


def random_worlds(first: int = TEST_SEED) -> Iterator[Case]:
    """Worlds of the generator."""
    for seed in range(first, first + RANDOM_WORLDS):
        env = draw_world(seed)

        def judge(found: Suggestion, env: Any = env) -> dict[str, str]:
            about = [[one for one in found.verdicts if set(one.names) & set(part.names)] for part in env.parts]
            return {part.names[0]: judged_part(part, each) for part, each in zip(env.parts, about, strict=True)}

        yield Case(f"random {seed}", as_world(env, f"random-{seed}"), judge)


def taxi() -> Iterator[Case]:
    """Gymnasium's Taxi."""
    import taxi as example

    world = example.taxi()
    yield Case("Taxi-v4", world, by_truth(dict(zip(world.space.names, world.space.blocks, strict=True))))


def minigrid() -> Iterator[Case]:
    """MiniGrid's empty room, whose pose is to be found too, and BlockedUnlockPickup."""
    import mini_grid
    import poses

    pose: Truth = {"x": Natural(), "y": Natural(), "direction": Cyclic(4)}
    plain = by_truth(pose)

    def judge(found: Suggestion) -> dict[str, str]:
        turns = {one.name: one.turns for one in found.verdicts}
        return {**plain(found), "pose": RIGHT if turns.get("direction") == ("x", "y") else UNDECIDED}

    yield Case("MiniGrid-Empty", poses.room("apart", poses.INNER), judge)
    more: Truth = {
        "room": Natural(),
        "key": Natural(),
        "ball": Natural(),
        "blocked": Cyclic(2),
        "box": BOX,
        "door": DOOR,
    }
    task: Any = mini_grid.TASKS[0]
    settings: Any = task.settings
    yield Case(task.env, task.world(), by_truth({**pose, **more}), settings=settings)


def craftax() -> Iterator[Case]:
    """Craftax-Classic. The direction is set by the last move, so it has no algebra."""
    import craftax_classic as example

    body: Truth = {name: Exogenous(Natural()) for name in example.BODY}
    place: Truth = {"row": Natural(), "column": Natural(), "direction": Categorical(("1", "2", "3", "4"))}
    items: Truth = {name: Natural() for name in example.ITEMS}
    near: Truth = {"near_table": Cyclic(2), "near_furnace": Cyclic(2)}
    yield Case("Craftax-Classic", example.craftax(), by_truth({**items, **near, **body, **place}))


def other_worlds() -> Iterator[Case]:
    """Worlds of the generator to tune on."""
    yield from random_worlds(0)


GROUPS: dict[str, Callable[[], Iterator[Case]]] = {
    "tuning": other_worlds,
    "games": games, "taxi": taxi, "minigrid": minigrid, "craftax": craftax, "random": random_worlds,
}  # fmt: skip


USUAL = ("games", "taxi", "minigrid", "random")


def measure(group: str, case: Case, seed: int, rare: bool = True) -> dict[str, Any]:
    """The judgement of one world, at the end and at the beginnings of the play."""
    played = play_freely(case.world, case.steps[-1], seed, case.lanes, rare=rare)
    found: dict[int, dict[str, str]] = {}
    for steps in case.steps:
        last = suggest(played if steps == case.steps[-1] else played.first(steps))
        found[steps] = case.judge(last)
    return _row(group, case, last, found)


def measure_scouted(group: str, case: Case, seed: int, scout: int) -> dict[str, Any]:
    """The judgement of one world after random play and the play of a scout, half of the steps each."""
    steps = case.steps[-1]
    found = explored_suggestion(case.world, case.settings, scout, steps // 2, seed, progress)
    return _row(group, case, found, {steps: case.judge(found)}) | {"scout": scout}


def _row(group: str, case: Case, last: Suggestion, found: dict[int, dict[str, str]]) -> dict[str, Any]:
    """The judgements at some numbers of steps, with the last suggestion."""
    rows = {
        one.name: {"block": one.block.symbol, "margin": _bits(one), "evidence": one.evidence} for one in last.verdicts
    }
    progress(f"{case.name}: {last.space}\n  {found[case.steps[-1]]}")
    return {"group": group, "world": case.name, "transitions": last.steps, "space": str(last.space),
            "judged": {str(steps): words for steps, words in found.items()}, "attributes": rows}  # fmt: skip


def _bits(one: Verdict) -> float | None:
    return None if one.margin == float("inf") else round(one.margin, 1)


def main() -> None:
    """Plays, judges, prints and writes."""
    parser = make_parser(__doc__)
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}; by default {', '.join(USUAL)}")
    parser.add_argument("--steps", type=int, default=STEPS[-1])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scout", type=int, default=0, metavar="STEPS", help="let an agent train and explore as well")
    parser.add_argument("--from-start", action="store_true", help="begin no game where an attribute has a rare value")
    parser.add_argument("--only", nargs="*", help="names of worlds")
    parser.add_argument("--add", action="store_true", help="keep the other worlds of the file")
    options = parser.parse_args()
    if unknown := set(options.groups) - set(GROUPS):  # argparse refuses its own default for a list of choices
        parser.error(f"no group {', '.join(sorted(unknown))}: name any of {', '.join(GROUPS)}")
    if options.scout and options.from_start:
        parser.error("--from-start is for play without a scout")
    sys.path.insert(0, str(ROOT / "examples"))
    rows: list[dict[str, Any]] = []
    for group in options.groups or USUAL:
        for case in GROUPS[group]():
            if not options.only or case.name in options.only:
                steps = (*(one for one in case.steps if one < options.steps), options.steps)
                case = case._replace(steps=steps)
                rows.append(
                    measure_scouted(group, case, options.seed, options.scout) if options.scout
                    else measure(group, case, options.seed, not options.from_start)
                )  # fmt: skip
                save(options, rows)


def save(options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """Writes the worlds so far; with `--add` also those that the file already has."""
    path: Path | None = options.json
    known = read_json(path)["rows"] if path and options.add and path.exists() else []
    new = {row["world"] for row in rows}
    write_result(path, {"seed": options.seed, "rows": [*(row for row in known if row["world"] not in new), *rows]})


if __name__ == "__main__":
    main()

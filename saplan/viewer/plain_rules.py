"""The rules of a game in plain words, for people who see the page for the first time."""

from typing import Any

from saplan.games import Arm, Exchange, Game, Mining, Switches, Tiles
from saplan.games.scene import COLOURS
from saplan.games.wrapper import unwrapped

WALK = "The agent walks one cell per step, and interacts with the cell that it stands on."
OWN_WORLD = (
    "A world of your own. saplan does not know its rules: the agent has found the changes of the attributes by play, "
    "and learnt where each is possible and how to make it."
)


def plain_rules(game: Game[Any]) -> tuple[str, list[str]]:
    """A sentence about the game, and its rules one by one."""
    known = unwrapped(game)
    if isinstance(known, Switches):
        return _switches(known)
    if isinstance(known, Exchange):
        return _exchange(known)
    if isinstance(known, Mining):
        return _mining(known)
    if isinstance(known, Arm):
        return _arm(known)
    if isinstance(known, Tiles):
        return _tiles(known)
    return OWN_WORLD, [f"The agent chooses among {len(known.actions)} actions at every step."]


def _switches(game: Switches) -> tuple[str, list[str]]:
    kinds = COLOURS[: game.kinds]
    return f"Objects of {len(kinds)} colours lie on the map, and a switch shows one colour.", [
        WALK,
        "On an object it picks it up, but only while the switch shows the object's colour. On the switch it advances "
        f"the switch: {', '.join(kinds)}, and {kinds[0]} again.",
        f"map_{kinds[0]} counts the {kinds[0]} objects on the map, {kinds[0]} those that the agent holds; switch is "
        "its position, from 0.",
    ]


def _exchange(game: Exchange) -> tuple[str, list[str]]:
    kinds = COLOURS[: game.kinds]
    give, get = next((i, j) for i in range(game.kinds) for j in range(game.kinds) if i != j)
    return "Objects can be picked up, and held objects can be traded for others, at a loss.", [
        WALK,
        "On an object it picks it up. A trade is possible anywhere: for instance, it gives "
        f"{game.gives[give][get]} {kinds[give]} for {game.takes[give][get]} {kinds[get]}.",
        "Every trade gives more than it returns, so objects run out, and a wrong trade can put a goal out of reach.",
        f"map_{kinds[0]} counts the {kinds[0]} objects on the map, {kinds[0]} those that the agent holds.",
    ]


def _mining(game: Mining) -> tuple[str, list[str]]:
    return "Two minerals are mined with hammers, and their amounts must stay inside a set S, the arch in the plane.", [
        WALK,
        "At the store it gets a hammer, if it holds none. On a deposit with a hammer it gains between "
        f"{game.yield_low:g} and {game.yield_high:g} of that mineral, by chance, and the hammer breaks. On a dump yard "
        f"it throws {game.dumps:g} of that mineral away.",
        "A change that would leave S is refused, so the way from one foot of the arch to the other leads over the top.",
        f"A goal is reached within {game.tolerance:g} of both amounts.",
    ]


def _arm(game: Arm) -> tuple[str, list[str]]:
    return "Cranks on the map turn an arm with a shoulder and an elbow; a post stands in its way.", [
        WALK,
        f"On a crank it turns the joint by {game.turn:g} degrees, red the shoulder and blue the elbow, to the right or "
        "to the left. A turn that would touch the post is refused.",
        "Angles are in degrees and grow to the right: a shoulder of 0 points up. The elbow is measured from the upper "
        "arm.",
        "The upper arm cannot pass the post, so a goal that looks near may lie a whole way round.",
    ]


def _tiles(game: Tiles) -> tuple[str, list[str]]:
    return f"{game.kinds} square pieces are turned and mirrored until each has the orientation of the goal.", [
        WALK,
        "On the carousel it chooses the next piece. On the turntable it turns the chosen piece by a quarter to the "
        "right, and on the mirror it swaps its left and its right.",
        "The order matters: turning and then mirroring is another result than mirroring and then turning.",
        "0 to 3 count quarter turns; m0 to m3 are the same of the mirrored piece.",
    ]

"""Messages between the page and the server, as JSON. Incoming messages are checked field by field."""

import base64
import dataclasses
import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from saplan.algebra import Block, Categorical, Circle, Cyclic, Dihedral, Natural, Real
from saplan.algebra.marked import inner
from saplan.errors import InputError, unknown_name
from saplan.games import Arm, Game, Switches, Tiles
from saplan.games.scene import COLOURS, Scene
from saplan.games.wrapper import unwrapped
from saplan.render.start import BUDGET, Start
from saplan.viewer.plain_rules import plain_rules
from saplan.viewer.worlds import Worlds

LONGEST_TEXT = 400
"""Most characters of a name or a goal."""
LARGEST_NUMBER = 2**31 - 1
LARGEST_SIDE = 640
"""Pixels of a world's own picture."""


@dataclass(frozen=True)
class Open:
    """Show a map; with a goal, plan and advance to a step."""

    id: int
    """Chosen by the page; every answer repeats it."""
    world: str
    method: str
    seed: int
    goal: str
    step: int


@dataclass(frozen=True)
class Step:
    """Take one step of the task that was opened last."""

    id: int


@dataclass(frozen=True)
class Retarget:
    """Give the task that was opened last another goal, from where it stands; then advance to a step of that."""

    id: int
    """A new number, which the answers repeat."""
    goal: str
    step: int


Message = Open | Step | Retarget
KINDS: dict[str, type[Message]] = {"open": Open, "step": Step, "goal": Retarget}
MOST = {"step": BUDGET}
"""The largest number of a field, where it is not `LARGEST_NUMBER`."""


def read(text: str) -> Message:
    """The message of a text from the page; `InputError` if it is malformed."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("a message must be JSON") from None
    if not isinstance(said, dict) or not isinstance(said.get("type"), str):
        raise InputError("a message must be an object with a type")
    if said["type"] not in KINDS:
        raise unknown_name("type of message", said["type"][:LONGEST_TEXT], KINDS)
    kind = KINDS[said.pop("type")]
    fields = {field.name: field.type for field in dataclasses.fields(kind)}
    if said.keys() != fields.keys():
        raise InputError(f"a message of this type has the fields {', '.join(fields)} and no others")
    for name, value in said.items():
        if fields[name] is int:
            _check_number(name, value)
        elif not isinstance(value, str) or len(value) > LONGEST_TEXT:
            raise InputError(f"{name} must be text of at most {LONGEST_TEXT} characters")
    return kind(**said)


def _check_number(name: str, value: Any) -> None:
    most = MOST.get(name, LARGEST_NUMBER)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise InputError(f"{name} must be a whole number in 0..{most}")


def encode(message: dict[str, Any]) -> str:
    """JSON of a server message, in ASCII: it may quote malformed text of the page."""
    return json.dumps(message, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class Beginning:
    """What a page shows first if its address asks for nothing else."""

    method: str = ""
    seed: int = 0
    goal: str = ""


def hello(worlds: Worlds, begin: Beginning) -> dict[str, Any]:
    """The worlds to choose from, and what to begin with."""
    return {
        "type": "hello",
        "worlds": [
            {
                "name": world.name,
                "game": world.kind,
                "methods": list(world.methods),
                "trained": list(world.trained),
                "example": world.example,
            }
            for world in worlds.worlds.values()
        ],
        "begin": dataclasses.asdict(begin),
        "budget": BUDGET,
    }


def map_message(opened: Open, game: Game[Any], begin: Start) -> dict[str, Any]:
    """Message with a fresh map, its attributes and its rules."""
    summary, points = plain_rules(game)
    return {
        "type": "map",
        "id": opened.id,
        "world": opened.world,
        "method": opened.method,
        "seed": opened.seed,
        "scene": scene_data(begin.scene),
        "rho": list(begin.rho),
        "attributes": attributes_data(game, begin),
        "rules": {"summary": summary, "points": points},
        "arm": arm_data(game),
    }


def arm_data(game: Game[Any]) -> dict[str, float] | None:
    """Lengths of the arm and the place of the post; None for other games."""
    known = unwrapped(game)
    if not isinstance(known, Arm):
        return None
    return {name: getattr(known, name) for name in ("upper", "fore", "post", "distance", "radius")}


def refusal(number: int | None, reason: str, kind: str = "error") -> dict[str, Any]:
    """One line that says what is wrong; its kind is `impossible` if the goal is."""
    return {"type": kind, "id": number, "reason": " ".join(reason.split())}


def scene_data(scene: Scene) -> dict[str, Any]:
    """A scene as plain data."""
    return {
        "height": scene.height,
        "width": scene.width,
        "walls": sorted(map(list, scene.walls)),
        "agent": list(scene.agent),
        "things": [[thing.row, thing.column, thing.shape, thing.colour] for thing in scene.things],
        "held": [list(entry) for entry in scene.inventory],
        "picture": None if scene.picture is None else picture_data(scene.picture),
    }


def picture_data(picture: np.ndarray) -> str:
    """A PNG in base 64, at most `LARGEST_SIDE` pixels wide and high."""
    from PIL import Image

    image, data = Image.fromarray(np.asarray(picture, np.uint8)), io.BytesIO()
    image.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
    image.save(data, "PNG")
    return base64.b64encode(data.getvalue()).decode("ascii")


def attributes_data(game: Game[Any], begin: Start) -> list[dict[str, Any]]:
    """Algebra and colour of every attribute."""
    colours = {label: colour for label, colour, _ in begin.scene.inventory}
    found = []
    for name, block in zip(game.space.names, game.space.blocks, strict=True):
        colour = "grey" if isinstance(block, Cyclic) else colours.get(name.removeprefix("map_"), "grey")
        found.append(
            {
                "name": name,
                "symbol": block.symbol,
                "colour": colour,
                "tolerance": block.tolerance,
                **_shape(block),
            }
        )
    if isinstance(game, Switches | Tiles):
        found[-1]["colours"] = list(COLOURS[: game.kinds])  # each position of the dial stands for a kind
    return found


def _shape(block: Block) -> dict[str, Any]:
    """The way to draw an attribute."""
    block = inner(block)
    if isinstance(block, Natural):
        return {"kind": "count"}
    if isinstance(block, Cyclic):
        return {"kind": "dial", "positions": block.q, "colours": []}
    if isinstance(block, Circle):
        return {"kind": "ring", "period": block.period}
    if isinstance(block, Dihedral):
        return {"kind": "tile", "corners": block.n, "labels": [block.format(code) for code in range(block.size)]}
    if isinstance(block, Categorical):
        return {"kind": "label", "labels": list(block.labels)}
    if isinstance(block, Real):
        return {"kind": "real", "range": numbers((block.low, block.high))}
    return {"kind": "whole"}


def numbers(values: Any) -> list[float | None]:
    """Numbers for JSON: None where they are infinite."""
    return [float(x) if np.isfinite(x) else None for x in np.asarray(values, float)]

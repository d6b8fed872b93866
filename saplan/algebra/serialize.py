"""Spaces to and from JSON data, for files."""

import dataclasses
from collections.abc import Callable
from typing import Any

from saplan.algebra.base import Block
from saplan.algebra.categorical import Categorical
from saplan.algebra.circle import Circle
from saplan.algebra.cyclic import Cyclic
from saplan.algebra.dihedral import Dihedral
from saplan.algebra.exogenous import Exogenous
from saplan.algebra.homogeneous import Homogeneous
from saplan.algebra.integer import Integer
from saplan.algebra.marked import Marked
from saplan.algebra.natural import Natural
from saplan.algebra.product import Product
from saplan.algebra.real import Real
from saplan.errors import InputError, unknown_name

BLOCKS: dict[str, type[Block]] = {
    kind.__name__: kind for kind in (Natural, Integer, Cyclic, Real, Circle, Dihedral, Categorical)
}
LABELS, TURNS = "labels", "turns"
MARKS: dict[str, Callable[[Block], Block]] = {kind.mark: kind for kind in (Exogenous, Homogeneous)}
"""`turns` of a heading names the two attributes of the place whose changes are taken in its frame."""
MOST = 256
"""Most attributes of a space in a file."""
LONGEST = 64
"""Most letters of a name or a label in a file."""
WHOLE = {"q": 2**24, "n": 64, "bins": 2**16, "max_bins": 2**16}
"""Parameters that are whole numbers, with their largest values."""
REAL = ("resolution", "period", "low", "high")


def space_to_json(space: Product) -> list[dict[str, Any]]:
    """One row per attribute: its name, its block, the parameters of the block, and whether it is exogenous."""
    rows = [{"name": name, **_block_to_json(block)} for name, block in zip(space.names, space.blocks, strict=True)]
    for frame in space.frames:
        rows[frame.heading][TURNS] = [space.names[frame.x], space.names[frame.y]]
    return rows


def _block_to_json(block: Block) -> dict[str, Any]:
    if isinstance(block, Marked):
        return {**_block_to_json(block.of), block.mark: True}
    return {"block": type(block).__name__, **dataclasses.asdict(block)}  # type: ignore[call-overload]


def space_from_json(rows: object) -> Product:
    """The space that JSON data describe; `InputError` if they do not describe one."""
    if not isinstance(rows, list) or not 1 <= len(rows) <= MOST:
        raise InputError(f"a space is a list of 1 to {MOST} attributes")
    names = [row.get("name") if isinstance(row, dict) else None for row in rows]
    if not all(isinstance(name, str) and len(name) <= LONGEST for name in names):
        raise InputError(f"a space is a list of attributes, each with a name of up to {LONGEST} letters and a block")
    space = Product(tuple(row["name"] for row in rows), tuple(_block_from_json(row) for row in rows))
    for row in rows:
        if TURNS in row:
            places = row[TURNS]
            if not isinstance(places, list) or len(places) != 2 or not all(isinstance(name, str) for name in places):
                raise InputError(f"attribute {row['name']!r}: {TURNS} must be a list of two names")
            space = space.with_pose(places[0], places[1], row["name"])
    return space


def _block_from_json(row: dict[str, Any]) -> Block:
    name, kind = row["name"], row.get("block")
    if not isinstance(kind, str) or kind not in BLOCKS:
        raise unknown_name("block", str(kind)[:LONGEST], BLOCKS)
    marks = [mark for mark in MARKS if row.get(mark, False)]
    if not all(type(row.get(mark, False)) is bool for mark in MARKS):
        raise InputError(f"attribute {name!r}: {' and '.join(MARKS)} must be true or false")
    given = {key: value for key, value in row.items() if key not in ("name", "block", TURNS, *MARKS)}
    for key, value in given.items():
        complaint = _complaint(key, value)
        if complaint:
            raise InputError(f"attribute {name!r}: {key[:LONGEST]} {complaint}")
    try:
        block = BLOCKS[kind](
            **{key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
        )
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InputError(f"attribute {name!r}: {error}") from None
    for mark in marks:
        block = MARKS[mark](block)
    return block


def _complaint(key: str, value: object) -> str:
    """The error in one parameter of a block; empty if it is right."""
    if key in WHOLE:
        good = type(value) is int and 1 <= value <= WHOLE[key]
        return "" if good else f"must be a whole number in 1..{WHOLE[key]}"
    if key in REAL:
        return "" if type(value) in (int, float) else "must be a number"
    if key == LABELS:
        good = isinstance(value, list) and all(isinstance(text, str) and 0 < len(text) <= LONGEST for text in value)
        return "" if good else f"must be a list of texts of up to {LONGEST} letters"
    return "is not a parameter of a block"

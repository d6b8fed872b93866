"""A space as plain data, for files: there and back."""

import dataclasses
from typing import Any

from saplan.algebra.base import Block
from saplan.algebra.categorical import Categorical
from saplan.algebra.cyclic import Cyclic
from saplan.algebra.exogenous import Exogenous
from saplan.algebra.integer import Integer
from saplan.algebra.natural import Natural
from saplan.algebra.product import Product
from saplan.algebra.real import Real
from saplan.errors import InputError, unknown_name

BLOCKS: dict[str, type[Block]] = {kind.__name__: kind for kind in (Natural, Integer, Cyclic, Real, Categorical)}
EXOGENOUS = "exogenous"


def space_to_json(space: Product) -> list[dict[str, Any]]:
    """One row per attribute: its name, its block, the numbers of the block, and whether it changes by itself."""
    return [{"name": name, **_block_to_json(block)} for name, block in zip(space.names, space.blocks, strict=True)]


def _block_to_json(block: Block) -> dict[str, Any]:
    if isinstance(block, Exogenous):
        return {**_block_to_json(block.of), EXOGENOUS: True}
    return {"block": type(block).__name__, **dataclasses.asdict(block)}  # type: ignore[call-overload]


def space_from_json(rows: Any) -> Product:
    """The space that plain data describe; `InputError` if they describe none."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) and {"name", "block"} <= set(row) for row in rows):
        raise InputError("a space is a list of attributes, each with a name and a block")
    blocks: list[Block] = []
    for row in rows:
        if row["block"] not in BLOCKS:
            raise unknown_name("block", str(row["block"]), BLOCKS)
        rest = {name: value for name, value in row.items() if name not in ("name", "block", EXOGENOUS)}
        numbers = {name: tuple(value) if isinstance(value, list) else value for name, value in rest.items()}
        try:
            block = BLOCKS[row["block"]](**numbers)
        except (TypeError, ValueError) as error:
            raise InputError(f"attribute {row['name']!r}: {error}") from None
        blocks.append(Exogenous(block) if row.get(EXOGENOUS) is True else block)
    return Product(tuple(str(row["name"]) for row in rows), tuple(blocks))

"""JSON files: written in readable form, and read without trusting their names, numbers or depth."""

import json
import re
from pathlib import Path
from typing import Any, TypeGuard

from saplan.errors import InputError
from saplan.storage.files import read_bytes, replace_file

LARGEST = 2**22
"""Bytes of a JSON file that is read."""
DEEPEST = 16
"""Nested lists and objects. Our own files have half as many levels."""


def read_json(path: Path, largest: int = LARGEST) -> Any:
    """The data in a JSON file, or `InputError`."""
    return parse_json(read_bytes(path, largest), path)


def write_json(path: Path, data: Any) -> None:
    """Write a readable JSON file, or raise `InputError`."""
    replace_file(path, json_bytes(data))


def json_bytes(data: Any) -> bytes:
    """The content of a readable JSON file."""
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()


def through_json(data: Any) -> Any:
    """The data as they return from a JSON file: lists in place of tuples."""
    return json.loads(json.dumps(data))


def parse_json(data: bytes, where: Path | str) -> Any:
    """The data of a JSON text in UTF-8; `InputError` for anything else, including duplicate names and NaN."""
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_constant)
        if _depth(found) > DEEPEST:
            raise InputError(f"lists or objects are nested more than {DEEPEST} deep")
        json.dumps(found, ensure_ascii=False).encode()
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except UnicodeEncodeError:
        raise InputError(f"{where} holds text that is not Unicode") from None
    except (ValueError, RecursionError):
        raise InputError(f"{where} is not JSON") from None
    return found


def is_whole(value: Any, least: int, most: int) -> TypeGuard[int]:
    """Whether the value is an integer within bounds; booleans are not integers here."""
    return type(value) is int and least <= value <= most


def is_number(value: Any, least: float, most: float) -> TypeGuard[float]:
    """Whether the value is a number within bounds."""
    return type(value) in (int, float) and least <= value <= most


def is_digest(value: Any) -> TypeGuard[str]:
    """Whether the value is a SHA-256 in hexadecimal digits."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for k, (name, _) in enumerate(pairs) if name in dict(pairs[:k]))
        raise InputError(f"{name[:80]!r} is given twice")
    return found


def _constant(name: str) -> float:
    if name == "NaN":
        raise InputError("NaN is not a number")
    return float(name)  # bounds of a space may be infinite


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)

"""The header of a safetensors file, checked in full before its data are read."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saplan.errors import InputError
from saplan.storage.json_data import is_whole, parse_json

LARGEST = 2**20
"""Bytes of a header, which names every array. Ours have a tenth of this; a parser must not be fed gigabytes."""
LENGTH = 8
"""Bytes that hold the length of the header."""
METADATA = "__metadata__"
DTYPES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "F16": np.float16,
    "U32": np.uint32, "I32": np.int32, "F32": np.float32, "U64": np.uint64, "I64": np.int64, "F64": np.float64,
}  # fmt: skip
"""The types that are read. The format has others."""
MOST_AXES = 8


@dataclass(frozen=True)
class Entry:
    """Type, shape and place of one array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Header:
    """The arrays and the metadata that a file declares."""

    entries: dict[str, Entry]
    metadata: dict[str, str]
    size: int
    """Bytes before the data."""

    def arrays(self, data: bytes) -> dict[str, np.ndarray]:
        """The arrays in the file's bytes, without a copy."""
        return {name: self._array(data, entry) for name, entry in self.entries.items()}

    def _array(self, data: bytes, entry: Entry) -> np.ndarray:
        # The byte of a boolean may hold any number, but NumPy expects 0 or 1.
        stored = np.dtype(np.uint8) if entry.dtype.kind == "b" else entry.dtype
        flat = np.frombuffer(data, stored, math.prod(entry.shape), self.size + entry.start)
        return (flat != 0 if entry.dtype.kind == "b" else flat).reshape(entry.shape)


def read_header(data: bytes, size: int, path: Path) -> Header:
    """The header at the start of a file of `size` bytes; `InputError` unless it describes exactly that file."""
    length = int.from_bytes(data[:LENGTH], "little")
    if len(data) < LENGTH or length > min(size - LENGTH, LARGEST) or data[LENGTH : LENGTH + 1] != b"{":
        raise InputError(f"{path} is not a safetensors file that saplan can read")
    try:
        declared = parse_json(data[LENGTH : LENGTH + length], f"the header of {path}")
    except InputError as error:
        raise InputError(f"{path} is not a safetensors file: {error}") from None
    metadata = declared.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise InputError(f"{path} is not a safetensors file: its metadata are not strings")
    entries = {name: _entry(name, value, path) for name, value in declared.items()}
    end = 0
    for entry in sorted(entries.values(), key=lambda entry: (entry.start, entry.end)):
        if entry.start != end:
            raise InputError(f"{path} is not a safetensors file: its arrays overlap, or leave gaps")
        end = entry.end
    if LENGTH + length + end != size:
        raise InputError(f"{path} is not a safetensors file: its size of {size} bytes differs from its header's")
    return Header(entries, metadata, LENGTH + length)


def _entry(name: str, value: Any, path: Path) -> Entry:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise InputError(f"{path} is not a safetensors file: {name[:80]!r} does not describe an array")
    kind, shape, place = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(kind, str) or kind not in DTYPES:
        raise InputError(f"{path}: the array {name[:80]!r} has the unsupported type {str(kind)[:20]!r}")
    whole = isinstance(shape, list) and isinstance(place, list) and len(shape) <= MOST_AXES and len(place) == 2
    if not whole or not all(is_whole(number, 0, 2**40) for number in (*shape, *place)):
        raise InputError(f"{path} is not a safetensors file: shape or offsets of {name[:80]!r} are not integers")
    dtype = np.dtype(DTYPES[kind])
    if place[1] - place[0] != math.prod(shape) * dtype.itemsize:
        raise InputError(f"{path} is not a safetensors file: {name[:80]!r} is longer or shorter than its shape")
    return Entry(dtype, tuple(shape), place[0], place[1])

"""The header of a safetensors file, checked in full before the data behind it are looked at."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saplan.errors import InputError
from saplan.storage.json_data import is_whole, parse_json

LARGEST = 2**20
"""Bytes. The header names every array; ours are a tenth of this, and a parser must not be fed gigabytes."""
LENGTH = 8
"""Bytes that say how long the header is."""
METADATA = "__metadata__"
DTYPES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "F16": np.float16,
    "U32": np.uint32, "I32": np.int32, "F32": np.float32, "U64": np.uint64, "I64": np.int64, "F64": np.float64,
}  # fmt: skip
"""Those that are read. The format knows others."""
MOST_AXES = 8


@dataclass(frozen=True)
class Entry:
    """Where one array lies, and what it is."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Header:
    """What a file says of itself."""

    entries: dict[str, Entry]
    metadata: dict[str, str]
    size: int
    """Bytes before the data."""

    def arrays(self, data: bytes) -> dict[str, np.ndarray]:
        """The arrays of the file's bytes, without a copy."""
        return {name: self._array(data, entry) for name, entry in self.entries.items()}

    def _array(self, data: bytes, entry: Entry) -> np.ndarray:
        # A byte of a boolean may be any, and only 0 and 1 mean something.
        stored = np.dtype(np.uint8) if entry.dtype.kind == "b" else entry.dtype
        flat = np.frombuffer(data, stored, math.prod(entry.shape), self.size + entry.start)
        return (flat != 0 if entry.dtype.kind == "b" else flat).reshape(entry.shape)


def read_header(data: bytes, size: int, path: Path) -> Header:
    """The header at the beginning of a file of so many bytes; `InputError` unless it describes just that file."""
    length = int.from_bytes(data[:LENGTH], "little")
    if len(data) < LENGTH or length > min(size - LENGTH, LARGEST) or data[LENGTH : LENGTH + 1] != b"{":
        raise InputError(f"{path} is not a safetensors file of ours")
    try:
        told = parse_json(data[LENGTH : LENGTH + length], f"the header of {path}")
    except InputError as error:
        raise InputError(f"{path} is not a safetensors file: {error}") from None
    metadata = told.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise InputError(f"{path} is not a safetensors file: its metadata are not texts")
    entries = {name: _entry(name, value, path) for name, value in told.items()}
    end = 0
    for entry in sorted(entries.values(), key=lambda entry: (entry.start, entry.end)):
        if entry.start != end:
            raise InputError(f"{path} is not a safetensors file: its arrays overlap, or leave gaps")
        end = entry.end
    if LENGTH + length + end != size:
        raise InputError(f"{path} is not a safetensors file: it is {size} bytes long, its header says otherwise")
    return Header(entries, metadata, LENGTH + length)


def _entry(name: str, value: Any, path: Path) -> Entry:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise InputError(f"{path} is not a safetensors file: {name[:80]!r} is not described as an array is")
    kind, shape, place = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(kind, str) or kind not in DTYPES:
        raise InputError(f"{path} holds an array of another type than ours: {name[:80]!r} is {str(kind)[:20]!r}")
    whole = isinstance(shape, list) and isinstance(place, list) and len(shape) <= MOST_AXES and len(place) == 2
    if not whole or not all(is_whole(number, 0, 2**40) for number in (*shape, *place)):
        raise InputError(f"{path} is not a safetensors file: shape or place of {name[:80]!r} are not whole numbers")
    dtype = np.dtype(DTYPES[kind])
    if place[1] - place[0] != math.prod(shape) * dtype.itemsize:
        raise InputError(f"{path} is not a safetensors file: {name[:80]!r} is longer or shorter than its shape")
    return Entry(dtype, tuple(shape), place[0], place[1])

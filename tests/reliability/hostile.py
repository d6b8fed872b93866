"""Hundreds of files that mean harm, made from sound ones, and what the command line says to each.

`python -m tests.reliability.hostile FOLDER` makes them one by one in a folder, hands each to the command line, and
prints one line of JSON per file, then the growth of memory.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import resource
import shutil
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saplan.cli import main
from saplan.games import make_game
from saplan.perception.fit import fit_labels
from saplan.perception.fitted import write_fitted
from saplan.perception.labels import draw_labels, game_labels, write_labels
from saplan.perception.observation import Observer
from saplan.perception.regressor import RegressorSettings
from saplan.storage.arrays import to_bytes
from saplan.storage.manifest import sealed
from saplan.training.checkpoint import ARRAYS, MANIFEST
from saplan.training.loop import Loop
from saplan.training.run_directory import begin_run
from saplan.training.store import save_agent
from tests.reliability.tiny import GAME, tiny_config

Words = list[str]
Build = Callable[[Path], None]
"""Spoils what lies in a folder."""
PATIENCE = 30
"""Seconds that a refusal may take at most; most take a hundredth."""
TRAINED = [
    ("structured", GAME), ("unstructured", GAME), ("curriculum", GAME), ("structured", "exchange"),
    ("structured", "mining"),
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One hostile file."""

    group: str
    name: str
    base: str
    """The sound thing it is made from."""
    spoil: Build
    words: Words
    """The command line; THING is where it lies."""


# The sound things.


def make_bases(folder: Path) -> None:
    """One run with an agent per method and game, one file of labels, one of fitted attributes."""
    for method, game in TRAINED:
        config = tiny_config(method, game=game, **({"nodes": 64, "degree": 4} if method == "unstructured" else {}))
        loop, run = Loop([config]), begin_run(folder / base_name(method, game), config)
        run.open_metrics(0)
        for checkpoint in loop.checkpoints():
            run.save(checkpoint)
        run.close()
        about = {"steps_trained": 64, "command": "saplan train", "hardware": "2 CPU cores"}
        save_agent(run.path, loop.agents()[0], config, about=about)
    game = make_game("switches")
    labels = game_labels(game, "words", *draw_labels(game, Observer(game), 64, 0))
    write_labels(folder / "labels" / "file", labels)
    write_fitted(folder / "fitted" / "file", fit_labels(labels, RegressorSettings(hidden=8, steps=1, batch=4)))


def base_name(method: str, game: Any) -> str:
    return f"{method}-{game if isinstance(game, str) else game.name}"


RUNS = [base_name(*pair) for pair in TRAINED]
RESUME = ["train", "--resume", "THING"]
EVALUATE = ["evaluate", "THING", "--tasks", "1", "--budget", "1"]
PLAN = ["plan", "THING", "--goal", "switch=1", "--budget", "1"]
FIT = ["fit-attributes", "THING/file", "--steps", "1", "--out", "THING/out"]
ATTRIBUTES = ["train", "switches", "--attributes", "fitted:THING/file", "--out", "THING/run"]


# Plain data with something wrong in one place.


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """All places in plain data, with what is there."""
    yield path, data
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        yield from places(value, (*path, key))


def put(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Plain data with another value at one place."""
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = put(copy[path[0]], path[1:], value)
    return copy


def without(data: Any, path: tuple[Any, ...]) -> Any:
    """Plain data without one of their fields."""
    copy = dict(data)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = without(copy[path[0]], path[1:])
    return copy


ESCAPE = "\x1b]0;owned\x07\x1b[2J\u202e"
HUGE, DEEP = 10**400, 10**30
WRONG: dict[type, list[Any]] = {
    bool: [None, 1, "true", []],
    int: [True, 1.5, "3", None, [], -1, DEEP, float("inf"), {}, HUGE],
    float: ["x", None, True, [], float("inf"), 1e300, HUGE, -1e300],
    str: [5, None, [], {}, ESCAPE, "../../outside", "x" * 5000],
    list: [None, {}, "x", 5, [[[]]]],
    dict: [None, [], "x", 5],
    type(None): [5, "x", []],
}


def wrong_values(there: Any, count: int, turn: int) -> list[Any]:
    """A few of the values that never fit in place of this one; another choice at every turn."""
    pool = WRONG[type(there)]
    return [pool[(turn + k) % len(pool)] for k in range(min(count, len(pool)))]


Rewrite = Callable[[Path, bytes], None]
"""Puts a text in place of the JSON of a thing, and makes all hashes agree with it."""


def spoilt_data(
    group: str,
    base: str,
    words: Words,
    read: Callable[[Path], Any],
    write: Rewrite,
    free: tuple[str, ...],
    data: Any,
    each: int = 2,
) -> Iterator[Case]:
    """Wrong values in every place, except below the names that are `free`; and every field missing."""
    for turn, (path, there) in enumerate(places(data)):
        title = ".".join(map(str, path))
        if any(title == name or title.startswith(name + ".") for name in free):
            continue
        for value in wrong_values(there, each, turn):

            def spoil(thing: Path, path: Any = path, value: Any = value) -> None:
                write(thing, json.dumps(put(read(thing), path, value)).encode())

            yield Case(group, f"{title} = {str(value)[:12]!r}", base, spoil, words)
        # A setting or a rule that a manifest does not name has its default: older versions had fewer.
        usual = title.startswith(("config.settings.", "config.rules.")) or title.endswith(".bins")
        if path and isinstance(path[-1], str) and each > 1 and not usual:

            def drop(thing: Path, path: Any = path) -> None:
                write(thing, json.dumps(without_in(read(thing), path)).encode())

            yield Case(group, f"{title} missing", base, drop, words)


def without_in(data: Any, path: tuple[Any, ...]) -> Any:
    """The same through lists."""
    if len(path) == 1:
        return without(data, path)
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = without_in(copy[path[0]], path[1:])
    return copy


TEXTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda text: b"",
    "cut": lambda text: text[: len(text) // 2],
    "trailing": lambda text: text + b"}",
    "not UTF-8": lambda text: text.replace(b'"', b'"\xff', 1),
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "twice": lambda text: text.replace(b"{", b'{"format": "x", "format": "x", ', 1),
    "twice within": lambda text: text[: text.rindex(b"}")] + b', "z": {"a": 1, "a": 2}}',
    "NaN": lambda text: text[: text.rindex(b"}")] + b', "z": NaN}',
    "deep": lambda text: text[: text.rindex(b"}")] + b', "z": ' + b"[" * 900 + b"]" * 900 + b"}",
    "deeper": lambda text: b'{"z": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "lone surrogate": lambda text: text[: text.rindex(b"}")] + b', "z": "\\ud800"}',
    "many digits": lambda text: text[: text.rindex(b"}")] + b', "z": ' + b"9" * 5000 + b"}",
    "a list": lambda text: b"[" + text + b"]",
    "a text": lambda text: b'"' + b"x" * 2000 + b'"',
    "an escape": lambda text: json.dumps(ESCAPE).encode(),
    "code": lambda text: b"__import__('os').system('touch owned')",
    "many lists": lambda text: b"[" + b"[]," * 1_300_000 + b"[]]",
    "large": lambda text: b'{"z": "' + b"x" * (2**22) + b'"}',
}


def spoilt_texts(group: str, base: str, words: Words, text: Callable[[Path], bytes], write: Rewrite) -> Iterator[Case]:
    """JSON that is none, or that no one would write."""
    for name, change in TEXTS.items():

        def spoil(thing: Path, change: Any = change) -> None:
            write(thing, change(text(thing)))

        yield Case(group, name, base, spoil, words)


# The JSON of every kind of thing.


def checkpoint_of(run: Path) -> Path:
    return next(path for path in (run / "checkpoints").iterdir() if not path.name.startswith("."))


def write_checkpoint_manifest(run: Path, text: bytes) -> None:
    """Also into the directory's name, as anyone who means harm would."""
    place = checkpoint_of(run)
    (place / MANIFEST).write_bytes(text)
    place.rename(place.with_name(f"{place.name[:10]}{hashlib.sha256(text).hexdigest()[:16]}"))


def write_both_configs(run: Path, text: bytes) -> None:
    """A configuration and a checkpoint that agree with each other."""
    (run / "config.json").write_bytes(text)
    with contextlib.suppress(ValueError, RecursionError):
        manifest = json.loads((checkpoint_of(run) / MANIFEST).read_text())
        write_checkpoint_manifest(run, json.dumps(manifest | {"config": json.loads(text)}).encode())


def write_agent_manifest(run: Path, text: bytes) -> None:
    with contextlib.suppress(ValueError, AttributeError):
        text = json.dumps(sealed(json.loads(text))).encode()
    (run / "manifest.json").write_bytes(text)


def write_agent_text(run: Path, text: bytes) -> None:
    (run / "manifest.json").write_bytes(text)


def header_of(data: bytes) -> tuple[bytes, bytes]:
    """The header and the data of a safetensors file."""
    length = struct.unpack("<Q", data[:8])[0]
    return data[8 : 8 + length], data[8 + length :]


def with_header(header: bytes, data: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def about_text(thing: Path) -> bytes:
    text: str = json.loads(header_of((thing / "file").read_bytes())[0])["__metadata__"]["saplan"]
    return text.encode()


def write_about(thing: Path, text: bytes) -> None:
    header, data = header_of((thing / "file").read_bytes())
    told = json.loads(header)
    told["__metadata__"]["saplan"] = text.decode("utf-8", "surrogateescape")
    (thing / "file").write_bytes(with_header(json.dumps(told).encode("utf-8", "surrogateescape"), data))


def read_about(thing: Path) -> Any:
    return json.loads(about_text(thing))


# Arrays.


def write_header(change: Callable[[bytes, bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: change(*header_of(data))


def alter(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], bytes]:
    """Changes the header as data."""

    def altered(data: bytes) -> bytes:
        header, rest = header_of(data)
        told = json.loads(header)
        change(told)
        return with_header(json.dumps(told).encode(), rest)

    return altered


def first(told: dict[str, Any]) -> Any:
    return told[next(name for name in told if name != "__metadata__")]


def biggest(told: dict[str, Any]) -> Any:
    return max((told[name] for name in told if name != "__metadata__"), key=lambda entry: entry["data_offsets"][1])


def rename_first(name: str) -> Callable[[dict[str, Any]], Any]:
    def rename(told: dict[str, Any]) -> None:
        told[name] = told.pop(next(key for key in told if key != "__metadata__"))

    return rename


def of_floats(value: float, dtype: str) -> Callable[[bytes], bytes]:
    """One number of the first array of floats becomes another, in a type that can hold it."""

    def altered(data: bytes) -> bytes:
        header, rest = header_of(data)
        told = json.loads(header)
        entries = {key: entry for key, entry in told.items() if key != "__metadata__"}
        name = next(key for key, entry in entries.items() if entry["dtype"] == "F32" and entry["shape"])
        arrays = {}
        for key, entry in sorted(entries.items(), key=lambda pair: pair[1]["data_offsets"]):
            piece = rest[entry["data_offsets"][0] : entry["data_offsets"][1]]
            if key == name:
                numbers = np.frombuffer(piece, "<f4").astype(dtype)
                numbers[0] = value
                piece, entry["dtype"] = numbers.tobytes(), {"f4": "F32", "f8": "F64"}[dtype]
            arrays[key] = piece
        whole, end = b"", 0
        for key, piece in arrays.items():
            told[key]["data_offsets"] = [end, end + len(piece)]
            whole, end = whole + piece, end + len(piece)
        return with_header(json.dumps(told).encode(), whole)

    return altered


BYTES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "seven bytes": lambda data: data[:7],
    "cut": lambda data: data[:-1],
    "half": lambda data: data[: len(data) // 2],
    "appended": lambda data: data + b"\0",
    "giant header": lambda data: struct.pack("<Q", 2**60) + data[8:],
    "long header": lambda data: with_header(b"{" + b" " * 2**21 + b"}", b""),
    "deep header": write_header(lambda header, data: with_header(b'{"a": ' + b"[" * 400_000, data)),
    "header is a list": write_header(lambda header, data: with_header(b"[]", data)),
    "header twice": write_header(lambda header, data: with_header(header.replace(b"{", b'{"a":1,"a":1,', 1), data)),
    "header not UTF-8": write_header(lambda header, data: with_header(header.replace(b'"', b'"\xfe', 1), data)),
    "negative offset": alter(lambda told: first(told).update(data_offsets=[-8, 0])),
    "offsets beyond": alter(lambda told: biggest(told).update(data_offsets=[0, 2**50])),
    "offsets overlap": alter(lambda told: biggest(told).update(data_offsets=first(told)["data_offsets"])),
    "offsets are text": alter(lambda told: first(told).update(data_offsets="ab")),
    "giant shape": alter(lambda told: first(told).update(shape=[2**39, 2**39])),
    "negative shape": alter(lambda told: first(told).update(shape=[-1])),
    "many axes": alter(lambda told: first(told).update(shape=[1] * 70)),
    "shape is text": alter(lambda told: first(told).update(shape="3")),
    "shape is true": alter(lambda told: first(told).update(shape=[True])),
    "no dtype": alter(lambda told: first(told).pop("dtype")),
    "unknown dtype": alter(lambda told: first(told).update(dtype="BF16")),
    "complex": alter(lambda told: first(told).update(dtype="C64")),
    "dtype is a list": alter(lambda told: first(told).update(dtype=["F32"])),
    "other dtype": alter(lambda told: biggest(told).update(dtype={"F32": "I32"}.get(biggest(told)["dtype"], "F32"))),
    "an array is a number": alter(lambda told: told.update(x=5)),
    "unknown array": alter(lambda told: told.update(extra={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})),
    "a name with an escape": alter(rename_first(ESCAPE)),
    "a name that climbs": alter(rename_first("../../outside")),
    "a long name": alter(rename_first("x" * 100_000)),
    "metadata is text": alter(lambda told: told.update(__metadata__="x")),
    "metadata are numbers": alter(lambda told: told.update(__metadata__={"saplan": 5})),
    "NaN": of_floats(float("nan"), "f4"),
    "infinity": of_floats(float("inf"), "f4"),
    "1e300": of_floats(1e300, "f8"),
    "pickle": lambda data: b"\x80\x04\x95cos\nsystem\n(S'touch owned'\ntR.",
    "zip": lambda data: b"PK\x03\x04" + data,
}


def spoilt_arrays(group: str, base: str, words: Words, file: Callable[[Path], Path], vouch: Build) -> Iterator[Case]:
    """Arrays that do not fit, with hashes that do."""
    for name, change in BYTES.items():

        def spoil(thing: Path, change: Callable[[bytes], bytes] = change) -> None:
            file(thing).write_bytes(change(file(thing).read_bytes()))
            vouch(thing)

        yield Case(group, name, base, spoil, words)

    def giant(thing: Path) -> None:
        os.truncate(file(thing), 2**29 - 1)

    yield Case(group, "sparse giant", base, giant, words)


def vouch_checkpoint(run: Path) -> None:
    place = checkpoint_of(run)
    data, manifest = (place / ARRAYS).read_bytes(), json.loads((place / MANIFEST).read_text())
    manifest["files"][ARRAYS] = hashlib.sha256(data).hexdigest()
    write_checkpoint_manifest(run, json.dumps(manifest).encode())


def vouch_agent(run: Path) -> None:
    digest = hashlib.sha256((run / "agent.safetensors").read_bytes()).hexdigest()
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(sealed(manifest | {"sha256": digest})))


# Files that are none.


def replaced(path: Path, make: Callable[[Path], Any]) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)


def bystander(path: Path) -> Path:
    """The directory beside the thing, which must stay as it is."""
    return next(parent for parent in path.parents if (parent / "bystander").is_dir()) / "bystander"


NOT_FILES: dict[str, Callable[[Path], Any]] = {
    "link to a file": lambda path: path.symlink_to(bystander(path) / "file"),
    "link to a directory": lambda path: path.symlink_to(bystander(path) / "folder"),
    "dangling link": lambda path: path.symlink_to(bystander(path) / "new"),
    "link to itself": lambda path: path.symlink_to(path),
    "link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "pipe": os.mkfifo,
}
DIRECTORY = {"directory": lambda path: path.mkdir()}


def not_files(group: str, base: str, words: Words, names: list[str], more: dict[str, Any]) -> Iterator[Case]:
    for name in names:
        for kind, make in (NOT_FILES | more).items():

            def spoil(thing: Path, name: str = name, make: Callable[[Path], Any] = make) -> None:
                path = thing / name.replace("NEWEST", checkpoint_of(thing).name if "NEWEST" in name else "")
                replaced(path, make)

            yield Case(group, f"{name} is a {kind}", base, spoil, words)


# Runs that say something false about themselves.


def host_says(**changes: Any) -> Build:
    def spoil(run: Path) -> None:
        manifest = json.loads((checkpoint_of(run) / MANIFEST).read_text())
        manifest["host"] |= changes
        write_checkpoint_manifest(run, json.dumps(manifest).encode())

    return spoil


def settings_say(**changes: Any) -> Build:
    """Both the configuration and the checkpoint."""

    def spoil(run: Path) -> None:
        config = json.loads((run / "config.json").read_text())
        for name, value in changes.items():
            (config["settings"] if name in config["settings"] else config)[name] = value
        write_both_configs(run, json.dumps(config).encode())

    return spoil


def agent_says(**changes: Any) -> Build:
    def spoil(run: Path) -> None:
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["config"]["settings"] |= changes
        (run / "manifest.json").write_text(json.dumps(sealed(manifest)))

    return spoil


def updates_say(count: int) -> Build:
    def spoil(run: Path) -> None:
        manifest, place = json.loads((checkpoint_of(run) / MANIFEST).read_text()), checkpoint_of(run)
        text = json.dumps(manifest | {"updates": count}).encode()
        (place / MANIFEST).write_bytes(text)
        place.rename(place.with_name(f"{count:09d}-{hashlib.sha256(text).hexdigest()[:16]}"))

    return spoil


LARGE: list[dict[str, Any]] = [
    {"hidden": 2**24}, {"hidden": 2**14}, {"lanes": 2**24}, {"lanes": 2**18}, {"rollout": 2**24}, {"epochs": 2**24},
    {"minibatches": 2**24}, {"capacity": 2**24}, {"capacity": 2**14}, {"positives": 2**24}, {"outcomes": 2**20},
    {"edge_batch": 2**24}, {"edge_steps": 2**24}, {"edge_hidden": 2**24}, {"attempt_steps": 2**24},
    {"attempt_steps": 2**16, "lanes": 2**14},
]  # fmt: skip


def large(base: str) -> Iterator[Case]:
    for changes in LARGE:
        name = ", ".join(f"{key} {value}" for key, value in changes.items())
        yield Case("runs that ask for too much", name, base, settings_say(**changes), RESUME)
        if not set(changes) <= {"lanes", "attempt_steps", "outcomes", "positives"}:
            yield Case("agents that ask for too much", name, base, agent_says(**changes), EVALUATE)
    yield Case("runs that ask for too much", "no update at all", base, settings_say(steps=63), RESUME)
    yield Case("runs that ask for too much", "eval_points", base, settings_say(eval_points=2**39), RESUME)
    yield Case("runs that ask for too much", "eval_tasks", base, settings_say(eval_tasks=2**39), RESUME)
    for count in (41, 999, 10**9 - 1):
        yield Case("runs that ask for too much", f"update {count} of 40", base, updates_say(count), RESUME)


# Labels.


def labels_with(**changes: Any) -> Build:
    """Arrays other than those of the labels."""

    def spoil(thing: Path) -> None:
        about = read_about(thing) | changes.get("about", {})
        old = (thing / "file").read_bytes()
        header, data = header_of(old)
        told = json.loads(header)
        arrays = {}
        for name, dtype in (("observations", "<i2"), ("rho", "<f4")):
            begin, end = told[name]["data_offsets"]
            arrays[name] = np.frombuffer(data[begin:end], dtype).reshape(told[name]["shape"])
        for name in arrays:
            if name in changes:
                arrays[name] = changes[name](arrays[name])
        (thing / "file").write_bytes(to_bytes(arrays, about))

    return spoil


def attribute(**changes: Any) -> dict[str, Any]:
    return {"space": [{"name": "a", "block": "Natural"} | changes]}


LABELS: dict[str, Build] = {
    "no axis": labels_with(rho=lambda rho: rho[0, 0]),
    "one axis": labels_with(rho=lambda rho: rho[:, 0]),
    "three axes": labels_with(rho=lambda rho: rho[None]),
    "no pairs": labels_with(rho=lambda rho: rho[:0], observations=lambda seen: seen[:0]),
    "no attributes": labels_with(rho=lambda rho: rho[:, :0]),
    "no slots": labels_with(observations=lambda seen: seen[:, :0]),
    "observations without an axis": labels_with(observations=lambda seen: seen[0, 0]),
    "observations of three axes": labels_with(observations=lambda seen: seen[:, :, None]),
    "words in a picture": labels_with(observations=lambda seen: seen[:, :1, None, None]),
    "words are true or false": labels_with(observations=lambda seen: seen > 0),
    "words are reals": labels_with(observations=lambda seen: seen.astype(np.float32)),
    "words below 0": labels_with(observations=lambda seen: -seen - 1),
    "labels are true or false": labels_with(rho=lambda rho: rho > 0),
    "labels of 1e300": labels_with(rho=lambda rho: rho.astype(np.float64) * 0 + 1e300),
    "labels of 1e30 on the reals": labels_with(
        rho=lambda rho: rho[:, :1] * 0 + np.float32(1e30), about=attribute(block="Real")
    ),
    "a vector of 1e30": labels_with(
        observations=lambda seen: seen * np.float32(0) + np.float32(1e30), about={"vocabulary": 0}
    ),
    "a vocabulary of 32769": labels_with(about={"vocabulary": 32769}),
    "a vocabulary of 1048576": labels_with(about={"vocabulary": 1048576}),
    "a vocabulary of -1": labels_with(about={"vocabulary": -1}),
    "a vocabulary of true": labels_with(about={"vocabulary": True}),
    "a block is a list": labels_with(about=attribute(block=[])),
    "a block is an object": labels_with(about=attribute(block={})),
    "a block is not known": labels_with(about=attribute(block=ESCAPE)),
    "q is text": labels_with(about=attribute(block="Cyclic", q="3")),
    "q is 1.5": labels_with(about=attribute(block="Cyclic", q=1.5)),
    "q is 0": labels_with(about=attribute(block="Cyclic", q=0)),
    "q is huge": labels_with(about=attribute(block="Cyclic", q=HUGE)),
    "bins are huge": labels_with(about=attribute(bins=2**40)),
    "bins are text": labels_with(about=attribute(bins="many")),
    "a resolution of 0": labels_with(about=attribute(block="Real", resolution=0)),
    "a resolution of 1e-300": labels_with(about=attribute(block="Real", resolution=1e-300)),
    "bounds of 1e308": labels_with(about=attribute(block="Real", low=-1e308, high=1e308)),
    "bounds are huge": labels_with(about=attribute(block="Real", low=-HUGE, high=HUGE)),
    "bounds the wrong way": labels_with(about=attribute(block="Real", low=1.0, high=0.0)),
    "labels are numbers": labels_with(about=attribute(block="Categorical", labels=[1, 2])),
    "labels are a text": labels_with(about=attribute(block="Categorical", labels="ab")),
    "labels with escapes": labels_with(about=attribute(block="Categorical", labels=["a", ESCAPE])),
    "too many labels": labels_with(about=attribute(block="Categorical", labels=[f"l{k}" for k in range(5000)])),
    "a name with an escape": labels_with(about=attribute(name=ESCAPE)),
    "a name with a space": labels_with(about=attribute(name="a b")),
    "a name that is a number": labels_with(about=attribute(name=5)),
    "an unknown number": labels_with(about=attribute(__class__="x")),
    "exogenous is a number": labels_with(about=attribute(exogenous=1)),
    "two attributes of one name": labels_with(about={"space": attribute()["space"] * 2}),
    "10,000 attributes": labels_with(about={"space": [{"name": f"a{k}", "block": "Natural"} for k in range(10_000)]}),
    "a game with an escape": labels_with(about={"game": ESCAPE}),
    "an observation that is not known": labels_with(about={"observation": "smell"}),
}  # fmt: skip
WITH_GEOMETRY = [*FIT, "--geometry", "one-hot"]


def labels() -> Iterator[Case]:
    for name, spoil in LABELS.items():
        yield Case("labels that do not fit", name, "labels", spoil, FIT)
    yield Case(
        "labels that do not fit", "one class for each of 2^24", "labels",
        labels_with(rho=lambda rho: rho[:, :1] * 0, about=attribute(block="Cyclic", q=2**24)), WITH_GEOMETRY,
    )  # fmt: skip


# All of them.


def config_cases(folder: Path, base: str, each: int) -> Iterator[Case]:
    config = json.loads((folder / base / "config.json").read_text())
    read: Callable[[Path], Any] = lambda run: json.loads((run / "config.json").read_text())  # noqa: E731
    yield from spoilt_data(f"configurations of {base}", base, RESUME, read, write_both_configs, OPTIONAL, config, each)


OPTIONAL = ("eval_points", "eval_tasks")
"""A file of an older version has none of these."""


def manifest_cases(folder: Path, base: str, each: int) -> Iterator[Case]:
    manifest = json.loads((checkpoint_of(folder / base) / MANIFEST).read_text())
    read: Callable[[Path], Any] = lambda run: json.loads((checkpoint_of(run) / MANIFEST).read_text())  # noqa: E731
    group = f"manifests of checkpoints of {base}"
    yield from spoilt_data(group, base, RESUME, read, write_checkpoint_manifest, ("config",), manifest, each)


def agent_cases(folder: Path, base: str, each: int) -> Iterator[Case]:
    manifest = json.loads((folder / base / "manifest.json").read_text())
    read: Callable[[Path], Any] = lambda run: json.loads((run / "manifest.json").read_text())  # noqa: E731
    free = ("about", "config.eval_points", "config.eval_tasks", "manifest_sha256")
    group, words = f"manifests of agents of {base}", PLAN if base == "structured-switches" else EVALUATE
    yield from spoilt_data(group, base, words, read, write_agent_manifest, free, manifest, each)
    about: Any
    for about in ([], "x", 5, {"steps_trained": True}, {"steps_trained": HUGE}, {"hardware": []}, {"command": 5}):

        def spoil(run: Path, about: Any = about) -> None:
            write_agent_manifest(run, json.dumps(read(run) | {"about": about}).encode())

        yield Case(group, f"about = {str(about)[:30]}", base, spoil, words)


def seal_cases(base: str) -> Iterator[Case]:
    value: Any
    for value in (None, 5, [], "", "0" * 64, ESCAPE):

        def spoil(run: Path, value: Any = value) -> None:
            manifest = json.loads((run / "manifest.json").read_text()) | {"manifest_sha256": value}
            (run / "manifest.json").write_text(json.dumps(manifest))

        yield Case("agents with another hash", f"manifest_sha256 = {str(value)[:12]!r}", base, spoil, EVALUATE)


def about_cases(folder: Path, base: str, words: Words, free: tuple[str, ...]) -> Iterator[Case]:
    group = f"what {base} say of themselves"
    yield from spoilt_data(group, base, words, read_about, write_about, free, read_about(folder / base))
    yield from spoilt_texts(group, base, words, about_text, write_about)


OWN_NAMES = [
    "config.json", "metrics.jsonl", "manifest.json", "agent.safetensors", "attributes.safetensors", "lock",
    "evaluations", "evaluations/64", "evaluations/64/agent.safetensors", "checkpoints", "checkpoints/NEWEST",
    "checkpoints/NEWEST/manifest.json",
    "checkpoints/NEWEST/learner.safetensors", "checkpoints/.new", ".metrics.jsonl.new", ".agent.safetensors.new",
]  # fmt: skip


def all_cases(folder: Path) -> Iterator[Case]:
    """Every hostile file."""
    main_run = RUNS[0]
    for base in RUNS:
        each = 2 if base == main_run else 1
        yield from config_cases(folder, base, each)
        yield from agent_cases(folder, base, each)
    yield from manifest_cases(folder, main_run, 3)
    yield from manifest_cases(folder, "curriculum-switches", 1)
    yield from seal_cases(main_run)
    config: Callable[[Path], bytes] = lambda run: (run / "config.json").read_bytes()  # noqa: E731
    checkpoint: Callable[[Path], bytes] = lambda run: (checkpoint_of(run) / MANIFEST).read_bytes()  # noqa: E731
    agent: Callable[[Path], bytes] = lambda run: (run / "manifest.json").read_bytes()  # noqa: E731
    yield from spoilt_texts("configurations that are not JSON", main_run, RESUME, config, write_both_configs)
    yield from spoilt_texts("manifests that are not JSON", main_run, RESUME, checkpoint, write_checkpoint_manifest)
    yield from spoilt_texts("agents' manifests that are not JSON", main_run, EVALUATE, agent, write_agent_text)
    yield from spoilt_arrays(
        "arrays of checkpoints", main_run, RESUME, lambda run: checkpoint_of(run) / ARRAYS, vouch_checkpoint
    )
    yield from spoilt_arrays("arrays of agents", main_run, EVALUATE, lambda run: run / "agent.safetensors", vouch_agent)
    yield from spoilt_arrays("arrays of labels", "labels", FIT, lambda thing: thing / "file", lambda thing: None)
    yield from spoilt_arrays("arrays of attributes", "fitted", ATTRIBUTES, lambda thing: thing / "file", lambda t: None)
    yield from about_cases(folder, "labels", FIT, ("rules", "game", "observation"))
    yield from about_cases(folder, "fitted", ATTRIBUTES, ("about",))
    yield from labels()
    yield from large(main_run)
    yield from not_files("names in a run", main_run, RESUME, OWN_NAMES, {})
    yield from not_files("names of an agent", main_run, EVALUATE, ["manifest.json", "agent.safetensors"], DIRECTORY)
    yield from not_files("labels that are no file", "labels", FIT, ["file"], DIRECTORY)
    yield from not_files("attributes that are no file", "fitted", ATTRIBUTES, ["file"], DIRECTORY)


# Trying them.


def fingerprint(folder: Path) -> dict[str, str]:
    """Everything below a folder, bytes and times; links as what they are."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = os.lstat(path)
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        found[str(path)] = f"{status.st_mode} {status.st_mtime_ns if content else 0} {content}"
    return found


class Hung(BaseException):
    """A command took too long."""


def give_up(*_: Any) -> None:
    raise Hung


def attempt(case: Case, bases: Path, folder: Path) -> dict[str, Any]:
    """Makes the file, hands it over, and says what went wrong, if anything did."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bystander" / "folder").mkdir(parents=True)
    for name in ("file", "folder/file"):
        (folder / "bystander" / name).write_text("precious\n")
    thing = Path(shutil.copytree(bases / case.base, folder / "thing"))
    case.spoil(thing)
    before, err, code = fingerprint(folder / "bystander"), io.StringIO(), None
    began = time.monotonic()
    signal.alarm(PATIENCE)
    try:
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            code = main([word.replace("THING", str(thing)) for word in case.words])
    except Hung:
        err.write("it took too long")
    except Exception as error:  # which is what is looked for
        err.write(f"{type(error).__name__}: {str(error)[:200]}")
    finally:
        signal.alarm(0)
    # Whatever takes long says so, line by line; on a busy machine even a refusal may.
    said = re.sub(r"^[^\n]* … \d+ s\n", "", err.getvalue(), flags=re.MULTILINE)
    ills = [
        name
        for name, ill in {
            f"exit code {code}": code != 2,
            "not one line": not said.startswith("saplan: ") or said.count("\n") != 1,
            "control characters": not said[:-1].isprintable(),
            "the bystander has changed": fingerprint(folder / "bystander") != before,
            "something was written": (thing / "out").exists() or (thing / "run").exists() or Path("owned").exists(),
        }.items()
        if ill
    ]
    seconds = time.monotonic() - began
    return {"group": case.group, "name": case.name, "ills": ills, "said": said[:300], "seconds": seconds}


def try_all(folder: Path) -> None:
    """Prints what became of every file, and the growth of memory at the end."""
    signal.signal(signal.SIGALRM, give_up)
    bases = folder / "bases"
    make_bases(bases)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for case in all_cases(bases):
        result = attempt(case, bases, folder / "try")
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps(result | {"grown": (now - peak) / 1024}), flush=True)


if __name__ == "__main__":
    try_all(Path(sys.argv[1]))

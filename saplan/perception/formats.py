"""Labelled pairs and fitted attributes as files. Nothing in them is executed, and nothing is believed unchecked."""

import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from saplan.algebra import Product
from saplan.algebra.serialize import space_from_json, space_to_json
from saplan.errors import InputError
from saplan.games import GAMES, Game
from saplan.perception.fitted import Fitted
from saplan.perception.geometry import STRUCTURED, with_geometry
from saplan.perception.observation import SIGHTS, Sight
from saplan.perception.regressor import LARGEST_HIDDEN, Regressor
from saplan.storage.arrays import about_in, fill, header_of, outline_of, room_for, to_arrays, to_bytes
from saplan.storage.files import make_directory, read_bytes, replace_file
from saplan.storage.json_data import is_whole

LABELS, FITTED = "saplan labels 1", "saplan attributes 1"
NOT_LABELS = "is not a file of labels (write one with `saplan label`)"
LARGEST = 2**29
"""Bytes of a file of labels."""
LARGEST_FITTED = 2**28
LARGEST_VOCABULARY = 2**15
"""Words are stored in 16 bits."""
LARGEST_SIDE, LARGEST_SIGHT = 2**16, 2**20
"""Numbers along one axis of a sight, and in all of it."""
LARGEST_NUMBER = 1e9
"""Of labels and sights: beyond it the loss would not be finite."""
LARGEST_OUTPUTS = 2**27
"""Pairs × coordinates that a regressor is fitted to."""


@dataclass(frozen=True)
class Labels:
    """Pairs (what is seen, ρ). Of a game that is not one of ours, only the space is known."""

    seen: np.ndarray
    """Words [n, slots] where there is a vocabulary; else vectors [n, width] or pictures [n, rows, columns, 3]."""
    rho: Float[np.ndarray, "n K"]
    space: Product
    vocabulary: int = 0
    game: str = ""
    rules: Any = None
    sight: str = ""

    def check(self, where: str) -> None:
        """`InputError` that says what is wrong first, if something is."""
        self._check_shapes(where)
        self._check_words(where)
        for array in (self.rho, self.seen):
            if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
                raise InputError(f"{where} holds a number that is not finite")
            if array.size and max(abs(float(array.max())), abs(float(array.min()))) > LARGEST_NUMBER:
                raise InputError(f"{where} holds a number beyond {LARGEST_NUMBER:g}, which cannot be fitted")
        for k, (name, block) in enumerate(zip(self.space.names, self.space.blocks, strict=True)):
            inside = np.asarray(block.contains(jnp.asarray(self.rho[:, k])))
            if not inside.all():
                row = int(np.argmin(inside))
                raise InputError(
                    f"{where}: {name} is {self.rho[row, k]:g} in pair {row}, which is outside {block.symbol[:80]}"
                )

    def _check_shapes(self, where: str) -> None:
        if self.rho.ndim and not len(self.rho):
            raise InputError(f"{where} holds no pairs")
        if self.rho.ndim != 2 or self.rho.shape[1] != self.space.size:
            width = self.rho.shape[1] if self.rho.ndim == 2 else 0
            raise InputError(f"{where}: labels are {width} numbers wide, but there are {self.space.size} attributes")
        if self.seen.ndim not in (2, 4) or len(self.seen) != len(self.rho):
            raise InputError(f"{where}: {len(self.rho)} labels need as many sights, each a row or a picture")
        check_sight(self.seen.shape[1:], self.vocabulary, where)
        outputs = len(self.rho) * self.space.embed_width
        if outputs > LARGEST_OUTPUTS:
            raise InputError(f"{where}: {len(self.rho)} pairs × {self.space.embed_width} outputs are too many to fit")

    def _check_words(self, where: str) -> None:
        if self.seen.dtype.kind not in ("iu" if self.vocabulary else "iuf"):
            raise InputError(f"{where}: words must be whole numbers, and other sights numbers, not {self.seen.dtype}")
        if self.vocabulary and (self.seen.min() < 0 or self.seen.max() >= self.vocabulary):
            raise InputError(f"{where}: words must be whole numbers in 0..{self.vocabulary - 1}")


def check_sight(shape: tuple[int, ...], vocabulary: int, where: str) -> None:
    """`InputError` unless one sight can have this shape: words or a vector, or a picture."""
    if len(shape) not in ((1,) if vocabulary else (1, 3)):
        raise InputError(f"{where}: a sight is a row of words or numbers, or a picture, not {len(shape)} axes")
    if not all(1 <= side <= LARGEST_SIDE for side in shape) or math.prod(shape) > LARGEST_SIGHT:
        sizes = " × ".join(map(str, shape))
        raise InputError(f"{where}: a sight has 1..{LARGEST_SIDE} numbers along every axis, and not too many: {sizes}")


def _header(about: Any, format_: str, path: Path, otherwise: str) -> dict[str, Any]:
    """What labels and fitted attributes both say of themselves, as arguments of `Labels`."""
    if not isinstance(about, dict) or about.get("format") != format_:
        raise InputError(f"{path} {otherwise}")
    vocabulary = about.get("vocabulary")
    if not is_whole(vocabulary, 0, LARGEST_VOCABULARY):
        raise InputError(f"{path}: the vocabulary must be a number of words in 0..{LARGEST_VOCABULARY}")
    game, sight, rules = about.get("game", ""), about.get("sight", ""), about.get("rules")
    if not isinstance(game, str) or not re.fullmatch(r"[\w -]{0,64}", game):
        raise InputError(f"{path}: the game must be a name")
    if sight not in ("", *SIGHTS):
        raise InputError(f"{path}: the sight must be one of {', '.join(SIGHTS)}")
    if not (rules is None or isinstance(rules, dict)):
        raise InputError(f"{path}: the rules must be an object")
    try:
        space = space_from_json(about.get("space"))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return {"space": space, "vocabulary": vocabulary, "game": game, "sight": sight, "rules": rules}


def write_labels(path: Path, labels: Labels) -> None:
    """Writes pairs into a file."""
    labels.check("these labels")
    check_bytes(labels.seen.nbytes + 4 * labels.rho.size)
    about = {
        "format": LABELS,
        "space": space_to_json(labels.space),
        "vocabulary": labels.vocabulary,
        "game": labels.game,
        "rules": labels.rules,
        "sight": labels.sight,
    }
    make_directory(path.parent)
    replace_file(path, to_bytes({"seen": labels.seen, "rho": labels.rho.astype(np.float32)}, about))


def check_bytes(size: int) -> None:
    """`InputError` if a file of labels of this size could not be read again."""
    if size > LARGEST:
        raise InputError(
            f"these labels take {size / 2**20:.0f} MiB, and a file holds {LARGEST / 2**20:.0f}: take fewer"
        )


def read_labels(path: Path) -> Labels:
    """The pairs of a file, checked."""
    header = header_of(path)
    about = _header(about_in(header, path), LABELS, path, NOT_LABELS)
    if set(header.entries) != {"seen", "rho"}:
        raise InputError(f"{path} {NOT_LABELS}")
    rho = header.entries["rho"]
    if rho.dtype.kind not in "iuf":
        raise InputError(f"{path}: labels must be numbers, not {rho.dtype}")
    arrays = header.arrays(read_bytes(path, LARGEST))
    with np.errstate(over="ignore"):
        labels = Labels(arrays["seen"], arrays["rho"].astype(np.float32), **about)
    labels.check(str(path))
    return labels


@dataclass(frozen=True)
class FittedFile:
    """f̂ with what it was fitted on."""

    regressor: Regressor
    shape: tuple[int, ...]
    """Of one sight."""
    labels: Labels
    """Without the pairs."""
    geometry: str = STRUCTURED
    about: Any = None

    @property
    def data(self) -> bytes:
        """The file, the same bytes every time."""
        about = {
            "format": FITTED,
            "space": space_to_json(self.labels.space),
            "vocabulary": self.labels.vocabulary,
            "shape": list(self.shape),
            "hidden": self.regressor.hidden.bias.shape[0],
            "geometry": self.geometry,
            "game": self.labels.game,
            "rules": self.labels.rules,
            "sight": self.labels.sight,
            "about": self.about,
        }
        return to_bytes(to_arrays(self.regressor), about)

    def view(self, game: Game[Any]) -> Fitted:
        """The game with these attributes; `InputError` if they are of another one."""
        mine = game.name, plain_rules(game)
        theirs = self.labels.game, self.labels.rules
        if mine[0] != theirs[0]:
            raise InputError(f"these attributes were fitted on {theirs[0] or 'an unknown game'}, not on {mine[0]}")
        if json.dumps(mine[1], sort_keys=True) != json.dumps(theirs[1], sort_keys=True):  # where true is not 1
            raise InputError(f"these attributes were fitted on {theirs[0]} with other rules")
        seen = jax.eval_shape(Sight(game, self.labels.sight), jax.eval_shape(game.reset, jax.random.key(0)))
        if game.space != self.labels.space or seen.shape != self.shape:
            raise InputError(f"these attributes were fitted on another version of {theirs[0]}")
        return Fitted(game, self.regressor, self.labels.sight, hashlib.sha256(self.data).hexdigest(), self)


def plain_rules(game: Game[Any]) -> Any:
    """The rules of a game as they come back from a file."""
    return json.loads(json.dumps(game.described()["rules"]))


def read_fitted(path: Path) -> FittedFile:
    """Fitted attributes from a file."""
    header = header_of(path)
    told = about_in(header, path)
    about = _header(told, FITTED, path, "holds no fitted attributes (fit some with `saplan fit-attributes`)")
    hidden, shape, geometry = told.get("hidden"), told.get("shape"), told.get("geometry")
    if not is_whole(hidden, 1, LARGEST_HIDDEN):
        raise InputError(f"{path}: hidden must be a whole number in 1..{LARGEST_HIDDEN}")
    if not isinstance(shape, list) or not all(is_whole(side, 1, LARGEST_SIDE) for side in shape):
        raise InputError(f"{path}: the shape of a sight must be whole numbers in 1..{LARGEST_SIDE}")
    if not isinstance(geometry, str):
        raise InputError(f"{path}: the geometry must be a name")
    check_sight(tuple(shape), about["vocabulary"], str(path))
    space = with_geometry(about["space"], geometry)
    outline = outline_of(
        lambda: Regressor.init(jax.random.key(0), tuple(shape), about["vocabulary"], space, hidden),
        LARGEST_FITTED,
        f"what {path} describes",
    )
    arrays = header.arrays(read_bytes(path, min(2 * LARGEST_FITTED, room_for(outline))))
    empty = np.zeros((0, 0), np.float32)
    return FittedFile(
        fill(outline, arrays, path), tuple(shape), Labels(empty, empty, **about), geometry, told.get("about")
    )


def write_fitted(path: Path, fitted: FittedFile) -> None:
    """Writes fitted attributes into a file."""
    make_directory(path.parent)
    replace_file(path, fitted.data)


def game_labels(game: Game[Any], sight: str, seen: np.ndarray, rho: Float[np.ndarray, "n K"]) -> Labels:
    """Pairs of one of our games."""
    assert game.name in GAMES
    return Labels(seen, rho, game.space, Sight(game, sight).vocabulary, game.name, plain_rules(game), sight)


def pair_bytes(game: Game[Any], sight: Sight) -> int:
    """Bytes of one pair of a game in a file of labels."""
    seen = jax.eval_shape(sight, jax.eval_shape(game.reset, jax.random.key(0)))
    return math.prod(seen.shape) * seen.dtype.itemsize + 4 * game.space.size

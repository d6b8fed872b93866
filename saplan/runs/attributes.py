"""Labelled pairs and fitted attributes as files. Nothing in them is executed, and nothing is believed unchecked."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from saplan.algebra import Product
from saplan.algebra.written import space_from_json, space_to_json
from saplan.errors import InputError
from saplan.games import GAMES, Game
from saplan.games.sight import Sight
from saplan.model.fitted import Fitted
from saplan.model.geometry import STRUCTURED, with_geometry
from saplan.model.regressor import Regressor
from saplan.runs.arrays import both_from_bytes, fill, to_arrays, to_bytes
from saplan.runs.files import make_directory, read_bytes, replace_file

LABELS, FITTED = "saplan labels 1", "saplan attributes 1"
LARGEST = 2**33
"""Bytes of a file of labels."""
LARGEST_FITTED = 2**28


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
        if not len(self.rho):
            raise InputError(f"{where} holds no pairs")
        if self.rho.ndim != 2 or self.rho.shape[1] != self.space.size:
            width = self.rho.shape[1] if self.rho.ndim == 2 else 0
            raise InputError(f"{where}: labels are {width} numbers wide, but there are {self.space.size} attributes")
        if len(self.seen) != len(self.rho) or self.seen.ndim not in (2, 4):
            raise InputError(f"{where}: {len(self.rho)} labels need as many sights, each a row or a picture")
        if not np.all(np.isfinite(self.rho)) or (self.seen.dtype.kind == "f" and not np.all(np.isfinite(self.seen))):
            raise InputError(f"{where} holds a number that is not finite")
        if self.vocabulary and (
            self.seen.dtype.kind not in "iu" or self.seen.min() < 0 or self.seen.max() >= self.vocabulary
        ):
            raise InputError(f"{where}: words must be whole numbers in 0..{self.vocabulary - 1}")
        inside = np.stack(
            [np.asarray(block.contains(jnp.asarray(self.rho[:, k]))) for k, block in enumerate(self.space.blocks)], 1
        )
        if not inside.all():
            row, k = np.argwhere(~inside)[0]
            name, block = self.space.names[k], self.space.blocks[k]
            raise InputError(f"{where}: {name} is {self.rho[row, k]:g} in pair {row}, which is outside {block.symbol}")


def write_labels(path: Path, labels: Labels) -> None:
    """Writes pairs into a file."""
    labels.check("these labels")
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


def read_labels(path: Path) -> Labels:
    """The pairs of a file, checked."""
    arrays, about = both_from_bytes(read_bytes(path, LARGEST), path)
    if not isinstance(about, dict) or about.get("format") != LABELS or set(arrays) != {"seen", "rho"}:
        raise InputError(f"{path} is not a file of labels (write one with `saplan label`)")
    vocabulary = about.get("vocabulary", 0)
    if type(vocabulary) is not int or not 0 <= vocabulary <= 2**20:
        raise InputError(f"{path}: the vocabulary must be a number of words, got {vocabulary!r}")
    space, rho = space_from_json(about.get("space")), arrays["rho"].astype(np.float32)
    texts = {name: str(about.get(name, "")) for name in ("game", "sight")}
    labels = Labels(arrays["seen"], rho, space, vocabulary, rules=about.get("rules"), **texts)
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
        if mine[1] != theirs[1]:
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
    arrays, about = both_from_bytes(read_bytes(path, LARGEST_FITTED), path)
    if not isinstance(about, dict) or about.get("format") != FITTED:
        raise InputError(f"{path} holds no fitted attributes (fit some with `saplan fit-attributes`)")
    space = space_from_json(about.get("space"))
    numbers = [about.get("vocabulary"), about.get("hidden"), *(about.get("shape") or [None])]
    if not all(type(number) is int and 0 <= number <= 2**20 for number in numbers):
        raise InputError(f"{path}: vocabulary, hidden and shape must be whole numbers")
    vocabulary, hidden, *shape = numbers
    geometry = str(about.get("geometry"))
    outline = eqx.filter_eval_shape(
        lambda: Regressor.init(jax.random.key(0), tuple(shape), vocabulary, with_geometry(space, geometry), hidden)
    )
    empty = np.zeros((0, 0), np.float32)
    texts = {name: str(about.get(name, "")) for name in ("game", "sight")}
    labels = Labels(empty, empty, space, vocabulary, rules=about.get("rules"), **texts)
    return FittedFile(fill(outline, arrays, path), tuple(shape), labels, geometry, about.get("about"))


def write_fitted(path: Path, fitted: FittedFile) -> None:
    """Writes fitted attributes into a file."""
    make_directory(path.parent)
    replace_file(path, fitted.data)


def game_labels(game: Game[Any], sight: str, seen: np.ndarray, rho: Float[np.ndarray, "n K"]) -> Labels:
    """Pairs of one of our games."""
    assert game.name in GAMES
    return Labels(seen, rho, game.space, Sight(game, sight).vocabulary, game.name, plain_rules(game), sight)

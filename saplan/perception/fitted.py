"""A game whose attributes are read off observations, by f̂ in place of f, and the file of an f̂."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from saplan.algebra import Real
from saplan.errors import InputError
from saplan.games.game import Game, Observation
from saplan.games.wrapper import GameWrapper
from saplan.goals import Goal
from saplan.perception.geometry import STRUCTURED, with_geometry
from saplan.perception.labels import LARGEST_SIDE, Source, check_observation, source_from_json, stored_rules
from saplan.perception.observation import CELL, Observer
from saplan.perception.regressor import LARGEST_CELL, LARGEST_HIDDEN, SURE, Regressor
from saplan.storage.arrays import about_in, fill, header_of, largest_file, outline_of, to_arrays, to_bytes
from saplan.storage.files import make_directory, read_bytes, replace_file
from saplan.storage.json_data import is_whole
from saplan.storage.manifest import ATTRIBUTES, check_manifest_format, digest

NOT_FITTED = "holds no fitted attributes (fit some with `saplan fit-attributes`)"
FIT_AGAIN = "fit them again with `saplan fit-attributes`"
LARGEST_FITTED = 2**28
"""Bytes of the arrays of an f̂."""


class Perceived(eqx.Module):
    """A state, and ρ as it is perceived there."""

    state: Any
    rho: Float[Array, "K"]
    sure: Float[Array, "K"]


def _on_state(name: str) -> Any:
    """Method that applies the wrapped game's method of this name to the state inside a `Perceived`."""
    return lambda self, perceived, *rest: getattr(self.game, name)(perceived.state, *rest)


@dataclass(frozen=True, eq=False)
class FittedGame(GameWrapper[Any]):
    """A game whose attributes are read by f̂.

    A reading of a real within a quarter of its resolution leaves the perceived value as it was: otherwise every step
    would look like a change. All other changes are accepted together, or rejected together while one of them is
    uncertain: a thing that is not clearly visible from here may be a step later.
    """

    misread = True
    regressor: Callable[[Array], tuple[Array, Array]]
    """f̂: from a batch of observations to ρ̂ and the confidence in every coordinate."""
    observation: str
    digest: str
    """SHA-256 of the file of f̂, which identifies it."""
    source: Any = None
    """The `FittedFile`, to write it again."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FittedGame) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Game[Any], str, str]:
        return self.game, self.observation, self.digest

    def read(self, state: Any) -> Perceived:
        """A state with a first reading of its attributes."""
        rho, sure = self.regressor(Observer(self.game, self.observation)(state)[None])
        return Perceived(state, rho[0], sure[0])

    def _read_next(self, before: Perceived, state: Any) -> Perceived:
        now = self.read(state)
        space = self.game.space
        slack = jnp.array([block.resolution / 4 if isinstance(block, Real) else 0.0 for block in space.blocks])
        differs = jnp.abs(now.rho - before.rho) > slack
        accepted = jnp.all(~differs | (now.sure >= SURE))
        return Perceived(state, jnp.where(differs & accepted, now.rho, before.rho), now.sure)

    def reset(self, key: PRNGKeyArray) -> Perceived:
        return self.read(self.game.reset(key))

    def step(self, key: PRNGKeyArray, state: Perceived, action: Int[Array, ""]) -> Perceived:
        return self._read_next(state, self.game.step(key, state.state, action))

    def anywhere(self, key: PRNGKeyArray) -> Perceived:
        return self.read(self.game.anywhere(key))

    def tasks(self, key: PRNGKeyArray) -> tuple[Perceived, Goal]:
        state, goal = self.game.tasks(key)
        return self.read(state), goal

    def attributes(self, state: Perceived) -> Float[Array, "K"]:
        return state.rho

    def confidence(self, state: Perceived) -> Float[Array, "K"]:
        return state.sure

    @property
    def _seen_as_picture(self) -> bool:
        return self.observation == "picture"

    @property
    def vocabulary(self) -> int:
        return 0 if self._seen_as_picture else self.game.vocabulary

    @property
    def slots(self) -> int:
        return math.prod(self.picture) if self.picture else self.game.slots

    @property
    def picture(self) -> tuple[int, int, int] | None:
        if not self._seen_as_picture:
            return self.game.picture
        height, width, channels = Observer(self.game, self.observation).shape
        return height, width, channels

    @property
    def cell(self) -> int:
        return CELL if self._seen_as_picture else self.game.cell

    def observe(self, state: Perceived) -> Observation:
        """What the policy sees: the picture itself if attributes are read off pictures."""
        if self._seen_as_picture:
            return Observer(self.game, self.observation).picture(state.state).reshape(-1)
        return self.game.observe(state.state)

    def place(self, state: Perceived) -> Observation:
        # Not the game's own place, which may contain the attributes that f̂ has to read.
        return self.observe(state)

    truth = _on_state("truth")
    shelf = _on_state("shelf")
    lost = _on_state("lost")
    over = _on_state("over")
    scene = _on_state("scene")
    recall = _on_state("recall")
    restore = _on_state("restore")
    task_groups = _on_state("task_groups")


@dataclass(frozen=True)
class FittedFile:
    """f̂ and the origin of its labels."""

    regressor: Regressor
    shape: tuple[int, ...]
    """Of one observation."""
    source: Source
    geometry: str = STRUCTURED
    about: Any = None

    @property
    def data(self) -> bytes:
        """The content of the file, the same bytes every time."""
        about = {
            "format": ATTRIBUTES,
            **self.source.to_json(),
            "shape": list(self.shape),
            "hidden": self.regressor.hidden.bias.shape[0],
            "cell": self.regressor.cell,
            "geometry": self.geometry,
            "about": self.about,
        }
        return to_bytes(to_arrays(self.regressor), about)

    def view(self, game: Game[Any]) -> FittedGame:
        """The game with these attributes; `InputError` if they were fitted on another one."""
        source = self.source
        if game.name != source.game:
            raise InputError(f"these attributes were fitted on {source.game or 'an unknown game'}, not on {game.name}")
        # As JSON text, in which true differs from 1.
        if json.dumps(stored_rules(game), sort_keys=True) != json.dumps(source.rules, sort_keys=True):
            raise InputError(f"these attributes were fitted on {source.game} with other rules")
        if game.space != source.space or Observer(game, source.observation).shape != self.shape:
            raise InputError(f"these attributes were fitted on another version of {source.game}")
        return FittedGame(game, self.regressor, source.observation, digest(self.data), self)


def read_fitted(path: Path) -> FittedFile:
    """Fitted attributes from a file, checked."""
    header = header_of(path)
    about = check_manifest_format(about_in(header, path), ATTRIBUTES, path, NOT_FITTED, FIT_AGAIN)
    source = source_from_json(about, path)
    hidden, shape, geometry = about.get("hidden"), about.get("shape"), about.get("geometry")
    if not is_whole(hidden, 1, LARGEST_HIDDEN):
        raise InputError(f"{path}: hidden must be an integer in 1..{LARGEST_HIDDEN}")
    cell = about.get("cell")
    if not is_whole(cell, 1, LARGEST_CELL):
        raise InputError(f"{path}: cell must be an integer in 1..{LARGEST_CELL}")
    if not isinstance(shape, list) or not all(is_whole(side, 1, LARGEST_SIDE) for side in shape):
        raise InputError(f"{path}: the shape of an observation must be integers in 1..{LARGEST_SIDE}")
    if not isinstance(geometry, str):
        raise InputError(f"{path}: the geometry must be a name")
    check_observation(tuple(shape), source.vocabulary, str(path))
    space = with_geometry(source.space, geometry)
    outline = outline_of(
        lambda: Regressor.init(jax.random.key(0), tuple(shape), source.vocabulary, space, hidden, cell),
        LARGEST_FITTED,
        f"the regressor that {path} describes",
    )
    arrays = header.arrays(read_bytes(path, min(2 * LARGEST_FITTED, largest_file(outline))))
    return FittedFile(fill(outline, arrays, path), tuple(shape), source, geometry, about.get("about"))


def write_fitted(path: Path, fitted: FittedFile) -> None:
    """Write fitted attributes to a file."""
    make_directory(path.parent)
    replace_file(path, fitted.data)

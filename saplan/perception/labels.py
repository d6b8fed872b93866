"""Labelled pairs (observation, ρ): drawn from a game, and stored in files that are validated in full."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from saplan.algebra import Product
from saplan.algebra.serialize import space_from_json, space_to_json
from saplan.errors import InputError
from saplan.games import GAMES
from saplan.games.game import Game, State
from saplan.perception.observation import OBSERVATIONS, Observer
from saplan.storage.arrays import about_in, header_of, to_bytes
from saplan.storage.files import make_directory, read_bytes, replace_file
from saplan.storage.json_data import is_whole, through_json
from saplan.storage.manifest import LABELS, check_manifest_format

NOT_LABELS = "is not a file of labels (write one with `saplan label`)"
WRITE_AGAIN = "write it again with `saplan label`"
LARGEST = 2**31
"""Bytes of a file of labels."""
LARGEST_VOCABULARY = 2**15
"""Words are stored in 16 bits."""
LARGEST_SIDE, LARGEST_OBSERVATION = 2**16, 2**20
"""Numbers along one axis of an observation, and in all of it."""
LARGEST_NUMBER = 1e9
"""In labels and observations: beyond it the loss would not be finite."""
LARGEST_OUTPUTS = 2**27
"""Pairs × outputs of a regressor."""
BATCH = 4096
WALK = 12
"""Random steps after a state is drawn."""


@dataclass(frozen=True)
class Source:
    """The origin of labels. For a game that is not one of ours, only the space is known."""

    space: Product
    vocabulary: int = 0
    """Number of words; 0 if observations are not words."""
    game: str = ""
    rules: Any = None
    observation: str = ""
    """The name of the `Observer`."""

    def to_json(self) -> dict[str, Any]:
        """JSON data for a file's metadata."""
        return {**vars(self), "space": space_to_json(self.space)}


def source_from_json(about: dict[str, Any], path: Path) -> Source:
    """The source in a file's metadata; `InputError` if it is invalid."""
    vocabulary, rules = about.get("vocabulary"), about.get("rules")
    game, observation = about.get("game", ""), about.get("observation", "")
    if not is_whole(vocabulary, 0, LARGEST_VOCABULARY):
        raise InputError(f"{path}: the vocabulary must be a number of words in 0..{LARGEST_VOCABULARY}")
    if not isinstance(game, str) or not re.fullmatch(r"[\w -]{0,64}", game):
        raise InputError(f"{path}: the game must be a name")
    if observation not in ("", *OBSERVATIONS):
        raise InputError(f"{path}: the observation must be one of {', '.join(OBSERVATIONS)}")
    if not (rules is None or isinstance(rules, dict)):
        raise InputError(f"{path}: the rules must be an object")
    try:
        return Source(space_from_json(about.get("space")), vocabulary, game, rules, observation)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


@dataclass(frozen=True)
class Labels:
    """Pairs (observation, ρ)."""

    observations: np.ndarray
    """Words [n, slots] if there is a vocabulary; else vectors [n, width] or pictures [n, rows, columns, 3]."""
    rho: Float[np.ndarray, "n K"]
    source: Source

    def check(self, where: str) -> None:
        """`InputError` with the first fault, if there is one."""
        self._check_shapes(where)
        self._check_words(where)
        for array in (self.rho, self.observations):
            if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
                raise InputError(f"{where} holds a number that is not finite")
            if array.size and max(abs(float(array.max())), abs(float(array.min()))) > LARGEST_NUMBER:
                raise InputError(f"{where} holds a number beyond {LARGEST_NUMBER:g}, which cannot be fitted")
        space = self.source.space
        for k, (name, block) in enumerate(zip(space.names, space.blocks, strict=True)):
            inside = np.asarray(block.contains(jnp.asarray(self.rho[:, k])))
            if not inside.all():
                row = int(np.argmin(inside))
                raise InputError(
                    f"{where}: {name} is {self.rho[row, k]:g} in pair {row}, which is outside {block.symbol[:80]}"
                )

    def _check_shapes(self, where: str) -> None:
        rho, observations, space = self.rho, self.observations, self.source.space
        if rho.ndim and not len(rho):
            raise InputError(f"{where} holds no pairs")
        if rho.ndim != 2 or rho.shape[1] != space.size:
            width = rho.shape[1] if rho.ndim == 2 else 0
            raise InputError(f"{where}: labels are {width} numbers wide, but there are {space.size} attributes")
        if observations.ndim not in (2, 4) or len(observations) != len(rho):
            raise InputError(f"{where}: {len(rho)} labels need as many observations, each a row or a picture")
        check_observation(observations.shape[1:], self.source.vocabulary, where)
        if len(rho) * space.embed_width > LARGEST_OUTPUTS:
            raise InputError(f"{where}: {len(rho)} pairs × {space.embed_width} outputs are too many to fit")

    def _check_words(self, where: str) -> None:
        seen, vocabulary = self.observations, self.source.vocabulary
        if seen.dtype.kind not in ("iu" if vocabulary else "iuf"):
            raise InputError(f"{where}: words must be integers, and other observations numbers, not {seen.dtype}")
        if vocabulary and (seen.min() < 0 or seen.max() >= vocabulary):
            raise InputError(f"{where}: words must be integers in 0..{vocabulary - 1}")


def check_observation(shape: tuple[int, ...], vocabulary: int, where: str) -> None:
    """`InputError` unless an observation can have this shape: a row of words or numbers, or a picture."""
    if len(shape) not in ((1,) if vocabulary else (1, 3)):
        raise InputError(f"{where}: an observation is a row of words or numbers, or a picture, not {len(shape)} axes")
    if not all(1 <= side <= LARGEST_SIDE for side in shape) or math.prod(shape) > LARGEST_OBSERVATION:
        sizes = " × ".join(map(str, shape))
        raise InputError(
            f"{where}: an observation has 1..{LARGEST_SIDE} numbers along every axis and at most "
            f"{LARGEST_OBSERVATION} in all, not {sizes}"
        )


def write_labels(path: Path, labels: Labels) -> None:
    """Write pairs to a file."""
    labels.check("these labels")
    check_bytes(labels.observations.nbytes + 4 * labels.rho.size)
    arrays = {"observations": labels.observations, "rho": labels.rho.astype(np.float32)}
    make_directory(path.parent)
    replace_file(path, to_bytes(arrays, {"format": LABELS, **labels.source.to_json()}))


def check_bytes(size: int) -> None:
    """`InputError` if a file of labels of this size could not be read again."""
    if size > LARGEST:
        raise InputError(
            f"these labels take {size / 2**20:.0f} MiB, and a file holds at most {LARGEST / 2**20:.0f}: take fewer"
        )


def read_labels(path: Path) -> Labels:
    """The pairs in a file, checked."""
    header = header_of(path)
    source = source_from_json(
        check_manifest_format(about_in(header, path), LABELS, path, NOT_LABELS, WRITE_AGAIN), path
    )
    if set(header.entries) != {"observations", "rho"}:
        raise InputError(f"{path} {NOT_LABELS}")
    rho = header.entries["rho"]
    if rho.dtype.kind not in "iuf":
        raise InputError(f"{path}: labels must be numbers, not {rho.dtype}")
    arrays = header.arrays(read_bytes(path, LARGEST))
    with np.errstate(over="ignore"):
        labels = Labels(arrays["observations"], arrays["rho"].astype(np.float32), source)
    labels.check(str(path))
    return labels


def game_labels(game: Game[Any], observation: str, observations: np.ndarray, rho: Float[np.ndarray, "n K"]) -> Labels:
    """Pairs of one of our games."""
    assert game.name in GAMES
    vocabulary = Observer(game, observation).vocabulary
    return Labels(observations, rho, Source(game.space, vocabulary, game.name, stored_rules(game), observation))


def stored_rules(game: Game[Any]) -> Any:
    """The rules of a game as they return from a file."""
    return through_json(game.described()["rules"])


def draw_labels(
    game: Game[State],
    observer: Observer[State],
    pairs: int,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[np.ndarray, Float[np.ndarray, "pairs K"]]:
    """Observations and attributes of independent states, each on its own map.

    A state is drawn by `Game.anywhere` and followed by some random steps: on a fresh map the agent never stands on a
    thing.
    """
    observations, rho = [], []
    for key in jax.random.split(jax.random.key(seed), -(-pairs // BATCH)):
        some, those = _draw(game, observer, jax.random.split(key, BATCH))
        observations.append(np.asarray(some))
        rho.append(np.asarray(those))
        progress(min(len(rho) * BATCH, pairs))
    return np.concatenate(observations)[:pairs], np.concatenate(rho)[:pairs]


@partial(jax.jit, static_argnums=(0, 1))
def _draw(game: Game[State], observer: Observer[State], keys: Key[Array, "n"]) -> tuple[Array, Float[Array, "n K"]]:
    def some_state(key: PRNGKeyArray) -> Any:
        start_key, walk_key = jax.random.split(key)
        return jax.lax.scan(step, game.anywhere(start_key), jax.random.split(walk_key, WALK))[0]

    def step(state: State, key: PRNGKeyArray) -> tuple[State, None]:
        act_key, step_key = jax.random.split(key)
        return game.step(step_key, state, jax.random.randint(act_key, (), 0, len(game.actions))), None

    states = jax.vmap(some_state)(keys)
    return jax.vmap(observer)(states), jax.vmap(game.truth)(states)

"""Agents on disk: exact copies come back, anything damaged is refused with one line, and nothing is executed."""

import contextlib
import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from saplan.errors import InputError
from saplan.games import GAMES, Exchange, Game, Switches
from saplan.methods.structured.agent import StructuredAgent
from saplan.methods.structured.settings import structured_settings
from saplan.storage.manifest import AGENT, ATTRIBUTES, CHECKPOINT, LABELS, WRITERS, sealed
from saplan.training import store
from saplan.training.config import RunConfig
from saplan.training.store import ARRAYS, MANIFEST, find_agent, load, load_agent, save_agent, untrained_agent

from .test_config import ODD, names


def config_of(game: Game[Any]) -> RunConfig:
    settings = replace(structured_settings(game), hidden=6, edge_hidden=5, capacity=4)
    return RunConfig(game, settings, steps=999, seed=5)


def noisy_agent(config: RunConfig) -> StructuredAgent:
    """An agent of the right shape with noise in every array."""
    random = np.random.default_rng(0)

    def noise(like: jax.ShapeDtypeStruct) -> jax.Array:
        if like.dtype.kind == "f":
            return jnp.asarray(random.normal(size=like.shape), like.dtype)
        return jnp.asarray(random.integers(0, 1000, like.shape), like.dtype)

    agent: StructuredAgent = jax.tree.map(noise, eqx.filter_eval_shape(untrained_agent, config))
    return agent


def written(directory: Path, game: Game[Any], **options: Any) -> StructuredAgent:
    agent = noisy_agent(config_of(game))
    save_agent(directory, agent, config_of(game), **options)
    return agent


def loaded(directory: Path) -> StructuredAgent:
    agent = load(directory)
    assert isinstance(agent, StructuredAgent)
    return agent


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("agent")
    written(directory, Switches())
    return directory


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    """A sound agent to damage."""
    return Path(shutil.copytree(original, tmp_path / "copy"))


@pytest.mark.parametrize("game", ODD, ids=names)
def test_there_and_back_bit_by_bit(game: Game[Any], tmp_path: Path) -> None:
    agent = written(tmp_path / "deep" / "run", game, about={"note": "ρ"})
    back, config = load_agent(tmp_path / "deep" / "run")
    assert config == config_of(game)
    structures: list[Any] = [jax.tree.structure(back), jax.tree.structure(agent)]
    assert structures[0] == structures[1]
    for one, other in zip(jax.tree.leaves(agent), jax.tree.leaves(back), strict=True):
        assert one.dtype == other.dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert sorted(path.name for path in (tmp_path / "deep" / "run").iterdir()) == [ARRAYS, MANIFEST]


def test_half_precision_is_close_and_keeps_the_memory_exact(tmp_path: Path) -> None:
    agent = written(tmp_path, Switches(), half=True)
    back = loaded(tmp_path)
    for one, other in zip(jax.tree.leaves(agent), jax.tree.leaves(back), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)
    for one, other in zip(jax.tree.leaves(agent.memory), jax.tree.leaves(back.memory), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(np.asarray(agent.policy.network.table), np.asarray(back.policy.network.table))
    stored = safetensors.numpy.load_file(tmp_path / ARRAYS)
    assert {array.dtype.name for name, array in stored.items() if name.startswith((".policy", ".detector"))} == {
        "float16"
    }


def test_saving_again_replaces(copy: Path) -> None:
    written(copy, ODD[2])
    assert load_agent(copy)[1].game == ODD[2]


def test_an_agent_is_found_by_its_directory(copy: Path) -> None:
    assert find_agent(str(copy)) == copy
    assert load(copy).game == load(str(copy)).game == Switches()
    assert {name: find_agent(name).name for name in GAMES} == {name: name for name in GAMES}
    with pytest.raises(InputError, match="no run directory 'nowhere'"):
        find_agent("nowhere")


def test_it_cannot_be_saved_into_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        written(tmp_path / "file", Switches())


def refused(directory: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_agent(directory)
    (line,) = str(caught.value).splitlines()
    return line


@pytest.mark.parametrize("place", [0, 9, 200, -1])
def test_one_flipped_byte(copy: Path, place: int) -> None:
    data = bytearray((copy / ARRAYS).read_bytes())
    data[place] ^= 1
    (copy / ARRAYS).write_bytes(data)
    assert "damaged" in refused(copy)


@pytest.mark.parametrize("length", [0, 1, 8, 1000])
def test_truncation(copy: Path, length: int) -> None:
    data = (copy / ARRAYS).read_bytes()[:length]
    (copy / ARRAYS).write_bytes(data)
    assert "damaged" in refused(copy)
    vouch(copy)
    assert "not a safetensors file" in refused(copy)


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_missing_files(copy: Path, name: str) -> None:
    (copy / name).unlink()
    assert name in refused(copy)
    (copy / name).mkdir()
    assert name in refused(copy)


def test_no_directory_at_all(tmp_path: Path) -> None:
    assert "holds no trained agent" in refused(tmp_path / "nowhere")


def test_files_beyond_reason_are_not_read(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.truncate(copy / ARRAYS, 400 * 2**20)
    assert "larger than" in refused(copy), "than such an agent can be, although other agents may"
    monkeypatch.setattr(store, "LARGEST", 1000)
    assert "can be saved" in refused(copy)


def test_one_flipped_bit_of_the_manifest(copy: Path) -> None:
    """Every bit of it: most would else be another seed, another number of steps, another setting."""
    text = (copy / MANIFEST).read_bytes()
    for place in range(0, 8 * len(text), 7):
        data = bytearray(text)
        data[place // 8] ^= 1 << place % 8
        (copy / MANIFEST).write_bytes(data)
        if json_or_none(bytes(data)) != json.loads(text):
            assert MANIFEST in refused(copy)


def json_or_none(data: bytes) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(data)


def test_the_seal_may_not_be_missing(copy: Path) -> None:
    manifest = json.loads((copy / MANIFEST).read_text())
    assert manifest["format"] == AGENT
    del manifest["manifest_sha256"]
    (copy / MANIFEST).write_text(json.dumps(manifest))
    assert "manifest_sha256 is not the SHA-256 of its other fields" in refused(copy)
    (copy / MANIFEST).write_text(json.dumps(sealed(manifest), sort_keys=True, indent=7))
    assert load_agent(copy)[1] == config_of(Switches()), "the order of fields means nothing"


@pytest.mark.parametrize(
    "about", [[], "text", 5, {"steps_trained": -1}, {"steps_trained": True}, {"steps_trained": 10**400}]
)
def test_what_a_manifest_says_about_training(copy: Path, about: Any) -> None:
    altered(copy, "about", value=about)
    assert MANIFEST in refused(copy)


def vouch(directory: Path, **changes: Any) -> None:
    """Makes the manifest agree with the arrays that are there, so that the next check has its turn."""
    manifest = json.loads((directory / MANIFEST).read_text())
    manifest["sha256"] = hashlib.sha256((directory / ARRAYS).read_bytes()).hexdigest()
    (directory / MANIFEST).write_text(json.dumps(sealed(manifest | changes)))


def rewrite(directory: Path, change: Callable[[dict[str, np.ndarray]], Any]) -> None:
    """Changes the arrays and vouches for them."""
    arrays = safetensors.numpy.load_file(directory / ARRAYS)
    change(arrays)
    safetensors.numpy.save_file(arrays, directory / ARRAYS)
    vouch(directory)


def test_arrays_that_are_vouched_for_are_loaded(copy: Path) -> None:
    rewrite(copy, lambda arrays: arrays[".memory.delta"].__setitem__((0, 0), 42.0))
    assert float(loaded(copy).memory.delta[0, 0]) == 42.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [".memory.delta", ".policy.network.table", ".detector.network.head.outputs.bias"])
def test_numbers_that_are_none(copy: Path, name: str, value: float) -> None:
    rewrite(copy, lambda arrays: arrays[name].__setitem__(-1, value))
    line = refused(copy)
    assert "not finite" in line
    assert name in line


@pytest.mark.parametrize("value", [1e300, -1e39, 3.5e38])
def test_numbers_that_are_infinite_as_float32(copy: Path, value: float) -> None:
    def put(arrays: dict[str, np.ndarray]) -> None:
        wide = arrays[".memory.delta"].astype(np.float64)
        wide[0, 0] = value
        arrays[".memory.delta"] = wide

    rewrite(copy, put)
    assert "not finite, in .memory.delta" in refused(copy)


def test_whole_numbers_that_do_not_fit(copy: Path) -> None:
    rewrite(copy, lambda arrays: arrays.update({".memory.size": np.array(2**31, np.int64)}))
    assert "too large for int32, in .memory.size" in refused(copy)
    rewrite(copy, lambda arrays: arrays.update({".memory.size": np.array(3, np.int64)}))
    assert int(loaded(copy).memory.size) == 3


WRONG: dict[str, Callable[[dict[str, np.ndarray]], Any]] = {
    "missing": lambda arrays: arrays.pop(".memory.size"),
    "unknown": lambda arrays: arrays.update(extra=np.zeros(3)),
    "shape": lambda arrays: arrays.update({".memory.delta": np.zeros((2, 7), np.float32)}),
    "type": lambda arrays: arrays.update({".memory.size": np.zeros((), np.float32)}),
    "truth in place of a number": lambda arrays: arrays.update({".memory.size": np.zeros((), bool)}),
    "no sign": lambda arrays: arrays.update({".memory.size": np.zeros((), np.uint32)}),
    "nothing": lambda arrays: arrays.clear(),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_arrays_that_do_not_fit(copy: Path, change: Callable[[dict[str, np.ndarray]], Any]) -> None:
    rewrite(copy, change)
    assert "does not fit its manifest" in refused(copy)


def altered(directory: Path, *path: str, value: Any) -> None:
    """Sets one entry of the manifest."""
    manifest = json.loads((directory / MANIFEST).read_text())
    inner = manifest
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    (directory / MANIFEST).write_text(json.dumps(sealed(manifest)))


@pytest.mark.parametrize("value", [None, "saplan agent 0", ["saplan agent 1"], "saplan agent 99"])
def test_another_format(copy: Path, value: Any) -> None:
    altered(copy, "format", value=value)
    assert "not a manifest of the format" in refused(copy)


@pytest.mark.parametrize(("number", "writer"), [(1, "saplan 0.1"), (2, "a development version of saplan after 0.1")])
def test_an_agent_of_an_older_format_is_refused_in_one_sentence(copy: Path, number: int, writer: str) -> None:
    manifest = {"format": f"saplan agent {number}", "config": {"method": "structured", "looks": 5}}
    (copy / MANIFEST).write_text(json.dumps(manifest))
    assert refused(copy) == f"{copy / MANIFEST} was saved by {writer}; train it again with this version"


def test_every_older_format_has_a_known_writer() -> None:
    """The sentence named version 0.1 for every older format, also for one that 0.1 never wrote."""
    for newest in (AGENT, CHECKPOINT, LABELS, ATTRIBUTES):
        kind, _, number = newest.rpartition(" ")
        assert all(f"{kind} {older}" in WRITERS for older in range(1, int(number)))
    assert AGENT not in WRITERS


def test_settings_of_another_version_are_refused_in_one_sentence(copy: Path) -> None:
    altered(copy, "config", "settings", "trail", value=True)
    assert "was saved by another version of saplan, with a setting 'trail'; train it again" in refused(copy)


@pytest.mark.parametrize("content", ["[]", "null", '"text"', "{}"])
def test_a_manifest_that_is_none(copy: Path, content: str) -> None:
    (copy / MANIFEST).write_text(content)
    assert "not a manifest of the format" in refused(copy)


@pytest.mark.parametrize("value", [None, "", 5, "0" * 64])
def test_another_sum(copy: Path, value: Any) -> None:
    altered(copy, "sha256", value=value)
    assert "damaged" in refused(copy)


def test_the_manifest_of_another_game(copy: Path, tmp_path: Path) -> None:
    written(tmp_path / "other", ODD[2])
    other = json.loads((tmp_path / "other" / MANIFEST).read_text())
    altered(copy, "config", value=other["config"])
    assert "does not fit its manifest" in refused(copy)


def test_an_unknown_setting(copy: Path) -> None:
    altered(copy, "config", "settings", "momentum", value=0.9)
    assert "momentum" in refused(copy)


@pytest.mark.parametrize(
    ("setting", "value"), [("hidden", 10**12), ("capacity", 10**12), ("edge_hidden", 0), ("lanes", 0)]
)
def test_a_manifest_that_asks_for_too_much_or_too_little(copy: Path, setting: str, value: int) -> None:
    altered(copy, "config", "settings", setting, value=value)
    assert MANIFEST in refused(copy) or ARRAYS in refused(copy)


class Bomb:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_a_renamed_pickle_is_not_executed(copy: Path, tmp_path: Path, name: str) -> None:
    mark = tmp_path / "mark"
    (copy / name).write_bytes(pickle.dumps(Bomb(mark)))
    assert name in refused(copy)
    if name == ARRAYS:
        vouch(copy)
        assert "not a safetensors file" in refused(copy)
    assert not mark.exists()
    pickle.loads(pickle.dumps(Bomb(mark)))
    assert mark.exists(), "the bomb would have gone off"


def test_a_world_that_is_given_is_used_or_refused(tmp_path: Path) -> None:
    """Even where the run says how to make its game: else success would be reported of a world that was not played."""
    same, other = Switches(), Switches(kinds=2)
    assert load("switches", same).game is same
    with pytest.raises(InputError, match="not to the given one: kinds is 2 here and 3 there"):
        load("switches", other)
    with pytest.raises(InputError, match='game is "exchange" here and "switches" there'):
        load("switches", Exchange())
    agent, config = load_agent(find_agent("switches"))
    save_agent(tmp_path / "run", agent, config)
    with pytest.raises(InputError, match="belongs to the world 'switches', not to the given one"):
        load(tmp_path / "run", other)
    assert load(tmp_path / "run", same).game is same

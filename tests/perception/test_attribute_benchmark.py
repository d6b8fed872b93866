"""The benchmark of learnt attributes: resumable rows that say how they came about, from one f̂ per setting."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from saplan.perception.regressor import RegressorSettings
from saplan.storage.json_data import read_json
from tests.loading import load


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    made: ModuleType = load("benchmarks/attributes.py")
    made.SETTINGS["picture"] = RegressorSettings(hidden=4, batch=8, rate=0.01, steps=1)
    return made


@pytest.fixture
def measured(benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Measures what is missing, and gives all that the file holds."""
    what = ["errors", "--sights", "picture", "--games", "mining", "--pairs", "60", "--geometries", "structured"]
    where = ["--tests", "40", "--json", str(tmp_path / "errors.json"), "--keep", str(tmp_path / "kept")]
    monkeypatch.setattr("sys.argv", ["attributes.py", *what, *where])

    def measure() -> Any:
        benchmark.main()
        return read_json(tmp_path / "errors.json")

    return measure


def test_rows_are_measured_once_and_say_how(
    benchmark: ModuleType, measured: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = measured()
    [first] = result["rows"]
    assert {"code", "hardware", "versions"} <= set(result)
    assert first["settings"]["hidden"] == 4
    assert first["seeds"] == {"labels": 1, "noise": 77, "fit": 0, "tests": 999}
    assert (first["pairs"], first["tests"]) == (60, 40)
    assert set(first["error"]) == {"m1", "m2", "hammer"}
    monkeypatch.setattr(benchmark, "fit_labels", lambda *_: pytest.fail("f̂ is fitted again"))
    assert measured()["rows"] == [first]
    # Agents use the f̂ whose errors were measured.
    kept = benchmark.fitted("mining", "picture", 60, keep=tmp_path / "kept")
    assert (kept.about["pairs"], kept.shape) == (60, (64, 64, 3))
    (tmp_path / "errors.json").unlink()
    [again] = measured()["rows"]
    assert again["error"] == first["error"]


def test_fewer_labels_are_the_first_of_more(benchmark: ModuleType) -> None:
    few, more = (benchmark.drawn("mining", "picture", pairs, 1) for pairs in (10, 30))
    assert all(np.array_equal(a, b[:10]) for a, b in zip(few, more, strict=True))


def test_processes_that_share_a_file_wait_for_each_other(benchmark: ModuleType, tmp_path: Path) -> None:
    order = []

    def second() -> None:
        with benchmark.alone(tmp_path / "rows.json"):
            order.append("second")

    with benchmark.alone(tmp_path / "rows.json"):
        other = threading.Thread(target=second)
        other.start()
        time.sleep(0.2)
        order.append("first")
    other.join(timeout=10)
    assert order == ["first", "second"]

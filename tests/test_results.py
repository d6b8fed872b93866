import json
from pathlib import Path

import pytest

from saplan.errors import InputError
from saplan.experiments.tables import ablation_table, detail_table, differing, read_results, success_table
from tests.loading import load

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "results").rglob("*.json"))


def check(document: Path, begin: str, table: str, command: str) -> None:
    written = document.read_text(encoding="utf-8").split(begin)[1].split("<!-- end -->")[0].strip()
    assert written == table, f"{document.name} is stale: run python benchmarks/{command}"


def test_results():
    results = load("benchmarks/results.py")
    for document, name, made in results.TABLES:
        check(document, results.begin(name), made(), "results.py")


def test_reliability():
    reliability = load("benchmarks/reliability.py")
    check(reliability.DOCUMENT, reliability.BEGIN, reliability.table(), "reliability.py")


def test_attributes():
    attributes = load("benchmarks/attributes.py")
    for name, made in attributes.TABLES.items():
        check(attributes.DOCUMENT, attributes.begin(name), made(), "attributes.py write")


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_result_names_the_code_that_made_it(path: Path) -> None:
    told = json.loads(path.read_text(encoding="utf-8"))
    code = told.get("code") or told["setting"]["code"]
    assert code["version"]
    assert code["commit"]
    if "success" in told and "config" in told:
        assert told["trained_by"]["commit"]
        assert told["config"]["settings"]
        assert told["planning"]
        assert told["hardware"]
        assert len(told["successes"]) * 4 >= told["tasks"]


def directory(name: str) -> list:
    return read_results(ROOT / "results" / name)


@pytest.mark.parametrize("name", ["paper", "small", "shipped"])
def test_rows_of_one_table_are_comparable(name: str) -> None:
    assert not differing(row for row in directory(name) if row["method"] != "oracle")


@pytest.mark.parametrize(
    ("field", "value"), [("hardware", "2 CPU cores"), ("tasks", 300), ("trained_by", {"commit": "x"})]
)
def test_a_table_that_mixes_results_is_not_made(field: str, value: object) -> None:
    """The table of ablations compared a default of two CPU cores with variants of a GPU on fewer tasks."""
    rows = [row for row in directory("small") if row["game"] == "switches"]
    odd = [{**row, field: value} if row["variant"] == "default" else row for row in rows]
    with pytest.raises(InputError, match="would compare results that differ in"):
        ablation_table(odd)
    paper = directory("paper")
    with pytest.raises(InputError, match="would compare results that differ in"):
        success_table([{**paper[0], field: value}, *paper[1:]])
    with pytest.raises(InputError, match="would compare results that differ in"):
        detail_table([{**paper[0], field: value}, *paper[1:]])


def test_row_leaves_memory_for_the_processes_beside_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As documented it ran out of GPU memory: each of three processes took most of it beforehand."""
    row, started = load("benchmarks/row.py"), []

    class Process:
        def __init__(self, command: list[str], env: dict[str, str]) -> None:
            started.append(env["XLA_PYTHON_CLIENT_PREALLOCATE"])

        def wait(self) -> int:
            return 1

    monkeypatch.setattr(row.subprocess, "Popen", Process)
    monkeypatch.setattr(row.sys, "argv", ["row.py", "--out", str(tmp_path)])
    with pytest.raises(SystemExit):
        row.main()
    assert started == ["false"] * 3

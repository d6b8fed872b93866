import json
from collections.abc import Callable
from pathlib import Path

import pytest

from saplan.errors import InputError
from saplan.experiments.tables import Result, ablation_table, detail_table, mixed, read_results, success_table
from tests.loading import load

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "results").rglob("*.json"))


TABLES = load("benchmarks/results.py").TABLES


@pytest.mark.parametrize(("document", "name", "make"), TABLES, ids=[name for _, name, _ in TABLES])
def test_tables_of_the_documents_are_up_to_date(document: Path, name: str, make: Callable[[], str]) -> None:
    common = load("benchmarks/common.py")
    written = document.read_text(encoding="utf-8").split(common.begin(name))[1].split(common.END)[0].strip()
    assert written == make(), f"{document.name} is stale: run python benchmarks/results.py"


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


def directory(name: str) -> list[Result]:
    return read_results(ROOT / "results" / name)


@pytest.mark.parametrize("name", ["paper", "small", "shipped"])
def test_rows_of_one_table_are_comparable(name: str) -> None:
    assert not mixed(directory(name))


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

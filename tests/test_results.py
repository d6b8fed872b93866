import importlib.util
from pathlib import Path

ROOT = Path(__file__).parent.parent


def results_module():
    spec = importlib.util.spec_from_file_location("results", ROOT / "benchmarks" / "results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_in_the_documents_are_those_of_the_result_files():
    results = results_module()
    for document, table in ((results.DOCUMENT, results.full_table()), (results.README, results.short_table())):
        written = document.read_text(encoding="utf-8").split(results.BEGIN)[1].split(results.END)[0].strip()
        assert written == table, f"{document.name} is stale: run python benchmarks/results.py --tables"

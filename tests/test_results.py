import importlib.util
from pathlib import Path

ROOT = Path(__file__).parent.parent


def module_of(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_in_the_documents_are_those_of_the_result_files():
    results, curves, reliability = module_of("results"), module_of("curves"), module_of("reliability")
    for source, document, table, command in (
        (results, results.DOCUMENT, results.full_table(), "results.py"),
        (results, results.README, results.short_table(), "results.py"),
        (curves, curves.DOCUMENT, curves.table(), "curves.py --draw"),
        (reliability, reliability.DOCUMENT, reliability.table(), "reliability.py"),
    ):
        written = document.read_text(encoding="utf-8").split(source.BEGIN)[1].split(source.END)[0].strip()
        assert written == table, f"{document.name} is stale: run python benchmarks/{command}"


def test_the_tables_of_learnt_attributes_are_those_of_the_result_files():
    attributes = module_of("attributes")
    text = attributes.DOCUMENT.read_text(encoding="utf-8")
    for name, table in attributes.TABLES.items():
        written = text.split(attributes.begin(name))[1].split(attributes.END)[0].strip()
        assert written == table(), "docs/attributes.md is stale: run python benchmarks/attributes.py write"

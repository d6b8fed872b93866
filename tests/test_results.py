import importlib.util
from pathlib import Path

ROOT = Path(__file__).parent.parent


def module_of(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(document: Path, begin: str, table: str, command: str) -> None:
    written = document.read_text(encoding="utf-8").split(begin)[1].split("<!-- end -->")[0].strip()
    assert written == table, f"{document.name} is stale: run python benchmarks/{command}"


def test_results():
    results = module_of("results")
    for document, name, made in results.TABLES:
        check(document, results.begin(name), made(), "results.py")


def test_curves():
    curves = module_of("curves")
    check(curves.DOCUMENT, curves.BEGIN, curves.table(), "curves.py --draw")


def test_reliability():
    reliability = module_of("reliability")
    check(reliability.DOCUMENT, reliability.BEGIN, reliability.table(), "reliability.py")


def test_attributes():
    attributes = module_of("attributes")
    for name, made in attributes.TABLES.items():
        check(attributes.DOCUMENT, attributes.begin(name), made(), "attributes.py write")

from pathlib import Path

from loading import load


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

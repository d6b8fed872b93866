"""The public interface of `saplan`: every name exists, has one home, and is imported on first use."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import saplan

SOURCE = ast.parse(Path(saplan.__file__).read_text(encoding="utf-8"))


def test_the_three_lists_of_names_agree() -> None:
    homes = {(module, name) for module, names in saplan._HOMES.items() for name in names}
    (block,) = (node for node in SOURCE.body if isinstance(node, ast.If))
    imported = {(str(node.module), alias.name) for node in block.body if isinstance(node, ast.ImportFrom)
                for alias in node.names}  # fmt: skip
    assert imported == homes
    assert sorted(name for _, name in homes) == sorted(saplan.__all__)


@pytest.mark.parametrize("name", saplan.__all__)
def test_every_name_exists(name: str) -> None:
    assert getattr(saplan, name) is not None
    assert name in dir(saplan)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trane'"):
        _ = saplan.trane


def test_the_package_is_typed() -> None:
    assert (Path(saplan.__file__).parent / "py.typed").is_file()


def test_importing_the_package_does_not_import_jax() -> None:
    code = "import sys, saplan; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"jax", "numpy", "gymnasium", "tyro", "matplotlib"} & set(loaded)

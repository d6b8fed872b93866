"""The package as strangers get it: a wheel, installed into an empty environment, used without the repository."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = ("py.typed", "viewer/static/index.html", "agents/switches/agent.safetensors", "agents/switches/manifest.json")


def done(*command: str | Path, cwd: Path) -> str:
    """Output of a program that must succeed, which finds no module of the repository."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run([str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_wheel_installs_and_works_without_the_repository(tmp_path: Path) -> None:
    for package in ("build", "hatchling", "twine"):
        pytest.importorskip(package, reason=f"{package} is not installed: it comes with the extra `test`")
    dist, empty = tmp_path / "dist", tmp_path / "empty"
    empty.mkdir()
    done(sys.executable, "-m", "build", "--wheel", "--sdist", "--no-isolation", "--outdir", dist, ROOT, cwd=empty)
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    assert "PASSED" in done(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=empty)
    inside = zipfile.ZipFile(wheel).namelist()
    assert {f"saplan/{name}" for name in FILES} <= set(inside)
    assert not [name for name in inside if not name.startswith(("saplan/", "saplan-"))]

    # The environment borrows the tested versions of other packages, but not the editable installation of ours.
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    site = Path(done(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=empty).strip())
    borrowed = [path for path in sys.path if path.endswith("-packages") and Path(path) != ROOT]
    (site / "borrowed.pth").write_text("\n".join([sysconfig.get_path("purelib"), *borrowed]))
    done(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=empty,
    )
    where = done(python, "-c", "import saplan; print(saplan.__file__)", cwd=empty).strip()
    assert Path(where).is_relative_to(tmp_path)
    saplan = python.with_name("saplan")
    assert "goal reached" in done(saplan, "plan", "switches", "--goal", "red=1 blue=1", cwd=empty)
    assert "usage: saplan" in done(saplan, "--help", cwd=empty)

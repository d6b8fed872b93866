"""Films and strips, by the command."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saplan.cli import main
from saplan.render.film import PICTURES, few

RENDER = ["render", "switches", "--goal", "red=1 green=1", "--seed", "7", "--out"]


def test_a_gif_has_a_frame_for_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RENDER, str(tmp_path / "plan.gif")]) == 0
    steps = int(capsys.readouterr().out.split("in ")[1].split()[0])
    opened: Any = Image.open(tmp_path / "plan.gif")
    with opened as film:
        assert film.format == "GIF"
        assert film.n_frames == steps + 1
        first = np.asarray(film.convert("RGB"))
        film.seek(film.n_frames - 1)
        last = np.asarray(film.convert("RGB"))
    assert first.shape == last.shape
    assert 0.005 < np.any(first != last, axis=2).mean() < 0.5, "something has moved, and most has not"
    assert (tmp_path / "plan.gif").stat().st_size < 400_000


def test_a_png_is_a_sheet_of_three_columns(tmp_path: Path) -> None:
    assert main([*RENDER, str(tmp_path / "plan.png")]) == 0
    with Image.open(tmp_path / "plan.png") as sheet:
        assert sheet.size[0] > 1500
        assert sheet.size[0] % 3 == 0


def test_a_film_replaces_nothing_if_it_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.gif").mkdir()
    assert main([*RENDER, str(tmp_path / "plan.gif")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert list(tmp_path.rglob("*")) == [tmp_path / "plan.gif"]


def test_an_mp4_is_one(tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg")
    assert main([*RENDER, str(tmp_path / "plan.mp4")]) == 0
    data = (tmp_path / "plan.mp4").read_bytes()
    assert data[4:8] == b"ftyp"
    assert len(data) > 10_000


def test_few_pictures_are_spread() -> None:
    assert few([0, 5, 5, 9]) == [0, 5, 9]
    chosen = few(list(range(50)))
    assert len(chosen) == PICTURES
    assert (chosen[0], chosen[-1]) == (0, 49)


MISTAKES = [
    (["render"], "name a run directory or a game first"),
    (["render", "switches", "--goal", "red=1"], "--out"),
    (["render", "switches", "--goal", "red=1", "--out", "plan.webm"], "must end in .gif, .mp4, .png"),
    (["render", "switches", "--goal", "red=1", "--out", "nowhere/plan.gif"], "no directory 'nowhere'"),
    (["render", "switches", "--goal", "red=9", "--out", "plan.gif"], "at most"),
    (["render", "switches", "--goal", "reed=1", "--out", "plan.gif"], "did you mean 'red'"),
    (["render", "swiches", "--goal", "red=1", "--out", "plan.gif"], "no run directory 'swiches'"),
    (["render", "switches", "--method", "magic", "--goal", "red=1", "--out", "plan.gif"], "unknown method"),
    (["render", "switches", "--seed", "-1", "--goal", "red=1", "--out", "plan.gif"], "--seed must lie in"),
    (["watch", "swiches"], "no run directory 'swiches'"),
    (["watch", "--port", "70000"], "--port must lie in 0..65535"),
    (["watch", "--port", "x"], "'x' is not a whole number"),
    (["watch", "--host", "256.1.1.1"], "cannot listen at 256.1.1.1"),
    (["watch", "switches", "--goal", "reed=1"], "did you mean 'red'"),
    (["watch", "switches", "--method", "magic"], "unknown method"),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES, ids=[" ".join(arguments) for arguments, _ in MISTAKES])
def test_mistakes(arguments: list[str], words: str, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("saplan: ")
    assert words in line
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize(
    ("missing", "arguments", "words"),
    [
        ("starlette", ["watch"], "pip install starlette"),
        ("imageio_ffmpeg", [*RENDER, "plan.mp4"], "pip install imageio-ffmpeg"),
    ],
)
def test_a_missing_extra_is_named(missing: str, arguments, words: str, capsys, monkeypatch) -> None:
    find = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == missing else find(name))
    assert main(arguments) == 2
    assert words in capsys.readouterr().err

"""How the progress of a training is printed."""

from dataclasses import replace

import pytest

from saplan.training.progress import LEGEND, Progress, ProgressBar

FIRST = Progress(
    steps=131_072, total=2_500_000, seconds=30.0, steps_per_second=0.0, success=None, evaluated=False, known=4,
    counts="|𝓑|", overflow=0, positives=6289, negatives=576, attempt_success=0.451, attempt_steps=6.6,
)  # fmt: skip


def test_a_rate_is_shown_once_it_is_known() -> None:
    assert FIRST.line() == "0.13/2.50 M steps  tasks –  attempts 45.1% in 6.6  |𝓑| 4  +6289 -576"
    later = replace(FIRST, steps=500_000, steps_per_second=20_000.0)
    assert later.line().startswith("0.50/2.50 M steps  20 k/s  100 s left  tasks –")


def test_the_words_of_a_line_are_explained_once(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(every=0.0)
    for _ in range(3):
        bar(FIRST)
    bar.close()
    said = capsys.readouterr().err
    assert said.count(LEGEND) == 1
    assert said.index(LEGEND) < said.index(FIRST.line())
    assert max(map(len, LEGEND.splitlines())) <= 80

"""Plans and results as people read them: rows of at most 80 columns, and tables for notebooks."""

import html
from collections.abc import Sequence

WIDTH = 80
"""Columns of a printed plan."""


def plan_row(number: int, words: str, probability: float | None, steps: float | None, result: str) -> str:
    """One transition of a plan, in at most 80 columns."""
    chance = "" if probability is None else f"p {probability:.2f}"
    time = "" if steps is None else f"~{steps:.0f} step{'s' if round(steps) != 1 else ''}"
    return shortened(f"{number:4d}. {shortened(words, 26):<26} {chance:<6}  {time:<9}  → {result}", WIDTH)


def shortened(text: str, width: int) -> str:
    """Text of at most this many characters; an ellipsis stands for the rest."""
    return text if len(text) <= width else text[: width - 1] + "…"


def html_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as HTML, everything escaped."""
    cells = [("th", head), *(("td", row) for row in rows)] if rows else []
    lines = ["<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in row) + "</tr>" for tag, row in cells]
    return f"<table><caption>{html.escape(caption)}</caption>{''.join(lines)}</table>"

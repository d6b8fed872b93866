"""Tables of docs/algebra.md: structure found from data, its worth, poses, and random moves."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from common import RESULTS

from saplan.experiments.tables import markdown_table
from saplan.storage.json_data import read_json

GROUPS = {
    "games": "the five games",
    "taxi": "Taxi",
    "minigrid": "MiniGrid",
    "craftax": "Craftax-Classic",
    "random": "random worlds",
}
WORDS = ("right", "equivalent", "undecided", "unseen", "wrong")
GOOD = ("right", "equivalent")
POSES = {
    "pose": "pose as one attribute",
    "apart": "position and direction apart",
    "pose, anywhere": "pose, its place homogeneous",
    "apart, anywhere": "apart, the place homogeneous",
}
SPACES = ("declared", "found", "wrong")


def _rows(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_json(RESULTS / f"{name}.json")["rows"]
    return rows


def _steps(count: float) -> str:
    return f"{count / 1e6:.3g} M" if count >= 1e6 else f"{count / 1e3:.4g} k"


def _share(words: Iterable[str]) -> str:
    each = list(words)
    return f"{np.mean([word in GOOD for word in each]):.1%}"


def suggest_table() -> str:
    """Judgements after the longest play, by group of worlds."""
    rows = _rows("suggest")
    cells = [_judged_row(title, [row for row in rows if row["group"] == group]) for group, title in GROUPS.items()]
    header = ["", "worlds", "attributes", *WORDS, "right or equivalent", "of those not unseen"]
    return markdown_table(header, [*filter(None, cells), _judged_row("all", rows)])


def _judged_row(title: str, worlds: list[dict[str, Any]]) -> list[str]:
    words = [word for row in worlds for word in _last(row).values()]
    if not words:
        return []
    seen = [word for word in words if word != "unseen"]
    counts = [str(Counter(words)[word]) for word in WORDS]
    return [title, str(len(worlds)), str(len(words)), *counts, f"**{_share(words)}**", _share(seen)]


def _last(row: dict[str, Any]) -> dict[str, str]:
    words: dict[str, str] = row["judged"][max(row["judged"], key=int)]
    return words


def rare_table() -> str:
    """The attributes on which play from rare values and play from the start alone disagree."""
    returning = {row["world"]: row for row in _rows("suggest")}
    cells = []
    for row in _rows("suggest-from-start"):
        with_rare = returning[row["world"]]
        before, after = _last(row), _last(with_rare)
        for name in after:
            if before[name] != after[name]:
                words = [each["attributes"].get(name, {}).get("evidence", "") for each in (row, with_rare)]
                cells.append([row["world"], name, f"{before[name]}: {words[0]}", f"{after[name]}: {words[1]}"])
    return markdown_table(["world", "attribute", "every game from its start", "half of them from a rare value"], cells)


def needed_table() -> str:
    """Share of right or equivalent attributes, and wrong ones, by the number of transitions."""
    rows = _rows("suggest")
    points = sorted({int(steps) for row in rows for steps in row["judged"]})
    cells = []
    for group, title in GROUPS.items():
        worlds = [row for row in rows if row["group"] == group]
        if worlds:
            each = [[word for row in worlds for word in row["judged"].get(str(n), {}).values()] for n in points]
            cells.append([title, *(f"{_share(words)}, {words.count('wrong')} wrong" for words in each)])
    return markdown_table(["transitions", *map(_steps, points)], cells)


def worlds_table() -> str:
    """For every world: the transitions from which on its attributes are right or equivalent, and what is left."""
    cells = []
    for row in _rows("suggest"):
        judged = {int(steps): words for steps, words in row["judged"].items()}
        points, last = sorted(judged), _last(row)
        needed = {name: _from_then_on(points, [judged[n].get(name) in GOOD for n in points]) for name in last}
        decided = [steps for steps in needed.values() if steps is not None]
        left = [f"{name} ({last[name]})" for name, steps in needed.items() if steps is None]
        half = _steps(float(np.quantile(decided, 0.5, method="higher"))) if decided else ""
        most = _steps(max(decided)) if decided else ""
        cells.append([row["world"], str(len(last)), half, most, ", ".join(left)])
    return markdown_table(["world", "attributes", "half of the right ones", "all of them", "not right"], cells)


def _from_then_on(points: list[int], good: list[bool]) -> int | None:
    """The first point from which on everything is good; None if the last is not."""
    first = None
    for point, fine in zip(reversed(points), reversed(good), strict=True):
        if not fine:
            break
        first = point
    return first


def worth_table(name: str = "worth") -> str:
    """Success, steps to 90 % and the size of 𝓑 with every space, beside the oracle."""
    rows, cells = _rows(name), []
    mixed = len({row.get("commit") for row in rows}) > 1
    followed = any(len(row.get("curve", [])) > 1 for row in rows)
    asked = any(row["space"] == "oracle" for row in rows)
    for game in dict.fromkeys(row["game"] for row in rows):
        mine = [row for row in rows if row["game"] == game]
        oracle = [f"{row['success']:.1%}" for row in mine if row["space"] == "oracle"]
        for space in SPACES:
            seeds = [row for row in mine if row["space"] == space]
            if seeds:
                success = [row["success"] for row in seeds]
                each = ", ".join(f"{one:.1%}" for one in success)
                reached = [_steps_to_90(row) for row in seeds]
                sizes = ", ".join(str(row["changes"]) for row in seeds)
                mean = f"**{np.mean(success):.1%}**" + (f" ({each})" if len(seeds) > 1 else "")
                blocks = f"`{seeds[0]['blocks']}`"
                code = [", ".join(sorted({row.get("commit", "")[:7] for row in seeds}))] if mixed else []
                steps = [", ".join(reached)] if followed else []
                cells.append([game, space, blocks, mean, *steps, sizes, *(oracle or [""] * asked), *code])
    header = ["game", "space", "blocks", "success", *["steps to 90 %"] * followed, "size of 𝓑", *["oracle"] * asked]
    return markdown_table([*header, *(["code"] if mixed else [])], cells)


def _steps_to_90(row: dict[str, Any]) -> str:
    """The steps at which a row's curve reaches 90 %, in words."""
    if row["steps_to_90"]:
        return _steps(row["steps_to_90"])
    return "never" if row["curve"] else "not measured"


def poses_table() -> str:
    """The pose as one attribute, against position and direction apart."""
    rows, cells = [*_rows("poses"), *_rows("poses-anywhere")], []
    for space, title in POSES.items():
        seeds = [row for row in rows if row["space"] == space]
        if not seeds:
            continue
        reached = [_steps(row["steps_to_95"]) if row["steps_to_95"] else "never" for row in seeds]
        sizes = ", ".join(str(row["changes"]) for row in seeds)
        shares = [", ".join(f"{row[name]:.0%}" for row in seeds) for name in ("success", "twice_as_large")]
        cells.append([title, sizes, ", ".join(reached), *shares])
    return markdown_table(["", "size of 𝓑", "steps to 95 %", "success", "in a room twice as large"], cells)


def lake_table() -> str:
    """Success on every cell of FrozenLake, beside value iteration on the environment's own table."""
    rows = _rows("frozen-lake")
    cells = []
    for goal, best in rows[0]["best"].items():
        each = [row["goals"][goal] for row in rows]
        ratio = f"{min(each) / best:.1%}" if best else ""
        cells.append(
            [f"`{goal}`", f"{best:.1%}", f"**{np.mean(each):.1%}** ({', '.join(f'{x:.1%}' for x in each)})", ratio]
        )
    return markdown_table(["goal", "value iteration", "success", "least share of it"], cells)

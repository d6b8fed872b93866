"""The changes of a problem as a graph in DOT: which attributes every change uses, makes and needs."""

import numpy as np

from saplan.algebra import CircleRow, LineRow
from saplan.planning.problem import Problem


def write_dot(problem: Problem, name: str) -> str:
    """Boxes are changes, ellipses attributes; a dashed arrow is a need that is not used up. The goal is drawn bold."""
    lines = [f"digraph {_quoted(name)} {{", "  rankdir=LR;", '  node [fontname="sans-serif"];']
    for i, (attribute, row) in enumerate(zip(problem.space.names, problem.rows, strict=True)):
        if row is not None:
            asked = np.isfinite(problem.low[i]) or np.isfinite(problem.high[i])
            label = f"{attribute} ∈ {problem.space.blocks[i].symbol}"
            lines.append(f"  a{i} [label={_quoted(label)}{', style=bold' if asked else ''}];")
    for j in map(int, np.flatnonzero(problem.usable)):
        label = f"{problem.space.format_delta(problem.deltas[j])}\\ncost {problem.costs[j]:.3g}"
        lines.append(f"  c{j} [shape=box, label={_quoted(label)}];")
        lines += [arrow for i in range(problem.space.size) for arrow in _arrows(problem, j, i)]
    return "\n".join([*lines, "}"]) + "\n"


def _arrows(problem: Problem, j: int, i: int) -> list[str]:
    """The arrows between a change and an attribute."""
    row, delta, block = problem.rows[i], problem.changes[j, i], problem.space.blocks[i]
    if row is None:
        return []
    found = []
    if isinstance(row, LineRow | CircleRow):
        amount = block.format_delta(float(delta))
        if delta < 0 and isinstance(row, LineRow):
            found.append(f"  a{i} -> c{j} [label={_quoted('uses ' + amount.lstrip('-'))}];")
        elif delta:
            found.append(f"  c{j} -> a{i} [label={_quoted('makes ' + amount.lstrip('+'))}];")
    elif delta > 0:
        start, end = row.moves(delta)[0]
        found.append(f"  a{i} -> c{j} [label={_quoted('uses ' + block.format(start))}];")
        found.append(f"  c{j} -> a{i} [label={_quoted('makes ' + block.format(end))}];")
    if problem.needs is not None and (need := problem.needs.of_attribute(problem.space, j, i)) and delta >= 0:
        found.append(f"  a{i} -> c{j} [style=dashed, label={_quoted('needs ' + need)}];")
    return found


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "'") + '"'

"""The space that play suggests: a block for every attribute, with the evidence in words and in bits."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saplan.algebra import Block, Categorical, Circle, Cyclic, Exogenous, Integer, Natural, Product, Real
from saplan.algebra.serialize import space_to_json
from saplan.games.game import Game
from saplan.perception.dictionary import FEW, Candidate, Seen
from saplan.perception.joint import MARGIN, best_apart, dihedral_pairs, poses, seen_of
from saplan.perception.selection import Choice, described, expected_beyond, rival_of
from saplan.perception.transitions import BY_ITSELF, UNCAUSED, Transitions, by_themselves, play_freely

INDIFFERENT = 0.1
"""Bits that a change says about the action, below which it comes by itself: food runs out whatever one does."""
ENOUGH, PER_BIT = 100, 5.0
"""Changes from which that is judged: in all, and of one value to another for each bit that they would say by chance."""
TOGETHER = 0.95
"""Share of an attribute's changes at which its partner changes as well."""


@dataclass(frozen=True)
class Verdict:
    """The block of one attribute, or of two that belong together."""

    names: tuple[str, ...]
    """The raw attributes."""
    candidate: Candidate
    exogenous: bool
    margin: float
    """Bits by which the block beats the next one; infinite without a rival."""
    rival: str
    """The next block."""
    evidence: str
    turns: tuple[str, ...] = ()
    """Of the heading of a pose: the attributes of the place, whose changes are taken in its frame."""

    @property
    def decided(self) -> bool:
        """Whether the margin is large enough to rely on."""
        return self.margin >= MARGIN

    @property
    def name(self) -> str:
        """Name of the found attribute."""
        return "_".join(self.names)

    @property
    def block(self) -> Block:
        """The found block."""
        return Exogenous(self.candidate.block) if self.exogenous else self.candidate.block


@dataclass(frozen=True)
class Suggestion:
    """A space with its evidence."""

    steps: int
    """Transitions that it is based on."""
    verdicts: tuple[Verdict, ...]

    @property
    def space(self) -> Product:
        """The found space."""
        space = Product(tuple(one.name for one in self.verdicts), tuple(one.block for one in self.verdicts))
        for one in self.verdicts:
            if one.turns:
                x, y = one.turns
                space = space.with_pose(x, y, one.name)
        return space

    @property
    def undecided(self) -> tuple[str, ...]:
        """Names of the attributes whose block is uncertain."""
        return tuple(one.name for one in self.verdicts if not one.decided)

    def lines(self) -> list[str]:
        """The suggestion as text."""
        rows = [(one.name, one.block.symbol, _sure(one), one.evidence) for one in self.verdicts]
        wide = [max(len(row[k]) for row in rows) for k in range(3)]
        table = ["  ".join([*(row[k].ljust(wide[k]) for k in range(3)), row[3]]) for row in rows]
        return [f"from {self.steps:,} steps of play without a task:", *table, "", f"space: {self.space}"]

    def to_json(self) -> dict[str, Any]:
        """The suggestion as JSON data."""
        rows = [
            {**row, "raw": list(one.names), "order": list(one.candidate.order), "decided": one.decided,
             "margin": None if np.isinf(one.margin) else round(one.margin, 1), "rival": one.rival,
             "evidence": one.evidence}
            for row, one in zip(space_to_json(self.space), self.verdicts, strict=True)
        ]  # fmt: skip
        return {"steps": self.steps, "attributes": rows}


def _sure(one: Verdict) -> str:
    if not one.decided:
        return f"undecided ({one.margin:.0f} bits before {one.rival})" if one.rival else "undecided"
    return f"{one.margin:.0f} bits before {one.rival}" if one.rival else "no rival"


def suggest_space(world: Game[Any], steps: int = 200_000, seed: int = 0, lanes: int = 64) -> Suggestion:
    """The space that random play in a world suggests, from the raw numbers of its attributes."""
    return suggest(play_freely(world, steps, seed, lanes))


def suggest(played: Transitions) -> Suggestion:
    """The space that transitions suggest."""
    seen = [seen_of(played, [k]) for k in range(len(played.names))]
    drifts = [_drift(played, k, one) for k, one in enumerate(seen)]
    choices = [described(one, _partner(played, k, drifts)) if one.changed.any() else [] for k, one in enumerate(seen)]
    pairs = best_apart(dihedral_pairs(played, seen, choices, drifts))
    joined = {k for one in pairs for k in one.columns}
    alone = {
        k: _unless_uncaused(_verdict(name, seen[k], choices[k], drifts[k]), _caused_bits(played, k, seen[k]))
        for k, name in enumerate(played.names)
        if k not in joined
    }
    blocks = {k: one.block for k, one in alone.items()}
    for pose in best_apart(poses(played, blocks)):
        *place, heading = pose.columns
        words = f"{alone[heading].evidence}; {pose.evidence}"
        alone[heading] = replace(alone[heading], turns=tuple(played.names[k] for k in place), evidence=words)
        if isinstance(pose.place, Real):  # the length of a step, where each coordinate saw a part of it
            for k in place:
                alone[k] = replace(alone[k], candidate=replace(alone[k].candidate, block=pose.place))
    for one in pairs:
        names = tuple(played.names[k] for k in one.columns)
        assert one.candidate is not None
        alone[one.columns[0]] = Verdict(names, one.candidate, False, one.margin, "two attributes", one.evidence)
    return Suggestion(len(played.before), tuple(alone[k] for k in sorted(alone)))


def _drift(played: Transitions, k: int, seen: Seen) -> str:
    """The evidence that an attribute changes by itself, in words; empty if there is none."""
    if played.actions < 2:
        return ""
    if by_themselves(played.moves, played.stays)[k]:
        return f"changed under every action in {(played.moves & ~played.stays)[:, k].sum()} trials"
    alike, total = _indifferent(played.actions, seen), int(seen.weight[seen.changed].sum())
    if alike >= max(ENOUGH, BY_ITSELF * total):
        return f"{alike:,} of {total:,} changes came as often under every action"
    return ""


def _indifferent(actions: int, seen: Seen) -> int:
    """Number of changes from one value to another that say nothing about the action that was taken."""
    moved = seen.changed
    if len(seen.values) > FEW or not moved.any():
        return 0
    ends, end = np.unique(np.stack([seen.before, seen.after])[:, moved], axis=1, return_inverse=True)
    found = np.zeros((actions, ends.shape[1]))
    np.add.at(found, (seen.context[moved], end.reshape(-1)), seen.weight[moved])
    steps, each = np.bincount(seen.context, seen.weight, actions), found.sum(axis=0)
    expected = steps[:, None] / steps.sum() * each
    told = (found * np.log2(np.where(found > 0, found / np.maximum(expected, 1e-12), 1.0))).sum(axis=0)
    by_chance = (actions - 1) / (2 * np.log(2))
    return int(each[(each >= PER_BIT * by_chance) & (told - by_chance < INDIFFERENT * each)].sum())


def _caused_bits(played: Transitions, k: int, seen: Seen) -> float:
    """Evidence that actions cause the changes of an attribute, in bits: trials, or changes that follow few actions."""
    if (played.moves & played.stays)[:, k].sum() >= UNCAUSED or played.actions < 2:
        return np.inf
    steps, changes = (
        np.bincount(seen.context, weight, played.actions) for weight in (seen.weight, seen.weight * seen.changed)
    )
    total, some = changes.sum(), changes > 0
    surprise = changes[some] * np.log2(changes[some] / total / (steps[some] / steps.sum()))
    return float(surprise.sum() - (played.actions - 1) / 2 * np.log2(total + 1))


def _unless_uncaused(one: Verdict, caused: float) -> Verdict:
    """The verdict; undecided as long as the attribute may well change by itself."""
    if one.exogenous or caused >= one.margin or caused >= MARGIN or (not one.rival and one.margin == 0):
        return one
    return replace(one, margin=max(0.0, caused), rival=f"{one.block.symbol} (exogenous)")


def _partner(played: Transitions, k: int, drifts: list[str]) -> bool:
    """Whether another attribute changes whenever this one does."""
    moved = (played.before != played.after) & ~np.array([bool(one) for one in drifts])
    with_it = moved[moved[:, k]].mean(axis=0) if moved[:, k].any() else np.zeros(len(drifts))
    return bool((np.delete(with_it, k) >= TOGETHER).any())


def _verdict(name: str, seen: Seen, choices: list[Choice], drift: str) -> Verdict:
    values = seen.values
    if not choices:
        value = float(values[0])
        plain = Real() if np.any(values != np.rint(values)) else Natural() if value >= 0 else Integer()
        return Verdict((name,), Candidate(plain, 0.0), False, 0.0, "", "never changed")
    if len(values) == 2:
        return _two_values(name, seen, drift)
    best, other = choices[0].candidate, rival_of(seen, choices)
    bits, rival = (np.inf, "") if other is None else (other.bits - choices[0].bits, other.candidate.block.symbol)
    if drift:
        return Verdict((name,), best, True, np.inf, "", drift)
    return Verdict((name,), best, False, bits, rival, _words(seen, choices[0]))


def _two_values(name: str, seen: Seen, drift: str) -> Verdict:
    """Two values: ℤ/2 if one action leads both ways, else a count; both have the same changes."""
    values, moved = seen.values, seen.changed
    plain = np.array_equal(values, [0, 1])
    up, down = (set(seen.context[moved & (seen.before == value)].tolist()) for value in values)
    block = Cyclic(2) if up & down or not plain else Natural()
    words = drift or "two values: ℤ/2, a count and two labels have the same changes"
    one = Candidate(block, 0.0, () if plain else tuple(values.tolist()))
    return Verdict((name,), one, bool(drift), np.inf, "", words)


def _words(seen: Seen, best: Choice) -> str:
    """The evidence for a block."""
    block, moved = best.candidate.block, seen.changed
    total = int(seen.weight[moved].sum())
    if isinstance(block, Categorical):
        return f"{total:,} changes in {best.changes} pairs of labels; no change is the same everywhere"
    codes = best.candidate.codes(seen)[moved]
    elements = [best.candidate.elements(part[moved]) for part in (seen.before, seen.after)]
    exact = best.candidate.changes(seen.before[moved], seen.after[moved])
    kinds, where = np.unique(codes, return_index=True)
    often = [int(seen.weight[moved][codes == kind].sum()) for kind in kinds]
    ranked = sorted(zip(often, exact[where].tolist(), strict=True), reverse=True)
    named = ", ".join(f"{block.format_delta(d)} ({n:,})" for n, d in ranked[:4]) + (", …" if len(ranked) > 4 else "")
    text = f"{named}: the same at {len(np.unique(seen.before[moved]))} values"
    if isinstance(block, Natural | Integer | Real):
        beyond = expected_beyond(seen)
        return text + (f"; none of {beyond:.0f} changes beyond the ends happened" if beyond >= 1 else "")
    if isinstance(block, Cyclic | Circle):
        far = np.abs(elements[1] - elements[0]) > np.ptp(best.candidate.elements(seen.values)) / 2
        closed = int(seen.weight[moved][far].sum())
        text += f"; closes {closed:,} times"
    if best.candidate.order:
        text += f"; in the order {', '.join(f'{value:g}' for value in best.candidate.order)}"
    return text

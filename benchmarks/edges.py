"""Calibration and accuracy of the edge detector.

    python benchmarks/edges.py switches exchange mining --json results/benchmark-edges.json --png FILE

The arguments are run directories, or games for their shipped agents. Three questions:

(a) Is it calibrated? The calibrated head, which prices plans, against the outcomes of attempts on tasks of a seed that
    training never used. The planner chose these attempts, so edges that it cut or avoided are not among them.
(b) Does it know the rules? Both heads against the true feasibility of every transition of 𝓑, at every ρ on random walks
    along feasible transitions from the starts of those tasks. The balanced head decides which transitions are proposed:
    a feasible edge below p_0 is dead, since it will hardly be tried again.
(c) Where did training go? Visits by exploration and execution per transition and per value of every attribute.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import make_parser, progress, setting, text_table
from jaxtyping import Bool, Float

from saplan.errors import InputError
from saplan.experiments.figures import panels
from saplan.experiments.result_file import write_result
from saplan.games import task_set
from saplan.methods.executor import Attempt
from saplan.methods.structured.agent import StructuredAgent
from saplan.training.evaluate import evaluate
from saplan.training.store import load

SEED = 2_000_003
"""Seed of the tasks; neither training nor its evaluations use it."""
BINS = 10
DEAD = 0.1
"""p_0: a transition below it, by the balanced head, is not proposed."""
WALK = 16
"""Length of a random walk."""
POSSIBLE = 0.05
"""Smallest probability by the rules that counts as feasible; real changes have probabilities between 0 and 1."""


@dataclass(frozen=True)
class Bin:
    """Attempts with a predicted success between two bounds."""

    low: float
    high: float
    count: int
    predicted: float
    """Mean prediction."""
    happened: float
    """Share of successes."""


def reliability(predicted: Float[np.ndarray, "n"], happened: Bool[np.ndarray, "n"]) -> list[Bin]:
    """Predictions against outcomes, in bins of equal width without the empty ones."""
    place = np.minimum((predicted * BINS).astype(int), BINS - 1)
    bins = []
    for k in range(BINS):
        here = place == k
        if here.any():
            means = float(predicted[here].mean()), float(happened[here].mean())
            bins.append(Bin(k / BINS, (k + 1) / BINS, int(here.sum()), *means))
    return bins


def calibration_error(bins: Sequence[Bin]) -> float:
    """Expected calibration error: the mean gap between prediction and outcome, by count (Naeini et al., 2015)."""
    total = sum(part.count for part in bins)
    return sum(part.count * abs(part.predicted - part.happened) for part in bins) / max(total, 1)


def head_probabilities(
    agent: StructuredAgent, rho: Float[np.ndarray, "n K"]
) -> tuple[Float[np.ndarray, "n C"], Float[np.ndarray, "n C"]]:
    """The probabilities of the calibrated and of the balanced head for all transitions at every ρ."""
    parts = []
    for start in range(0, len(rho), 1024):
        scores = agent.detector(agent.game.space, jnp.asarray(rho[start : start + 1024])[:, None], agent.memory.delta)
        parts.append((jax.nn.sigmoid(scores.success), jax.nn.sigmoid(scores.feasible)))
    calibrated, balanced = (np.concatenate([np.asarray(part[k]) for part in parts]) for k in (0, 1))
    return calibrated, balanced


def on_attempts(agent: StructuredAgent, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """(a): the calibrated head against the outcomes of attempts."""
    if not attempts:
        return {"attempts": 0, "ece": None, "bins": [], "transitions": []}
    rho = np.array([attempt.rho for attempt in attempts], np.float32)
    transition = np.asarray(agent.memory.index(agent.game.space, jnp.array([attempt.delta for attempt in attempts])))
    success = np.array([attempt.success for attempt in attempts])
    predicted = head_probabilities(agent, rho)[0][np.arange(len(rho)), transition]
    bins = reliability(predicted, success)
    per_transition = [
        {"transition": name_of(agent, k), "attempts": int(here.sum())}
        | {"predicted": float(predicted[here].mean()), "happened": float(success[here].mean())}
        for k in range(int(agent.memory.size))
        if (here := transition == k).any()
    ]
    return {
        "attempts": len(attempts),
        "success": float(success.mean()),
        "ece": calibration_error(bins),
        "brier": float(np.mean((predicted - success) ** 2)),
        "bins": [vars(part) for part in bins],
        "transitions": per_transition,
    }


def random_walks(
    agent: StructuredAgent, starts: Float[np.ndarray, "n K"]
) -> tuple[Float[np.ndarray, "m K"], Float[np.ndarray, "m C"]]:
    """Distinct ρ on random walks along feasible transitions of 𝓑, and the true feasibility of all transitions there."""
    game, memory = agent.game, agent.memory
    ask = jax.jit(jax.vmap(jax.vmap(game.feasible, (None, 0)), (0, None)))
    follow = jax.jit(lambda rho, entry: game.space.compose(rho, memory.delta[entry]))
    draw, rho, met, truth = np.random.default_rng(0), starts, [], []
    for _ in range(WALK + 1):
        feasible = np.asarray(ask(rho, memory.delta)) * np.asarray(memory.used)
        met.append(rho)
        truth.append(feasible)
        # The mean of a real change may leave the set, so uncertain transitions are not followed.
        weight = (feasible >= 0.5) + 1e-9 * (feasible > 0)
        stuck = weight.sum(axis=1) == 0
        weight[stuck] = 1.0
        entry = np.array([draw.choice(weight.shape[1], p=row / row.sum()) for row in weight])
        rho = np.where(stuck[:, None], starts, np.asarray(follow(rho, entry)))
    places, first = np.unique(np.concatenate(met), axis=0, return_index=True)
    return places, np.concatenate(truth)[first]


def against_rules(
    chance: Float[np.ndarray, "n ..."], feasible: Bool[np.ndarray, "n ..."], infeasible: Bool[np.ndarray, "n ..."]
) -> dict[str, Any]:
    """(b): how well one head separates feasible edges from infeasible ones."""
    yes, no = chance[feasible], chance[infeasible]
    hits, false_alarms = int((yes > 0.5).sum()), int((no > 0.5).sum())
    return {
        "feasible": len(yes),
        "infeasible": len(no),
        "mean_feasible": mean(yes),
        "mean_infeasible": mean(no),
        "area": area(yes, no),
        "dead": mean(yes < DEAD),
        "precision": hits / (hits + false_alarms) if hits + false_alarms else None,
        "recall": hits / len(yes) if len(yes) else None,
    }


def mean(values: np.ndarray) -> float | None:
    """The mean, or None if there are no values."""
    return float(values.mean()) if len(values) else None


def area(yes: Float[np.ndarray, "a"], no: Float[np.ndarray, "b"]) -> float | None:
    """The probability that a feasible edge ranks above an infeasible one."""
    if not (len(yes) and len(no)):
        return None
    ordered = np.sort(no)
    below, up_to = np.searchsorted(ordered, yes, "left"), np.searchsorted(ordered, yes, "right")
    return float((below + up_to).mean() / (2 * len(no)))


def on_rules(agent: StructuredAgent, starts: Float[np.ndarray, "n K"]) -> dict[str, Any]:
    """(b): both heads against the true rules, over all transitions and for each."""
    rho, truth = random_walks(agent, starts)
    size = int(agent.memory.size)
    inside = np.asarray(
        agent.game.space.contains(agent.game.space.compose(jnp.asarray(rho)[:, None], agent.memory.delta))
    )[:, :size]
    truth = truth[:, :size]
    # Ends outside the space are masked, and the detector is never asked about them.
    feasible, infeasible = (truth >= POSSIBLE) & inside, (truth == 0) & inside
    result: dict[str, Any] = {"places": len(rho), "heads": {}}
    for head, chance in zip(("calibrated", "balanced"), head_probabilities(agent, rho), strict=True):
        chance = chance[:, :size]
        rows = [
            {"transition": name_of(agent, k)} | against_rules(chance[:, k], feasible[:, k], infeasible[:, k])
            for k in range(size)
        ]
        result["heads"][head] = against_rules(chance, feasible, infeasible) | {"transitions": rows}
    return result


def visits(agent: StructuredAgent) -> dict[str, Any]:
    """(c): the counts of the memory."""
    memory, space = agent.memory, agent.game.space
    tallies = zip(memory.seen.tolist(), memory.tried.tolist(), memory.succeeded.tolist(), strict=True)
    size = int(memory.size)
    transitions = [
        {"transition": name_of(agent, k), "seen": seen, "tried": tried, "succeeded": succeeded}
        for k, (seen, tried, succeeded) in enumerate(tallies)
        if k < size
    ]
    explored, executed = np.asarray(memory.explored), np.asarray(memory.executed)
    values = {
        name: {"explored": explored[k, :bins].tolist(), "executed": executed[k, :bins].tolist()}
        for k, (name, bins) in enumerate(zip(space.names, space.bins, strict=True))
    }
    return {
        "transitions": transitions,
        "values": values,
        "joint_cells": int(np.unpackbits(np.asarray(agent.visited.bits)).sum()),
        "overflow": int(memory.overflow),
    }


def name_of(agent: StructuredAgent, entry: int) -> str:
    """A transition of 𝓑 as text."""
    return agent.game.space.format_delta(agent.memory.delta[entry])


def examine_detector(run: str, tasks: int) -> dict[str, Any]:
    """The answers to all three questions for one agent."""
    agent = load(run)
    if not isinstance(agent, StructuredAgent):
        raise InputError(f"{run} is not a run of the structured method")
    progress(f"{run}: executing {tasks} tasks ...")
    result = evaluate(agent, tasks, SEED)
    states, _ = task_set(agent.game, tasks, SEED)
    starts = np.asarray(jax.vmap(agent.game.attributes)(states))
    progress(f"{run}: comparing with the rules ...")
    return {
        "run": run,
        "game": agent.game.name,
        "tasks": tasks,
        "task_success": float(result.success.mean()),
        "attempts": on_attempts(agent, result.attempts),
        "rules": on_rules(agent, starts),
        "visits": visits(agent),
    }


def describe_result(result: dict[str, Any]) -> str:
    """The answers as text."""
    title = f"\n{result['run']} ({result['game']}): {result['task_success']:.1%} of {result['tasks']} tasks succeed"
    parts = describe_attempts(result["attempts"]), describe_rules(result["rules"]), describe_visits(result["visits"])
    return "\n".join([title, *parts])


def describe_attempts(attempts: dict[str, Any]) -> str:
    """Answer (a) as text."""
    if not attempts["attempts"]:
        return "\n(a) there were no attempts"
    title = (f"\n(a) calibrated head on {attempts['attempts']} held-out attempts, {attempts['success']:.1%} succeeded: "
             f"expected calibration error {attempts['ece']:.3f}, Brier score {attempts['brier']:.3f}\n")  # fmt: skip
    bins = [(f"{row['low']:.1f} to {row['high']:.1f}", row["count"], row) for row in attempts["bins"]]
    each = [(row["transition"], row["attempts"], row) for row in attempts["transitions"]]
    head = "attempts", "predicted", "happened"
    tables = (
        text_table((name, *head), [(label, str(count), *map(number, means(row))) for label, count, row in rows])
        for name, rows in (("predicted", bins), ("transition", each))
    )
    return "\n".join([title, "\n\n".join(tables)])


def describe_rules(rules: dict[str, Any]) -> str:
    """Answer (b) as text."""
    lines = []
    columns = "feasible", "says", "infeasible", "says", "area", f"dead (< {DEAD})", "precision", "recall"
    for head, judged in rules["heads"].items():
        lines.append(f"\n(b) {head} head against the rules at {rules['places']} places\n")
        rows = [("all", *rule_cells(judged)), *((row["transition"], *rule_cells(row)) for row in judged["transitions"])]
        lines.append(text_table(("transition", *columns), rows))
    return "\n".join(lines)


def describe_visits(seen: dict[str, Any]) -> str:
    """Answer (c) as text."""
    tallies = [
        (row["transition"], *(f"{row[what]:,}" for what in ("seen", "tried", "succeeded")), number(share(row)))
        for row in seen["transitions"]
    ]
    widest = 1 + max(
        max(np.flatnonzero(row[who]).tolist(), default=0) for row in seen["values"].values() for who in row
    )
    marginal = [
        (f"{name}, {who}", *percentages(row[who][:widest], widest))
        for name, row in seen["values"].items()
        for who in row
    ]
    return "\n".join([
        f"\n(c) visits; 𝓑 overflowed {seen['overflow']} times\n",
        text_table(("transition", "seen", "tried", "succeeded", "share"), tallies),
        "\nper cent of visits by value (or bin) of each attribute\n",
        text_table(("attribute", *map(str, range(widest))), marginal),
        f"\njoint cells visited by either policy: {seen['joint_cells']:,}",
    ])  # fmt: skip


def means(row: dict[str, Any]) -> tuple[float, float]:
    """Predicted and actual success."""
    return row["predicted"], row["happened"]


def share(row: dict[str, Any]) -> float | None:
    """Share of successful attempts at a transition, None if there were none."""
    return row["succeeded"] / row["tried"] if row["tried"] else None


def rule_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """One comparison with the rules as cells of a table."""
    shown = [str(row["feasible"]), number(row["mean_feasible"]), str(row["infeasible"]), number(row["mean_infeasible"])]
    return (*shown, *(number(row[what]) for what in ("area", "dead", "precision", "recall")))


def number(value: float | None) -> str:
    """Three decimals, or an empty text."""
    return "" if value is None else f"{value:.3f}"


def percentages(counts: Sequence[int], width: int) -> list[str]:
    """Percentages of the total, one cell each; blank beyond the last bin."""
    total = max(sum(counts), 1)
    return [f"{100 * count / total:.1f}" for count in counts] + [""] * (width - len(counts))


def draw(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draws the reliability diagrams side by side: success by prediction, and the attempts in each bin."""
    figure, axes = panels(len(results), 2, height=2.3, sharex=True, height_ratios=(4, 1))
    for (upper, lower), result in zip(axes.T, results, strict=True):
        attempts = result["attempts"]
        bins = attempts["bins"]
        if not bins:
            continue
        middle = [(part["low"] + part["high"]) / 2 for part in bins]
        upper.plot((0, 1), (0, 1), color="0.6", linewidth=1, linestyle="--")
        upper.bar(middle, [part["happened"] for part in bins], 0.9 / BINS, color="#7fb0d8")
        upper.plot(*zip(*map(means, bins), strict=True), "o-", color="#1f4e79", markersize=4)
        title = f"{result['game']}, calibration error {attempts['ece']:.3f}"
        upper.set(title=title, ylim=(0, 1), xlim=(0, 1), ylabel="share of successes")
        lower.bar(middle, [part["count"] for part in bins], 0.9 / BINS, color="0.6")
        lower.set(xlabel="predicted success", ylabel="attempts", yscale="log")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Examines every run, prints and writes."""
    parser = make_parser(__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directory, or a game for its shipped agent")
    parser.add_argument("--tasks", type=int, default=500, help="held-out tasks per run")
    parser.add_argument("--png", type=Path, metavar="FILE", help="draw the reliability diagrams here")
    options = parser.parse_args()
    results = []
    for run in options.runs:
        try:
            results.append(examine_detector(run, options.tasks))
        except InputError as error:
            parser.error(str(error))
        print(describe_result(results[-1]), flush=True)
    write_result(options.json, {"setting": setting(), "seed": SEED, "runs": results})
    if options.png:
        draw(results, options.png)


if __name__ == "__main__":
    main()

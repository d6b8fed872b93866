"""Speed of training beside PPO on other grid worlds.

    python benchmarks/training.py --repetitions 5 --json results/benchmark-training.json
    python benchmarks/training.py --threads --json results/benchmark-threads.json
    python benchmarks/training.py --lanes 1024 16384 --minibatches 32 16 --json results/benchmark-training-lanes.json

Ours is the whole training with default settings: exploration and execution, the edge detector, the memory. The
opponents (see `peers.py`) learn one policy for one task, with hidden layers of the same width: PPO in the style of
PureJaxRL on XLand-MiniGrid, once with four epochs of four minibatches and once with a single gradient step per rollout,
and PPO of Stable-Baselines3 on Farama MiniGrid. A step is one action in one environment.

Turns are interleaved (A, B, C, A, B, C, ...), so that noise hits all equally; rates are medians, and a ratio is the
median of the ratios within a turn. Compilation and the first updates, in which 𝓑 fills, do not count. Ours runs in a
process of its own with the number of threads that `saplan train` chooses; the opponents use all cores.

With `--lanes`, it measures our training alone at several numbers of lanes, as for a GPU, and needs only JAX, Equinox,
Optax, SciPy and NumPy.
"""

import argparse
import dataclasses
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
from common import cores, describe, make_parser, peer, progress, quantity, setting, text_table
from peers import JAX_VARIANTS, matmul_limit, ppo_flops, train_sb3, xminigrid_trainer

from saplan.cli.threads import THREADS
from saplan.experiments.result_file import write_result
from saplan.games import GAMES, Game, make_game
from saplan.methods.structured.learner import Structured, StructuredKnowledge
from saplan.methods.structured.settings import StructuredSettings, structured_settings
from saplan.methods.update import Learner, train_chunk

UPDATES = 4
"""Updates per compiled call."""
WARM_UP = 24
"""Updates before the clock starts: by then 𝓑 is full, and the work per step is constant."""
HORIZON = 10_000
"""Length of the learning-rate schedule in updates; more than are made here."""
SB3_TURNS = 3
"""Stable-Baselines3 is so much slower that a few turns of it suffice."""

Turn = Callable[[], tuple[int, float]]
"""Continues training for a moment and returns the steps and the seconds."""


@dataclass
class Entry:
    """One training and the rates measured so far."""

    name: str
    kind: str
    """One of `ours`, `jax`, `sb3`."""
    lanes: int
    turn: Turn
    flops: Callable[[], float] | None = None
    """Floating-point operations per step, computed after the last turn."""
    turns: int = 1_000
    """The largest number of turns."""
    rates: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)


def training_flops(game: Game[Any], settings: StructuredSettings, transitions: int) -> float:
    """Floating-point operations per environment step that our training needs at least.

    Counted: the matrix products of both networks, two operations per weight and example, and the bags of words, one
    addition per slot and unit. The trunk of the policy is computed to act, for the targets (one state more than the
    rollout has steps) and once per epoch; its heads for the lane's own subgoal and for exploring when acting, for every
    transition in 𝓑 and for exploring when learning, of each only the half of the outputs that is used. The detector is
    asked about all of 𝓑 in every step, since any lane may need a proposal, and learns from 3 × `edge_batch` examples
    per gradient step. A backward pass is two forward passes, less the unneeded gradients of inputs.

    Not counted, though done: elementwise work (normalisation, losses, Adam), the memory's counts, the games themselves,
    empty entries of 𝓑, heads recomputed for the gradient, and, on a GPU, the zeros in the bags. The embedding of a
    transition is shared by all examples of a batch and left out where it is.
    """
    state, goal, width = game.space.width, game.space.delta_width, settings.hidden
    read = 2 * state * width + game.slots * width
    trunk = read + 2 * width**2
    head = 2 * width * len(game.actions)
    own_goal = 2 * 2 * (goal + 1) * width
    acting = trunk + own_goal + 2 * head
    targets = (1 + 1 / settings.rollout) * (trunk + (transitions + 1) * head)
    forward = trunk + (transitions + 1) * head
    learning = settings.epochs * (3 * forward - read)

    edge = settings.edge_hidden
    edge_read, edge_goal = 2 * state * edge, 2 * 2 * goal * edge
    edge_trunk = edge_read + 2 * edge**2
    proposing = edge_trunk + transitions * 2 * edge
    surprise = edge_trunk + edge_goal + 2 * edge if settings.alpha_surprise else 0
    edge_forward = edge_trunk + edge_goal + 2 * edge * 3
    examples = 3 * settings.edge_batch * settings.edge_steps / (settings.lanes * settings.rollout)
    edge_learning = examples * (3 * edge_forward - edge_read - edge_goal)
    return acting + targets + learning + proposing + surprise + edge_learning


METHOD = Structured()


class Ours:
    """Our training, chunk by chunk."""

    def __init__(self, game: Game[Any], settings: StructuredSettings, updates: int) -> None:
        """Starts untrained."""
        self.game, self.settings, self.updates = game, settings, updates
        self.learner: Learner[StructuredKnowledge] = METHOD.begin(game, settings, jax.random.key(0))

    def turn(self) -> tuple[int, float]:
        """One chunk."""
        begin = time.perf_counter()
        self.learner, report = train_chunk(
            METHOD, self.game, self.settings, HORIZON, self.updates, self.updates, self.learner
        )
        jax.block_until_ready((self.learner, report))
        return self.updates * self.settings.lanes * self.settings.rollout, time.perf_counter() - begin

    def warm_up(self) -> float:
        """Compiles, and trains until 𝓑 is full; returns the seconds."""
        begin = time.perf_counter()
        for _ in range(-(-WARM_UP // self.updates)):
            self.turn()
        return time.perf_counter() - begin

    @property
    def transitions(self) -> int:
        return int(self.learner.knowledge.memory.size)

    def flops(self) -> float:
        """Floating-point operations per step, for 𝓑 as it is now."""
        return training_flops(self.game, self.settings, self.transitions)


class OursElsewhere:
    """Our training in another process, one chunk whenever it is asked."""

    def __init__(self, name: str, threads: int) -> None:
        """Starts it; the process warms up."""
        again = [sys.executable, __file__, "--serve", name]
        environment = {**os.environ, THREADS: str(threads)}
        self.process = subprocess.Popen(
            again, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.warmed_up = self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def _ask(self, what: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(what, file=self.process.stdin, flush=True)
        return self._answer()

    def turn(self) -> tuple[int, float]:
        """One chunk."""
        answer = self._ask("turn")
        return answer["steps"], answer["seconds"]

    def flops(self) -> float:
        """Floating-point operations per step."""
        return float(self._ask("flops")["flops"])


def serve(name: str) -> None:
    """Trains on a game as the lines of the standard input ask."""
    game = make_game(name)
    ours = Ours(game, structured_settings(game), UPDATES)
    spent = ours.warm_up()
    print(json.dumps({"seconds": spent, "transitions": ours.transitions, "lanes": ours.settings.lanes}), flush=True)
    for line in sys.stdin:
        if line.strip() == "flops":
            print(json.dumps({"flops": ours.flops()}), flush=True)
        else:
            steps, seconds = ours.turn()
            print(json.dumps({"steps": steps, "seconds": seconds}), flush=True)


def jax_peer(name: str) -> Entry:
    """PPO on XLand-MiniGrid, warmed up."""
    rules = JAX_VARIANTS[name]
    training, update = xminigrid_trainer(rules)
    held: dict[str, Any] = {"training": training}

    def turn() -> tuple[int, float]:
        begin = time.perf_counter()
        held["training"], report = update(held["training"])
        jax.block_until_ready((held["training"], report))
        return rules.lanes * rules.steps, time.perf_counter() - begin

    begin = time.perf_counter()
    turn()
    turn()
    progress(f"ready: {name} ({time.perf_counter() - begin:.0f} s to compile and warm up)")
    return Entry(name, "jax", rules.lanes, turn, lambda: ppo_flops(rules))


def sb3_peer(default: bool) -> Entry:
    """Stable-Baselines3, with one thread or all cores, whichever is faster."""
    steps = 2048
    rates = {threads: train_sb3(default, steps, threads) for threads in {1, cores()}}
    best = max(rates, key=lambda threads: rates[threads])

    def turn() -> tuple[int, float]:
        return steps, steps / train_sb3(default, steps, best)

    name = "default settings" if default else "4 epochs × 4 minibatches"
    progress(f"ready: PPO of Stable-Baselines3, {name} (threads: {best})")
    entry_name = f"PPO of Stable-Baselines3 on MiniGrid, {name}"
    return Entry(entry_name, "sb3", 1 if default else 16, turn, turns=SB3_TURNS)


def installed_trainings(games: list[str], threads_alone: bool) -> list[Entry]:
    """Our training on these games and the installed peers, or ours alone with one thread and with several."""
    entries = []
    several = games if threads_alone else games[:1]
    for name, threads in [*((name, 1) for name in games), *((name, cores()) for name in several)]:
        ours = OursElsewhere(name, threads)
        facts, title = ours.warmed_up, f"saplan, {name}" + (f", {threads} threads" if threads > 1 else "")
        progress(f"ready: {title} ({facts['seconds']:.0f} s to compile and warm up, |𝓑| = {facts['transitions']})")
        entries.append(Entry(title, "ours", facts["lanes"], ours.turn, ours.flops))
    if threads_alone:
        return entries
    if peer("xminigrid"):
        entries += [jax_peer(name) for name in JAX_VARIANTS]
    if peer("minigrid") and peer("stable_baselines3"):
        entries += [sb3_peer(default) for default in (True, False)]
    return entries


def measure(entries: list[Entry], repetitions: int, seconds: float) -> float:
    """Lets all train in turn; returns the best rate of a matrix product, measured in between."""
    limit = 0.0
    for repetition in range(repetitions):
        playing = [entry for entry in entries if len(entry.rates) < entry.turns]
        for entry in playing:
            entry.rates.append(timed(entry.turn, 0.0 if entry.kind == "sb3" else seconds))
        limit = max(limit, matmul_limit(seconds=0.5))
        shown = ", ".join(quantity(entry.rates[-1]) for entry in playing)
        progress(f"turn {repetition + 1}/{repetitions}: {shown}")
    return limit


def timed(turn: Turn, seconds: float) -> float:
    """Steps per second over at least this long."""
    steps, spent = turn()
    while spent < seconds:
        more, longer = turn()
        steps, spent = steps + more, spent + longer
    return steps / spent


def ratio(entry: Entry, other: Entry) -> float:
    """How many times faster than another in the same turns."""
    return statistics.median(a / b for a, b in zip(entry.rates, other.rates, strict=False))


def compare(options: argparse.Namespace, facts: dict[str, Any]) -> dict[str, Any]:
    """Compares all trainings."""
    entries = installed_trainings(options.games, options.threads)
    limit = measure(entries, options.repetitions, options.seconds)
    peers = [entry for entry in entries if entry.kind != "ours"]
    rows, records = [], []
    for entry in entries:
        flops = entry.flops() if entry.flops else None
        share = None if flops is None else flops * entry.rate / limit
        ratios = {other.name: ratio(entry, other) for other in peers} if entry.kind == "ours" else {}
        extent = f"{quantity(min(entry.rates))} .. {quantity(max(entry.rates))}"
        shown = ("", "") if flops is None or share is None else (f"{quantity(flops)}FLOP", f"{100 * share:.0f} %")
        against = [f"{ratios[other.name]:.2f}×" if ratios else "" for other in peers]
        rows.append((entry.name, str(entry.lanes), quantity(entry.rate), extent, *shown, *against))
        records.append(
            {"name": entry.name, "kind": entry.kind, "lanes": entry.lanes, "median": entry.rate, "rates": entry.rates}
            | {"flops_per_step": flops, "share_of_limit": share, "ratios": ratios}
        )
    print(f"\nTraining, steps per second, medians of interleaved turns; matrix products: {quantity(limit)}FLOP/s\n")
    letters = [f"to {chr(ord('A') + k)}" for k in range(len(peers))]
    print(text_table(("what", "lanes", "steps/s", "lowest .. highest", "per step", "of the limit", *letters), rows))
    for letter, other in zip(letters, peers, strict=True):
        print(f"{letter.removeprefix('to ')}: {other.name}")
    return {"setting": facts, "limit": limit, "entries": records}


def scaled(settings: StructuredSettings, lanes: int, keep: str) -> StructuredSettings:
    """Settings with more or fewer lanes, keeping the number of gradient steps per update or the size of a minibatch."""
    minibatches = settings.minibatches if keep == "steps" else max(1, settings.minibatches * lanes // settings.lanes)
    return dataclasses.replace(settings, lanes=lanes, minibatches=minibatches)


def scale(options: argparse.Namespace, facts: dict[str, Any]) -> dict[str, Any]:
    """Our training at several numbers of lanes; the result is saved after each."""
    limit = matmul_limit(size=8192 if facts["device"].startswith(("gpu", "cuda")) else 2048)
    result: dict[str, Any] = {"setting": facts, "limit": limit, "keep": options.keep, "entries": []}
    rows = []
    for name, lanes, minibatches in itertools.product(options.games, options.lanes, options.minibatches or [None]):
        game = make_game(name)
        settings = scaled(structured_settings(game), lanes, options.keep)
        settings = dataclasses.replace(settings, minibatches=minibatches or settings.minibatches)
        ours = Ours(game, settings, options.updates)
        try:
            compiling = ours.warm_up()
            rates = [timed(ours.turn, options.seconds) for _ in range(options.repetitions)]
        except jax.errors.JaxRuntimeError as error:
            progress(f"{name}, {lanes} lanes: skipped ({str(error).splitlines()[0][:150]})")
            continue
        rate, flops = statistics.median(rates), ours.flops()
        what = f"{name}, {lanes} lanes, {settings.minibatches} minibatches"
        progress(f"{what}: {quantity(rate)} steps/s ({compiling:.0f} s to compile and warm up)")
        share = flops * rate / limit
        shown = str(settings.minibatches), quantity(rate), f"{quantity(min(rates))} .. {quantity(max(rates))}"
        rows.append((name, str(lanes), *shown, f"{quantity(flops)}FLOP", f"{100 * share:.1f} %"))
        result["entries"].append(
            {"game": name, "lanes": lanes, "minibatches": settings.minibatches, "transitions": ours.transitions}
            | {"median": rate, "rates": rates, "flops_per_step": flops, "share_of_limit": share}
            | {"warm_up_seconds": compiling}
        )
        write_result(options.json, result)
    kept = "gradient steps per update" if options.keep == "steps" else "the size of a minibatch"
    print(f"\nTraining by lanes, {kept} kept; matrix products: {quantity(limit)}FLOP/s in JAX's default precision\n")
    print(
        text_table(("game", "lanes", "minibatches", "steps/s", "lowest .. highest", "per step", "of the limit"), rows)
    )
    return result


def main() -> None:
    """Measures and prints the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=["exchange", "switches", "mining"])
    parser.add_argument("--repetitions", type=int, default=7, help="turns per training")
    parser.add_argument("--seconds", type=float, default=0.5, help="shortest length of a turn")
    parser.add_argument("--lanes", type=int, nargs="+", metavar="N", help="our training alone, with these lanes")
    parser.add_argument(
        "--keep", choices=("steps", "size"), default="steps",
        help="with --lanes: keep the gradient steps per update or the size of a minibatch",
    )  # fmt: skip
    parser.add_argument(
        "--minibatches",
        type=int,
        nargs="+",
        metavar="N",
        help="with --lanes: minibatches per epoch, if not the default",
    )
    parser.add_argument("--updates", type=int, default=8, help="with --lanes: updates per compiled call")
    parser.add_argument("--threads", action="store_true", help="our training alone, with one thread and with several")
    parser.add_argument("--serve", metavar="GAME", choices=GAMES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return

    facts = setting()
    print(describe(facts), flush=True)
    result = scale(options, facts) if options.lanes else compare(options, facts)
    write_result(options.json, result)


if __name__ == "__main__":
    main()

"""Time until a person sees an answer, as multiples of the time that `python -c "import jax"` takes.

    python benchmarks/latency.py --json results/latency.json

Every round starts the reference, `saplan plan` and `saplan watch` for each game in fresh processes, so that all of them
meet the same load. *Cold*: JAX's compilation cache is off; processor seconds are counted as well, which depend less on
the load. *Warm*: another map and the same goal in a process that has shown a plan before.
"""

import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import describe, make_parser, progress, setting, text_table
from websockets.sync.client import connect
from websockets.typing import Origin

from saplan.experiments.result_file import write_result
from saplan.interpreter.program import without_compiling
from saplan.methods.agent import Agent
from saplan.render.narrate import narrate
from saplan.training.store import load

GOALS = {"switches": "red=1 blue=1", "exchange": "red=2 blue=5", "mining": "m1=5 m2=6"}
SEED = 0
PLAN, STEP = re.compile(r"^\s+1\. "), re.compile(r"^\s+step\s+\d+:|^\s+new plan:")
COLD = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false", "JAX_PLATFORMS": "cpu", "PYTHONUNBUFFERED": "1"}
Times = dict[str, float]


def reference() -> Times:
    """Seconds of a process that imports JAX and ends."""
    before, began = _processor_seconds(), time.monotonic()
    subprocess.run([sys.executable, "-c", "import jax"], check=True, env=COLD)
    return {"end": time.monotonic() - began, "processor": _processor_seconds() - before}


def plan(game: str) -> Times:
    """Seconds from the command to the first line of the plan, to the first attempt that ends, and to the end."""
    before, began, seen = _processor_seconds(), time.monotonic(), Times()
    command = [sys.executable, "-m", "saplan", "plan", game, "--goal", GOALS[game], "--seed", str(SEED)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=COLD) as process:
        assert process.stdout is not None
        for line in process.stdout:
            for name, pattern in (("plan", PLAN), ("first steps", STEP)):
                if name not in seen and pattern.search(line):
                    seen[name] = time.monotonic() - began
    return {**seen, "end": time.monotonic() - began, "processor": _processor_seconds() - before}


def watch(game: str) -> Times:
    """Seconds from the command to the page's address, its first map and its first plan; then the memory in MiB."""
    began = time.monotonic()
    command = [sys.executable, "-m", "saplan", "watch", game, "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=COLD) as process:
        assert process.stdout is not None
        found = re.search(r"http://(\S+?)/", process.stdout.readline())
        assert found is not None
        seen = {"address": time.monotonic() - began}
        task = {"type": "open", "id": 1, "world": game, "method": "structured", "seed": SEED, "goal": GOALS[game]}
        with connect(f"ws://{found[1]}/socket", origin=Origin(f"http://{found[1]}"), max_size=None) as socket:
            socket.send(json.dumps({**task, "step": 0}))
            while "plan" not in seen:
                kind = json.loads(socket.recv(timeout=120))["type"]
                name = {"map": "map", "task": "plan"}.get(kind)
                if name is not None:
                    seen[name] = time.monotonic() - began
        status = Path(f"/proc/{process.pid}/status").read_text()
        memory = re.search(r"VmHWM:\s+(\d+)", status)
        process.send_signal(signal.SIGINT)
    assert memory is not None
    return {**seen, "memory MiB": int(memory[1]) / 1024}


def warm(agent: Agent, goal: str) -> Times:
    """Seconds to the first line of the plan for another map, in a process that has shown one plan."""
    seconds = 0.0
    with without_compiling():
        for seed in (SEED, SEED + 1):
            began = time.monotonic()
            next(line for line in narrate(agent, goal, seed, 0, colour=False, anyway=True) if "Plan:" in line)
            seconds = time.monotonic() - began
    return {"plan": seconds}


def _processor_seconds() -> float:
    """Processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(rounds: int) -> dict[str, Any]:
    """All rounds, and the medians as multiples of the reference."""
    runs: dict[str, list[Times]] = {}
    for number in range(rounds):
        runs.setdefault("import jax", []).append(reference())
        for game in GOALS:
            runs.setdefault(f"plan {game}", []).append(plan(game))
            runs.setdefault(f"watch {game}", []).append(watch(game))
        progress(f"round {number + 1} of {rounds}")
    for game, goal in GOALS.items():
        runs[f"warm plan {game}"] = [warm(load(game), goal) for _ in range(2)]
    unit = medians(runs["import jax"])
    ratios = {
        name: {
            at: round(seconds / unit["processor" if at == "processor" else "end"], 2)
            for at, seconds in medians(times).items()
            if at != "memory MiB"
        }
        for name, times in runs.items()
    }
    return {"rounds": rounds, "seconds": {name: medians(times) for name, times in runs.items()}, "ratios": ratios}


def medians(times: list[Times]) -> Times:
    """The median of every figure."""
    return {name: round(statistics.median(run[name] for run in times if name in run), 3) for name in times[0]}


def main() -> None:
    """Measures, prints and writes."""
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="repetitions")
    options = parser.parse_args()
    facts = setting()
    result = measure(options.rounds)
    print(describe(facts), end="\n\n")
    columns = ("address", "map", "plan", "first steps", "end", "processor", "memory MiB")
    rows = []
    for name, seconds in result["seconds"].items():
        cells = [
            f"{seconds[at]:.2f} ({result['ratios'][name].get(at, 0):.1f})" if at in seconds else "" for at in columns
        ]
        rows.append([name, *cells])
    print(text_table(("seconds (multiples of import jax)", *columns), rows))
    write_result(options.json, {"command": "python benchmarks/latency.py", **facts, **result}, "websockets")


if __name__ == "__main__":
    main()

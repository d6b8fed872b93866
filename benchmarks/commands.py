"""Every command that the documents print, carried out at small sizes.

    python benchmarks/commands.py --json results/commands.json
    python benchmarks/commands.py --only taxi --add --json results/commands.json   # commands with this word
    python benchmarks/commands.py --list                                           # what would run, and how

The documents are README.md, CONTRIBUTING.md, everything in docs/, and the docstrings of examples/ and benchmarks/.
Their commands run one after the other in a copy of the working tree, so nothing they write reaches the repository.
`SMALL` shortens what would take minutes or hours, `LEFT_OUT` says why a command is not executed at all, and `TESTED`
names the test that executes a page's commands. A command whose packages are missing is left out and says so. The exit
code is 1 if a command failed; the count "not yet" is that of commands that a record with `--only` lacks.
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common import ROOT, make_parser, progress, setting

from saplan.experiments.result_file import write_result
from saplan.storage.json_data import read_json

LIMIT = 900
"""Seconds that a shortened command may take."""
TINY = "--lanes 16 --rollout 4 --hidden 8 --minibatches 2 --epochs 1"
TRAINING = (
    f"{TINY} --edge-hidden 8 --edge-batch 16 --edge-steps 1 --positives 16 --outcomes 16 --capacity 8 --cells 256"
)
FEW = "--steps 2048 --seeds 1 --tasks 2"
REPRODUCE = "--seeds 1 --steps 8192 --eval-tasks 1 --eval-points 1 --games switches"
SMALL: dict[str, str] = {
    r"saplan train .*(curriculum|unstructured)": f"--steps 1024 --eval-points 0 {TINY}",
    r"saplan train --resume": "",
    r"saplan train": f"--steps 1024 --eval-points 0 {TRAINING}",
    r"saplan (evaluate|card)": "--tasks 2 --budget 20",
    r"saplan label": "--pairs 500",
    r"saplan fit-attributes": "--steps 20",
    r"saplan check": "--steps 60 --lanes 8",
    r"saplan suggest": "--steps 2000 --lanes 8",
    r"saplan reproduce .*(ladder|ablations)": f"{REPRODUCE} --train-only",
    r"saplan reproduce (?!.*--draw)": REPRODUCE,
    r"saplan watch": "--no-browser --port 0",
    r"examples/taxi": FEW,
    r"examples/frozen_lake": "--steps 40000 --seeds 1 --tasks 2",  # with fewer, everything seems possible
    r"examples/poses": f"{FEW} --points 1",
    r"examples/composable": "--steps 8192 --seeds 0",
    r"examples/mini_grid": f"{FEW} --envs MiniGrid-KeyCorridorS3R3-v0",
    r"examples/craftax_classic": "--steps 1024 --seeds 0 --tasks 2 --lanes 16",
    r"examples/ogbench_(puzzle|scene)": "--steps 2048 --episodes 1",
    r"examples/film": "--budget 5",
    r"attributes.py errors": "--games switches --pairs 100 --geometries structured --fit-steps 5",
    r"attributes.py success": "--games switches --pairs 300 --fit-steps 20 --seeds 1 --tasks 2 --steps 8192",
    r"minigrid_pixels": "--pairs 100 --geometries structured --fit-steps 10",
    r"unstated": "--games switches --methods structured --steps 2048 --lanes 16 --tasks 2",
    r"suggest.py .*craftax": "--steps 1000",
    r"suggest.py": "--steps 2000 --only switches Taxi-v4",
    r"worth": f"{FEW} --cases switches-found --lanes 16 --hidden 8 --minibatches 2 --points 1 --curve-tasks 2",
    r"craftax_ppo": "--steps 4096 --lanes 16 --seeds 1 --tasks 2 --eval-points 1",
    r"puzzles.py": "--steps 2048 --minutes 1 --episodes 1 --goals 1 --processes 0",
    r"scene.py": "--steps 2048 --minutes 1 --episodes 1 --processes 0",
    r"generalisation.py train": "--jobs switches-structured --seeds 1 --steps 2048 --lanes 64 --processes 1",
    r"generalisation.py evaluate": "--jobs switches-structured --points 4..5 --seeds 1 --tasks 2 --processes 1",
    r"edges": "--tasks 10",
    r"unstructured.py table": "--powers 8",
    r"unstructured.py distance": "--farthest 2 --tasks 2",
    r"benchmarks/planning": "--repetitions 1 --instances 1 --limit 5 --trees 1 --problems 20",
    r"graph_search": "--repetitions 1",
    r"evaluation.py": "--tasks 5",
    r"latency": "--rounds 1",
    r"training.py .*--lanes": "--games switches --lanes 16 --repetitions 1 --seconds 0.1 --updates 1",
    r"training.py": "--games switches --repetitions 1 --seconds 0.1",
    r"games.py": "--repetitions 1 --seconds 0.05",
    r"host_worlds": "--microseconds 10 --repetitions 1 --seconds 0.1",
    r"gradient_steps": "--games switches --seeds 1 --tasks 2 --steps 8192 --at-once 1 --evaluations 1",
    r"reliability.py repeat": "--games switches --updates 2",
    r"reliability.py soak": "--hours 0.01 --warm-up 0.1 --steps 100000",
    r"row.py": "--games switches --seeds 1 --lanes 16 --steps 4096 --tasks 2",
    r"update_parts": "--games switches --seconds 0.1",
}
"""Options that a printed command gets if it matches; they replace the same options of the command."""
REPLACED = {
    r" --after 46137344": "",
    r"(reproduce (?!.*--draw).*)--out results/": r"\1--out runs/",
    r"--set lanes=1024": "--set lanes=64",
    r"(benchmarks/viewer.py)$": r"\1 first",
    r"(ship.py --evidence) .*": r"\1 switches",
    r"my_world\.py": "orchard.py",
    r"(--json results/\S+?)\.json": r"\1-small.json",
}
"""Words of a printed command that are replaced: by what exists here, or by the first part of a long series."""
LEFT_OUT: dict[str, str] = {
    r"\b(RUN|GAME|WORLD|FILE|SHELL|COMMAND|SEED|DIR|TEXT|HOST|NAME|PATH|CASE)\b|…|/path/to": "a form, not a command",
    r"\[--": "a form, not a command",
    r"benchmarks/commands\.py": "this program",
    r"^(saplan|make)$": "a name, not a command",
    r"^saplan (train|evaluate|plan|check|suggest|label|fit-attributes|export|render|card|plot)( --\S+)*$": "a name",
    r"^saplan train --space auto$": "a name",
    r"^saplan (plan|watch|evaluate) \w+( \+ \w+)*$": "the name of a row: what it measures is in its page's command",
    r"^make (test|slow|demo|format|lock|clean)": "continuous integration runs `make test` in an empty clone",
    r"^make docs": "tests/test_documents.py builds the site",
    r"^make (results|reliability|benchmark-\w+)": "hours: the commands behind it are in this list one by one",
    r"^pip install|^python3? -m (venv|build)|^source |^eval ": "installs packages; so does tests/test_install.py",
    r"^nvidia-|jax\[cuda": "needs a GPU",
    r"^tensorboard": "another package's server; tests/test_sharing.py reads what it shows",
    r"^saplan (demo|reproduce --quick)": "minutes: tests/test_commands.py and tests/experiments/test_reproduce.py",
    r"saplan reproduce --on ray": "needs the extra `ray`; `make slow` runs it",
    r"viewer.py (frames|often|pictures)": "minutes of watching; tests/viewer operates the same page",
    r"^python (?!-m|benchmarks/|examples/)": "not a file of this repository",
}
"""Commands that are not executed, and why; what another test executes names that test."""
NEEDS = {
    "craftax": "craftax", "mini_grid": "minigrid", "minigrid": "minigrid", "--ppo": "stable_baselines3",
    "ogbench": "ogbench", "puzzles.py": "ogbench", "scene.py": "ogbench", "games.py": "navix",
    "benchmarks/planning.py": "unified_planning",
}  # fmt: skip
"""Packages that commands with a word need."""
TESTED = {
    "README.md": "tests/test_readme.py",
    "docs/commands.md": "tests/test_documents.py",
    "docs/install.md": "tests/test_documents.py",
    "docs/planning.md": "tests/test_documents.py",
    "docs/tutorials": "tests/test_documents.py",
}
"""Pages whose console blocks a test executes."""
MINING = f"saplan train mining --steps 1024 --eval-points 0 {TRAINING} --out runs/mining-0"
ORCHARD = (
    'python -c "import saplan, orchard; saplan.train(orchard.world(), 2048, '
    "settings=saplan.StructuredSettings(lanes=8, minibatches=2), out='runs/orchard', eval_points=0)\""
)
PUZZLE = "python examples/ogbench_puzzle.py 4x6 --out runs/ogbench-4x6-0 --steps 2048 --episodes 1"
MINE = f"saplan train switches --steps 1024 --eval-points 0 {TRAINING} --out runs/mine"
BEFORE = {"README.md": (MINE,), "docs/viewer.md": (MINING, ORCHARD), "examples/ogbench_film.py": (PUZZLE,)}
"""Commands that make what a page takes for granted."""
PROGRAMS = r"(?:saplan|python3?|make|pip|source|eval|tensorboard|taskset|nvidia-\S+)"
QUICK = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "True", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0", "JAX_PLATFORMS": "cpu", "BROWSER": "true", "NPROC": "1",
    "MUJOCO_GL": "egl",
}  # fmt: skip
"""Small programs are compiled quickly rather than well, and once."""


@dataclass(frozen=True)
class Printed:
    """A command as a document prints it."""

    page: str
    text: str
    console: bool
    """Whether it stands behind a prompt."""


@dataclass(frozen=True)
class Result:
    """What became of a command."""

    page: str
    printed: str
    status: str
    """ran, failed, test (another file executes it), or left out."""
    ran: str = ""
    """The command that was executed."""
    why: str = ""
    seconds: float = 0.0


def documents() -> list[Path]:
    """All files that print commands."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [*pages, *sorted((ROOT / "examples").glob("*.py")), *sorted((ROOT / "benchmarks").glob("*.py"))]


def printed_commands(page: Path) -> Iterator[Printed]:
    """The commands of a document in the order of its lines."""
    text, name = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
    if page.suffix == ".py":
        found = re.match(r'"""(.*?)"""', text, flags=re.DOTALL)
        text = found[1] if found else ""
        first = re.search(rf": ({PROGRAMS} [^`\n]*?)\.?$", text.splitlines()[0]) if text else None
        if first:
            yield Printed(name, first[1], False)
    text = re.sub(r"^```python\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^```console\n.*?^```", with_prompts, text, flags=re.DOTALL | re.MULTILINE)
    pattern = rf"^(\$ |    )({PROGRAMS} (?:[^\n]*\\\n)*[^\n]*)|(?<!`)`({PROGRAMS}\s[^`]+)`(?!`)"
    for found in re.finditer(pattern, text, flags=re.MULTILINE):
        command = re.sub(r"\\?\s*\n\s*", " ", found[2] or found[3])
        command = re.sub(r"\s{2,}(#.*|[a-z].*)$", "", command).strip()
        yield Printed(name, command, found[1] == "$ ")


def with_prompts(block: re.Match[str]) -> str:
    """A console block in which every command stands behind a prompt."""
    return re.sub(rf"^(?={PROGRAMS} )", "$ ", block[0], flags=re.MULTILINE)


def way(command: Printed) -> Result:
    """How a command is executed: the shortened text, or why it is not."""
    tested = next((test for page, test in TESTED.items() if command.page.startswith(page)), "")
    if command.console and tested:
        return Result(command.page, command.text, "test", why=tested)
    for pattern, why in LEFT_OUT.items():
        if re.search(pattern, command.text):
            return Result(command.page, command.text, "left out", why=why)
    shorter = command.text
    for pattern, words in REPLACED.items():
        shorter = re.sub(pattern, words, shorter)
    more = next((more for pattern, more in SMALL.items() if re.search(pattern, shorter)), "")
    ran = with_options(shorter, more)
    for word, package in NEEDS.items():
        if word in shorter and importlib.util.find_spec(package) is None:
            return Result(command.page, command.text, "left out", ran, f"needs {package}")
    return Result(command.page, command.text, "ran", ran)


def with_options(command: str, more: str) -> str:
    """A command with more options, each in place of the same option in the command."""
    for option in re.findall(r"--[\w-]+", more):
        command = re.sub(rf" {option}(?![\w-])(?: (?!--|>)(?:'[^']*'|\"[^\"]*\"|\S)+)*", "", command)
    return f"{command} {more}".strip()


def copy_tree(place: Path) -> None:
    """A copy of the working tree without what git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    tutorial = (ROOT / "docs" / "tutorials" / "gymnasium-world.md").read_text(encoding="utf-8")
    (orchard,) = re.findall(r"```python\n(# file: orchard.py\n.*?)```", tutorial, flags=re.DOTALL)
    (place / "orchard.py").write_text(orchard, encoding="utf-8")


def environment(place: Path) -> dict[str, str]:
    """Variables with which commands find this interpreter's programs and the copy's package."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {"JAX_COMPILATION_CACHE_DIR": str(place / ".programs")}
    return {**os.environ, **QUICK, **kept, "PATH": programs, "PYTHONPATH": str(place)}


def carry_out(one: Result, place: Path) -> Result:
    """Executes a command in the copy."""
    env = environment(place)
    began = time.monotonic()
    run = watch_page if one.ran.startswith("saplan watch") else run_to_end
    problem = run(one.ran, place, env)
    seconds = round(time.monotonic() - began, 1)
    return Result(one.page, one.printed, "failed" if problem else "ran", one.ran, problem, seconds)


def run_to_end(command: str, place: Path, env: dict[str, str]) -> str:
    """What went wrong with a command, or nothing. Exit code 4, no plan leads to the goal, is an answer too."""
    try:
        done = subprocess.run(
            ["bash", "-c", command], cwd=place, env=env, input="wasd q", capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return f"took more than {LIMIT} s"
    answered = done.returncode == 0 or (done.returncode == 4 and command.startswith("saplan plan"))
    return "" if answered else f"exit code {done.returncode}: {' | '.join(done.stderr.strip().splitlines()[-4:])}"


def watch_page(command: str, place: Path, env: dict[str, str]) -> str:
    """The same for a server: it must serve its page and end with Ctrl-C."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=place, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        if found is None:
            return f"no address: {line.strip()}"
        with urllib.request.urlopen(found[0], timeout=60) as page:
            shown = b"saplan" in page.read()
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=60)
        return "" if shown and code in (0, 130) else f"exit code {code}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        process.kill()


def core(command: str) -> str:
    """A command without its result file: commands that differ in nothing else are executed once."""
    return re.sub(r" --json \S+", "", command)


def run_all(only: str, done: dict[str, Result]) -> Iterator[Result]:
    """Executes the commands page by page, apart from what is `done`."""
    with TemporaryDirectory() as directory:
        place = Path(directory)
        copy_tree(place)
        for page in documents():
            for leftover in ("runs", "labels", "exported"):
                shutil.rmtree(place / leftover, ignore_errors=True)
            wanted = [way(one) for one in printed_commands(page) if only in one.text or only in one.page]
            before = BEFORE.get(str(page.relative_to(ROOT)), ()) if wanted else ()
            for command in before:
                if problem := run_to_end(command, place, environment(place)):
                    progress(f"{page.name}: {command}: {problem}")
            for one in wanted:
                known = done.get(core(one.ran))
                if one.status == "ran" and (known is None or before):
                    known = done[core(one.ran)] = carry_out(one, place)
                # What ran on a machine that had its packages stays a record.
                yield one if known is None else Result(**{**asdict(known), "page": one.page, "printed": one.printed})


def write(path: Path | None, rows: dict[tuple[str, str], dict[str, Any]]) -> dict[str, int]:
    """Writes the record of what the documents print now, and returns how many commands have each status."""
    printed = {(one.page, one.text): way(one) for page in documents() for one in printed_commands(page)}
    kept = [row for place, row in rows.items() if place in printed]
    waiting = [(page, one.printed) for (page, _), one in printed.items() if (page, one.printed) not in rows]
    counts = {status: sum(row["status"] == status for row in kept) for status in ("ran", "failed", "test", "left out")}
    counts["not yet"] = sum(printed[place].status == "ran" for place in waiting)
    write_result(path, {"setting": setting(), "counts": counts, "commands": kept})
    return counts


def main() -> None:
    """Runs, prints and writes."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="commands or pages that contain this word")
    parser.add_argument("--add", action="store_true", help="keep what the file has, and run what it has not")
    parser.add_argument("--again", action="store_true", help="with --add: run again what the file has")
    parser.add_argument("--list", action="store_true", help="only print how each command would be executed")
    options = parser.parse_args()
    if options.list:
        for page in documents():
            for one in map(way, printed_commands(page)):
                print(f"{one.status:<9} {one.page}: {one.printed}\n{'':<10}{one.ran or one.why}")
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background of a shell would ignore it
    known = read_json(options.json)["commands"] if options.add and options.json and options.json.exists() else []
    rows = {(row["page"], row["printed"]): row for row in known}
    done = {core(row["ran"]): Result(**row) for row in known if row["status"] == "ran" and not options.again}
    for one in (way(printed) for page in documents() for printed in printed_commands(page)):
        known_one = done.get(core(one.ran), one)
        if known_one.status != "ran" or known_one is not one:
            rows[one.page, one.printed] = {**asdict(known_one), "page": one.page, "printed": one.printed}
    for result in run_all(options.only, done):
        rows[result.page, result.printed] = asdict(result)
        progress(f"{result.status:<9} {result.seconds:6.1f} s  {result.ran or result.printed}  {result.why}")
        write(options.json, rows)
    counts = write(options.json, rows)
    print(counts)
    raise SystemExit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()

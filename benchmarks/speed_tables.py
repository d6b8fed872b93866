"""The tables of speed in docs/, from the files that games.py, graph_search.py, planning.py, evaluation.py, training.py
and unstructured.py write. `results.py` puts them into the documents.
"""

from typing import Any

from common import RESULTS, quantity

from saplan.experiments.tables import code_of, markdown_table
from saplan.storage.json_data import read_json


def read_benchmark(name: str) -> dict[str, Any]:
    """A result file of a benchmark."""
    result: dict[str, Any] = read_json(RESULTS / f"{name}.json")
    return result


def measured_on(name: str, *packages: str) -> str:
    """One line below a table: the file, its code, and the machine with its load and the versions of some packages."""
    file = read_benchmark(name)
    facts = file["setting"]
    code = code_of(file if "code" in file else facts)
    device = "" if facts["device"].startswith("cpu") else f", {facts['device']}"
    versions = "".join(f", {package} {facts['versions'][package]}" for package in ("jax", *packages))
    machine = f"{facts['cpu']}, {facts['cores']} cores{device}, load {facts['load']} at the start"
    return f"\n\n`results/{name}.json`: code {code}, {machine}{versions}."


def games_table() -> str:
    """Steps per second of our games and of their peers, by number of lanes."""
    entries = read_benchmark("benchmark-games")["entries"]
    many = [entry for entry in entries if entry["kind"] != "host"]
    lanes = sorted({entry["lanes"] for entry in many})
    rows = []
    for world in dict.fromkeys(entry["world"] for entry in many):
        mine = sorted((entry for entry in many if entry["world"] == world), key=lambda entry: entry["lanes"])
        ratios = [f"{entry['ratio']:.1f}" for entry in mine if entry["ratio"] is not None]
        rows.append([world, *(quantity(entry["median"]) for entry in mine), " and ".join(ratios)])
    for entry in entries:
        if entry["kind"] == "host":
            number = "one environment" if entry["lanes"] == 1 else f"{entry['lanes']} environments"
            rows.append([f"{entry['world']} ({number})", quantity(entry["median"]), *[""] * len(lanes)])
    header = ["world", *(f"{number:,} lanes" for number in lanes), "ratio to the faster JAX peer"]
    return markdown_table(header, rows) + measured_on("benchmark-games", "xminigrid", "navix", "minigrid")


def planning_table() -> str:
    """Time of a search by the size of its graph: in all, of which scores of edges, and SciPy's Dijkstra alone."""
    rows = [
        [entry["world"], f"{entry['nodes']:,}", f"{entry['edges']:,}", str(entry["path"]),
         *(f"{1000 * entry['median'][part]:.0f} ms" for part in ("total", "scoring", "floor"))]
        for entry in read_benchmark("benchmark-planning")["entries"]
    ]  # fmt: skip
    header = ["graph", "nodes", "edges", "path", "search", "of which scoring edges", "SciPy's Dijkstra alone"]
    return markdown_table(header, rows) + measured_on("benchmark-planning")


def peers_table() -> str:
    """Plans by algebra beside ENHSP on the same PDDL, one line per problem."""
    rows = []
    for entry in read_benchmark("planning-peers")["entries"]:
        ours, fast, best = entry["ours"], entry["satisficing"], entry["optimal"]
        proven = f"{ours['cost']:.6g}" + (
            " (optimal)" if ours["status"] == "OPTIMAL" else f" (at least {ours['bound']:.6g})"
        )
        theirs = [_answer(fast, "seconds"), "" if fast["search_seconds"] is None else _seconds(fast["search_seconds"])]
        more = "" if fast["cost"] is not None else " or more"
        ratios = [f"{fast['seconds'] / ours['median']:.0f}{more}",
                  f"{fast['cpu_seconds'] / ours['cpu_median']:.0f}{more}"]  # fmt: skip
        rows.append([entry["world"], proven, _seconds(ours["median"]), *theirs, *ratios,
                     "" if best is None else _answer(best, "seconds")])  # fmt: skip
    header = ["problem", "cost of our plan", "time", "ENHSP: cost, time of the call", "its search alone",
              "ratio of times", "of processor time", "ENHSP, optimal mode"]  # fmt: skip
    return markdown_table(header, rows) + measured_on("planning-peers", "unified-planning", "up-enhsp")


def _answer(solved: dict[str, Any], time: str) -> str:
    """Cost and time of a planner, or that it ran out of time."""
    return (
        f"none in {solved[time]:.0f} s" if solved["cost"] is None else f"{solved['cost']:.6g}, {_seconds(solved[time])}"
    )


def _seconds(value: float) -> str:
    return f"{1000 * value:.0f} ms" if value < 1 else f"{value:.1f} s"


def tech_table() -> str:
    """Plans for every item of tech trees: times, and distance from the lower bound."""
    rows = [
        [str(tree["seed"]), f"{tree['found']} of {tree['items']}", str(tree["optimal"]), f"{tree['worst_ratio']:.4f}",
         str(int(tree["longest"])), _seconds(tree["median_seconds"]), _seconds(tree["slowest_seconds"])]
        for tree in read_benchmark("planning-peers")["tech_trees"]
    ]  # fmt: skip
    header = ["tree", "items planned", "proven optimal", "worst cost by lower bound", "longest plan", "median time",
              "slowest"]  # fmt: skip
    return markdown_table(header, rows) + measured_on("planning-peers")


def random_table() -> str:
    """Random problems against brute force."""
    found = read_benchmark("planning-peers")["random_problems"]
    rows = [[what, f"{found[name]:,}"] for what, name in (
        ("problems", "problems"), ("plans proven optimal", "optimal"), ("proven unreachable", "infeasible"),
        ("left open", "open"), ("answers that brute force contradicts", "contradicted"),
        ("certificates of unreachability, all accepted by the checker", "certificates"),
    )]  # fmt: skip
    return markdown_table(["", "number"], rows) + measured_on("planning-peers")


def evaluations_table() -> str:
    """Success, seconds and memory of `saplan evaluate` for the shipped agents."""
    found = read_benchmark("evaluation")
    cells: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for entry in found["entries"]:
        if entry["code"] == "now":
            cells.setdefault((entry["game"], entry["task_seed"]), []).append(entry)
    rows = [
        [game, str(seed), f"{both[0]['success']:.1%}",
         *(f"{one['seconds']:.1f} s ({one['cpu_seconds']:.1f} s)" for one in both),
         f"{max(one['peak'] for one in both) / 1e9:.2f} GB"]
        for (game, seed), both in cells.items()
    ]  # fmt: skip
    header = ["agent", "seed of the tasks", f"success on {found['tasks']:,} tasks", "newly compiled (processor time)",
              "compiled before (processor time)", "peak memory"]  # fmt: skip
    return markdown_table(header, rows) + measured_on("evaluation")


def training_table() -> str:
    """Steps per second of training beside PPO."""
    entries = read_benchmark("benchmark-training")["entries"]
    peers = [entry["name"] for entry in entries if entry["kind"] != "ours"]
    rows = [
        [entry["name"], quantity(entry["median"]),
         "" if entry["share_of_limit"] is None else f"{entry['share_of_limit']:.0%}",
         *(f"{entry['ratios'][peer]:.2g}" if peer in entry["ratios"] else "" for peer in peers)]
        for entry in entries
    ]  # fmt: skip
    header = ["what", "steps/s", "of the machine's matrix products", *(f"ratio to {peer}" for peer in peers)]
    return markdown_table(header, rows) + measured_on("benchmark-training")


def lanes_table() -> str:
    """Steps per second of training by game and number of lanes, on an accelerator."""
    entries = read_benchmark("benchmark-training-lanes")["entries"]
    lanes = sorted({entry["lanes"] for entry in entries})
    cells = {(entry["game"], entry["minibatches"], entry["lanes"]): entry for entry in entries}
    rows = []
    for game, minibatches in dict.fromkeys((entry["game"], entry["minibatches"]) for entry in entries):
        mine = [cells.get((game, minibatches, number)) for number in lanes]
        rates = ["" if entry is None else quantity(entry["median"]) for entry in mine]
        rows.append([game, str(minibatches), *rates])
    header = ["steps/s", "minibatches", *(f"{number:,} lanes" for number in lanes)]
    return markdown_table(header, rows) + measured_on("benchmark-training-lanes")


def unstructured_table() -> str:
    """Cost of the unstructured planner's table by its size."""
    rows = [
        [*(f"{entry[what]:,}" for what in ("room", "nodes", "pairs", "overflow")), f"{entry['milliseconds']:.1f} ms"]
        for entry in read_benchmark("benchmark-table")["entries"]
    ]
    header = ["room for nodes", "nodes", "pairs", "overflow", "adding 8,192 changes"]
    return markdown_table(header, rows) + measured_on("benchmark-table")

"""A model card for a run: what it was trained on, how well it does, pictures, and how to use it."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saplan.experiments.evaluation_report import evaluation_data
from saplan.experiments.run_plot import plot_run
from saplan.games import Game
from saplan.games.rule_cards import rule_card
from saplan.methods.agent import DEFAULT_PLANNER, Agent
from saplan.render.canvas import save_png
from saplan.render.pixels import draw
from saplan.render.start import start
from saplan.storage.files import replace_file
from saplan.training.config import RunConfig, is_ours
from saplan.training.run_directory import METRICS
from saplan.training.store import open_agent

CARD, MAP, CURVES = "README.md", "map.png", "training.png"


def write_card(run: Path, tasks: int, budget: int, world: Game[Any] | None = None) -> list[Path]:
    """Evaluates the agent of a run directory and writes its card and pictures beside it; returns the files."""
    agent, config, about = open_agent(str(run), world=world)
    assert config is not None
    result = evaluation_data(str(run), tasks, 0, budget, DEFAULT_PLANNER, world=world)
    written = [run / name for name in _draw(run, agent)]
    text = "\n".join(card_lines(run.name, config, about or {}, result, [path.name for path in written]))
    replace_file(run / CARD, text.encode())
    return [run / CARD, *written]


def _draw(run: Path, agent: Agent) -> Iterator[str]:
    """Writes the pictures that this run allows, and yields their names."""
    scene = start(agent.game, 0).scene
    if scene.has_map or scene.picture is not None:
        save_png(draw(scene, cell=40), run / MAP)
        yield MAP
    if (run / METRICS).is_file():
        data = io.BytesIO()
        plot_run(run).savefig(data, format="png", dpi=110, metadata={"Software": None})
        replace_file(run / CURVES, data.getvalue())
        yield CURVES


def card_lines(
    name: str, config: RunConfig, about: dict[str, Any], result: dict[str, Any], pictures: list[str]
) -> Iterator[str]:
    """The card in Markdown; its head is read by the Hugging Face hub."""
    low, high = result["interval"]
    yield from ("---", "library_name: saplan", "tags:", "- reinforcement-learning", "- planning")
    yield from (f"- {config.game.name}", "---", "", f"# {name}", "")
    yield f"An agent for the world **{config.game.name}**, trained by saplan's {config.method} method without any task."
    yield "It reaches goals that are written as attributes."
    yield from ("", "## Success", "")
    yield f"- **{result['success']:.1%}** of {result['tasks']} fixed tasks (seed 0), {result['budget']} steps each"
    yield f"  (95 % interval {low:.1%} to {high:.1%})"
    if result["mean_steps"] is not None:
        yield f"- {result['mean_steps']:.1f} steps per success"
    causes = ", ".join(f"{number} {cause}" for cause, number in result["failures"].items())
    yield f"- failed tasks by cause: {causes}"
    yield f"- measured with saplan {result['code']['version']}, commit {result['code']['commit']}"
    yield from (f"\n![{Path(picture).stem}]({picture})" for picture in pictures)
    yield from ("", "## Training", "")
    yield f"- environment steps: {about.get('steps_trained', config.steps):,}; seed {config.seed}"
    yield f"- command: `{about['command']}`" if about.get("command") else "- command: not recorded"
    yield f"- hardware: {about.get('hardware', 'not recorded')}"
    made_by = about.get("code")
    code: dict[str, Any] = made_by if isinstance(made_by, dict) else {}
    yield f"- code: saplan {code.get('version', 'unknown')}, commit {code.get('commit', 'unknown')}"
    yield from ("", "## World", "")
    if is_ours(config.game):
        yield from ("```text", rule_card(config.game), "```")
    else:
        yield from (f"Attributes: `{config.game.space}`", "", "```json")
        yield from (json.dumps(config.game.described(), indent=2, ensure_ascii=False), "```")
    yield from ("", "## Use", "", *_use(config), "")


def _use(config: RunConfig) -> Iterator[str]:
    goal = " ".join(f"{name}=…" for name in config.game.space.names[:2])
    ours = is_ours(config.game)
    yield "```console"
    yield f'saplan plan DIRECTORY --goal "{goal}"' + ("" if ours else " --world my_world.py:world")
    yield "saplan watch DIRECTORY" + ("" if ours else " --world my_world.py:world")
    yield from ("```", "", "```python", "import saplan", "")
    yield f'agent = saplan.load("DIRECTORY"{"" if ours else ", world"})'
    yield from ("print(saplan.evaluate(agent, 100))", "```")

"""A trained agent in another world of the same rules: what moves, what is refused, and how long tasks may take."""

import json
from typing import Any

import jax
import numpy as np
import pytest

import saplan
from saplan.cli import main
from saplan.errors import InputError
from saplan.games import Exchange, Game, Mining, Switches, make_game
from saplan.games.grid import MapRules
from saplan.games.sight import LimitedSight
from saplan.methods.agent import DEFAULT_PLANNER
from saplan.training import transfer as transfer_module
from saplan.training.evaluate import evaluate
from saplan.training.transfer import BUDGET, scaled_budget, transfer

MORE: dict[str, Game[Any]] = {
    "switches": Switches(fewest=6, most=8),
    "exchange": Exchange(fewest=9, most=10, maps=MapRules(10, 10)),
    "mining": Mining(deposits=5),
}
WIDER = MapRules(15, 20)


@pytest.mark.parametrize("name", MORE)
def test_agents_move_to_more_objects_and_to_larger_maps(name: str) -> None:
    agent = saplan.load(name)
    for game in (MORE[name], make_game(name, maps=WIDER), make_game(name, maps=MapRules(blocked=0.0))):
        moved = transfer(agent, game)
        assert isinstance(moved.game, LimitedSight)
        assert moved.game.game == game
        shown = jax.jit(lambda key, moved=moved, game=game: moved.game.observe(game.reset(key)))(jax.random.key(0))
        assert shown.shape == (agent.game.slots,)
        assert int(np.max(shown)) < agent.game.vocabulary
        if game == MORE[name] or game == Switches(maps=WIDER):  # every world needs programs of its own
            result = evaluate(moved, 2, 0, 20)
            assert result.steps.max() <= 20
    assert transfer(agent, agent.game).game is agent.game


@pytest.mark.parametrize(
    ("game", "words"),
    [
        (Switches(kinds=2), "whose attributes differ"),
        (Exchange(), "whose attributes differ"),
        (Mining(), "whose attributes differ"),
    ],
)
def test_another_kind_of_world_is_refused(game: Game[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        saplan.load("switches", game=game)


def test_attempts_may_take_longer_on_larger_maps() -> None:
    agent = saplan.load("switches")
    wide = transfer(agent, Switches(maps=MapRules(20, 20)))
    planner = DEFAULT_PLANNER.stretched(wide.game)
    assert planner.patience == 4 * DEFAULT_PLANNER.patience, "ways are longer than they seem"
    assert planner.attempt_steps == 2 * DEFAULT_PLANNER.attempt_steps
    assert DEFAULT_PLANNER.stretched(transfer(agent, MORE["switches"]).game) == DEFAULT_PLANNER


def test_budgets_grow_with_the_need_of_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scaled_budget(Switches(fewest=6, most=8), Switches()) > 1.5 * BUDGET
    monkeypatch.setattr(transfer_module, "oracle_need", lambda game, *_: 10.0 * game.most)
    assert scaled_budget(Switches(most=2), Switches(most=1)) == 2 * BUDGET
    assert scaled_budget(Switches(most=1), Switches()) == BUDGET, "never less than usual"


def test_evaluate_under_other_rules(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--tasks", "2", "--budget", "10"]
    assert main(["evaluate", "switches", "--rules", "fewest=6", "most=8", *few, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rules"] == ["fewest=6", "most=8"]
    assert main(["evaluate", "switches", "--rules", "fewest=6", "most=8", *few]) == 0
    assert "under other rules: fewest=6 most=8" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rules", "words"),
    [(["mots=8"], "most"), (["most"], "name=value"), (["kinds=2"], "attributes differ"), (["most=40"], "do not fit")],
)
def test_rules_that_do_not_fit_are_one_line(rules: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "switches", "--tasks", "1", "--rules", *rules]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert words in line


def test_plans_can_be_kept_to_visited_values(capsys: pytest.CaptureFixture[str]) -> None:
    """The goal lies beyond the range of training: without the setting the plan says so, with it there is no plan."""
    asked = ["plan", "switches", "--goal", "red=6", "--rules", "fewest=6", "most=8", "--budget", "0", "--json"]
    has_evidence = bool(np.asarray(saplan.load("switches").evidence.present).any())  # type: ignore[attr-defined]
    code = main(asked)
    told = json.loads(capsys.readouterr().out)
    if has_evidence:
        assert code == 0
        assert any("never met in training" in sentence for sentence in told["beyond"])
    else:
        assert code == 4, "agents without evidence stay inside the range"
    assert main([*asked, "--visited-only"]) == 4

"""NaN and infinity, wherever they come from, stop training within one update and are named."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from saplan.cli import main
from saplan.errors import NotFiniteError
from saplan.games import Switches
from saplan.games.grid import MapRules
from saplan.methods import update
from saplan.methods.structured import learner
from saplan.training.loop import Loop
from saplan.training.run_directory import reopen_run
from tests.reliability import record, times
from tests.reliability.tiny import STEPS, UPDATES, tiny_config, train_tiny

BAD = (np.nan, np.inf, -np.inf)


def test_one_seed_of_several_stops_all() -> None:
    loop = Loop([tiny_config(seed=seed) for seed in (5, 6)], chunk=2)
    loop.learner = eqx.tree_at(lambda x: x.reward_scale, loop.learner, jnp.array([1.0, np.nan]))
    with pytest.raises(NotFiniteError, match=r"learner\.reward_scale is not finite in update 1 \(seed 6\)"):
        loop.chunk()
    assert loop.learner.updates.tolist() == [0, 0]


@dataclass(frozen=True)
class Leaky(Switches):  # type: ignore[misc] # a faulty variant of a final game
    """Its attributes are not finite once something is held."""

    value: float = float("nan")

    def attributes(self, state: Any) -> Float[Array, "K"]:
        rho = super().attributes(state)
        return jnp.where(jnp.sum(rho[self.kinds : 2 * self.kinds]) > 0, self.value, rho)


def caught(config: Any) -> tuple[str, int]:
    """What stops training, and after how many updates."""
    loop = Loop([config], chunk=2)
    try:
        while loop.done < loop.updates:
            loop.chunk()
    except NotFiniteError as stop:
        return str(stop), int(loop.learner.updates)
    pytest.fail("training came to its end")


@pytest.mark.parametrize("value", BAD[: times(2, 1)])
def test_attributes(value: float) -> None:
    text, updates = caught(tiny_config(game=Leaky(kinds=2, maps=MapRules(5, 6), value=value)))
    assert text.startswith("an attribute of the game is not finite in update")
    assert f"in update {updates} " in text
    record(f"attributes that are {value} stop training", 1, 1)


def spoil_value(usual: Callable[..., Any], when: int, value: float) -> Callable[..., Any]:
    """A loss that is bad."""
    return lambda *arguments, **words: usual(*arguments, **words) + value


def spoil_gradient(usual: Callable[..., Any], when: int, value: float) -> Callable[..., Any]:
    """A loss whose value is fine and whose gradient is not."""

    def loss(module: Any, *arguments: Any, **words: Any) -> Any:
        leaf = jax.tree.leaves(module)[0]
        infinite = jnp.sum(jnp.sqrt(jnp.abs(leaf - jax.lax.stop_gradient(leaf))))
        return usual(module, *arguments, **words) + infinite

    return loss


def spoil_one(usual: Callable[..., Any], when: int, value: float) -> Callable[..., Any]:
    """A reward of which one is bad."""
    return lambda *arguments, **words: usual(*arguments, **words).at[0, when].set(value)


SPOILT = [
    ("exploration_reward", spoil_one, np.nan, "a reward"),
    ("exploration_reward", spoil_one, np.inf, "a reward"),
    ("edge_loss", spoil_value, np.nan, "the edge detector's loss"),
    ("policy_loss", spoil_value, -np.inf, "the policy's loss"),
    ("edge_loss", spoil_gradient, np.nan, "detector"),
    ("policy_loss", spoil_gradient, np.nan, "policy"),
]


@pytest.mark.parametrize(("name", "spoil", "value", "culprit"), SPOILT if times(1, 0) else SPOILT[1::4])
def test_rewards_losses_and_gradients(
    monkeypatch: pytest.MonkeyPatch, name: str, spoil: Any, value: float, culprit: str
) -> None:
    home = update if hasattr(update, name) else learner
    monkeypatch.setattr(home, name, spoil(getattr(home, name), 3, value))
    config = tiny_config(lanes=16, rollout=4, hidden=8 + SPOILT.index((name, spoil, value, culprit)) + 1)
    text, updates = caught(config)
    assert culprit in text
    assert updates == 1
    record(f"{spoil.__name__.removeprefix('spoil_')} of {name} that is {value} stops training", 1, 1)


def test_the_last_finite_checkpoint_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = Loop.chunk

    def chunk(self: Loop, hurry: Any = None) -> Any:
        if self.done == 12:
            self.learner = eqx.tree_at(lambda x: x.reward_scale, self.learner, jnp.float32(np.nan))
        return usual(self)

    monkeypatch.setattr(Loop, "chunk", chunk)
    with pytest.raises(NotFiniteError, match=r"learner.reward_scale is not finite in update 13 .*saved at 768 steps"):
        train_tiny(tmp_path / "run")
    run = reopen_run(tmp_path / "run")
    newest, wrong = run.newest(Loop([tiny_config()]).outline())
    run.close()
    assert newest is not None
    assert not wrong
    assert newest.updates == 12
    assert main(["train", "--resume", str(tmp_path / "run")]) == 3
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith("saplan: training stopped: learner.reward_scale is not finite")
    monkeypatch.undo()
    assert main(["train", "--resume", str(tmp_path / "run")]) == 0
    assert UPDATES * 64 == STEPS

"""All numbers of the model and its training, with their meaning."""

import math
from dataclasses import dataclass, replace
from typing import Any

from saplan.errors import InputError
from saplan.games import Game
from saplan.rl.limits import check_limits

LARGEST = 2**24
"""Of all whole numbers: what is larger is a slip of the keyboard."""


MISREADINGS = 0.005
"""The share of all changes below which one is taken for a misreading, where there are such."""


@dataclass(frozen=True)
class Settings:
    """Numbers of the structured attribute model. `settings_for` gives those of a game, or the paper's variant."""

    lanes: int = 256
    """Games played side by side."""
    rollout: int = 32
    """Steps per lane between two updates."""
    hidden: int = 128
    """Hidden units per layer (paper: 128)."""
    learning_rate: float = 3e-3
    """Step size of Adam at the start; it falls to a tenth at the end of training."""
    epochs: int = 2
    """Passes over a rollout."""
    minibatches: int = 32
    """Gradient steps per pass."""

    attempt_steps: int = 40
    """M_max: steps after which an attempt has failed."""
    game_steps: int = 150
    """Age at which a training game ends, once the attempt in progress has ended. Without such a horizon lanes drift
    into emptied maps."""
    restart: float = 0.2
    """Chance that a failed execution attempt ends the game (paper: 1)."""

    discount: float = 0.88
    """Discount per step of the execution policy."""
    trace: float = 0.95
    """λ: how far returns look along the rollout while its actions are the ones the policy would take."""
    temperature: float = 0.07
    """Sharpness of the execution policy, on the scale of its logits."""
    repeat_cost: float = 1.0
    """What an action loses, in logits, for every time this attempt has taken it at the same place (paper: 0)."""
    harm: float = 3.0
    """The share of a game's vital attributes that an action leaves, to this power, is what its consequences are worth:
    a change is made for the sake of those that follow, and the dead make none. In the paper nothing is vital."""
    explore_discount: float = 0.9
    """Discount per step of the exploration policy."""
    explore_temperature: float = 0.05
    """Sharpness of the exploration policy, on the scale of a typical reward."""
    explore_random: float = 0.3
    """Share of uniformly random actions of the exploration policy."""

    alpha_surprise: float = 0.0
    """α_1: weight of -log ED in the exploration reward."""
    alpha_rare: float = 1.0
    """α_2: weight of rarely seen attribute values in the exploration reward."""
    credit_to_game: bool = False
    """Whether exploration is credited with what follows until the end of the game, not only of the attempt."""

    capacity: int = 16
    """Distinct transitions that 𝓑 can hold; more are counted as overflow."""
    cells: int = 2**20
    """Joint cells of attribute values whose visits are counted; many more than there are values in play, so that few
    of them share a cell."""
    threshold: float = 0.1
    """p_0: transitions that the edge detector thinks less likely are not proposed."""
    uniform: float = 0.5
    """s_0: share of proposals drawn uniformly from what p_0 leaves."""
    doubt: float = 0.05
    """Share of proposals drawn from all of 𝓑, so that the edge detector's denials stay tested (paper: 0)."""
    rare: float = 0.0
    """Transitions that make up a smaller share of all changes seen are neither proposed nor planned with. Where ρ is
    read off what is seen, such are misreadings."""
    positives: int = 4096
    """Replay of places where a transition was seen to be feasible, per transition."""
    outcomes: int = 2048
    """Replay of recent execution attempts, per transition."""
    edge_batch: int = 512
    edge_steps: int = 4
    """Gradient steps of the edge detector per update."""
    edge_hidden: int = 64
    """Hidden units of the edge detector."""
    edge_rate: float = 1e-3
    """Step size of Adam for the edge detector."""

    explores: bool = True
    """Whether games have exploring attempts at all."""
    handover: bool = True
    """Whether a game passes from exploring to executing at a random age, so that execution starts wherever exploration
    gets to (paper: a game is played by one policy alone)."""
    interleave: float = 0.0
    """Chance that an attempt executes although the game still explores. Where what is new lies behind a long row of
    changes that are known, execution gets there and exploration goes on from there (paper: 0)."""
    joint: bool = True
    """Whether rarity is judged by combinations of attribute values (paper: by each value alone)."""
    relabel: bool = True
    """Whether every step teaches the execution policy about every transition in 𝓑 (paper: only the attempted one)."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            complaint = _complaint(type(getattr(type(self), name)), value)
            if complaint:
                raise InputError(f"{_option(name)} must be {complaint}, got {value!r}")
        check_limits(self)
        for name in ("restart", "trace", "explore_random", "threshold", "uniform", "doubt", "rare", "interleave"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{_option(name)} must lie in 0..1, got {getattr(self, name)}")
        for name in ("alpha_surprise", "alpha_rare", "repeat_cost", "harm"):
            if getattr(self, name) < 0:
                raise InputError(f"{_option(name)} must not be negative, got {getattr(self, name)}")
        if self.cells % 8:
            raise InputError(f"cells must be a multiple of 8, got {self.cells}")
        if self.lanes % 2 and not self.handover:
            raise InputError(f"without handover half the lanes explore: lanes must be even, got {self.lanes}")
        if self.lanes * self.rollout % self.minibatches:
            raise InputError(f"lanes × rollout = {self.lanes * self.rollout} must be a multiple of minibatches")
        if not (0 < self.discount < 1 and 0 < self.explore_discount < 1):
            raise InputError("discounts must lie between 0 and 1")
        for name in ("temperature", "explore_temperature", "learning_rate", "edge_rate"):
            if getattr(self, name) <= 0:
                raise InputError(f"{_option(name)} must be above 0, got {getattr(self, name)}")


def _option(name: str) -> str:
    return name.replace("_", "-")


def _complaint(kind: type, value: Any) -> str:
    """What a setting of this kind must be, if the value is not."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is bool:
        return "" if isinstance(value, bool) else "true or false"
    if kind is int:
        return "" if number and isinstance(value, int) and 1 <= value <= LARGEST else f"a whole number in 1..{LARGEST}"
    return "" if number and math.isfinite(value) else "a number"


def settings_for(game: Game[Any], faithful: bool = False) -> Settings:
    """The defaults for a game: the rewards of exploration are the paper's; `faithful` also undoes what we do better."""
    settings = Settings(alpha_surprise=game.alphas[0], alpha_rare=game.alphas[1], credit_to_game=game.credit == "game")
    if game.misread:
        settings = replace(settings, rare=MISREADINGS)
    if faithful:
        settings = replace(
            settings, relabel=False, handover=False, joint=False, restart=1.0, doubt=0.0, repeat_cost=0.0
        )
    return settings

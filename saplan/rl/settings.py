"""The numbers of a learner that all methods share, and of those that explore. Each method adds its own."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from saplan.errors import InputError
from saplan.rl.limits import LARGEST_WHOLE, check_limits, option_name

SHARES = (
    "restart",
    "trace",
    "explore_random",
    "threshold",
    "uniform",
    "doubt",
    "rare",
    "double",
    "interleave",
    "rho_dropout",
)
"""Settings that lie in 0..1."""
WEIGHTS = ("alpha_surprise", "alpha_rare", "repeat_cost", "harm", "entropy")
"""Settings that are zero or positive."""
RATES = ("temperature", "explore_temperature", "learning_rate", "edge_rate")
"""Settings that are positive."""
DISCOUNTS = ("discount", "explore_discount")
"""Settings that lie in (0, 1]."""


GRADIENT_SETTINGS: dict[str, Any] = {
    "policy_gradient": True, "relabel": False, "repeat_cost": 0.0, "temperature": 1.0, "learning_rate": 1e-3,
    "epochs": 3, "minibatches": 8,
}  # fmt: skip
"""What policy gradients change in the settings of any method."""


class AttemptSchedule(NamedTuple):
    """Which attempts of a training game explore, and when a failed one ends the game."""

    explores: bool = False
    """Whether games have exploring attempts at all."""
    handover: bool = False
    """Whether a game passes from exploring to executing at a random age; otherwise one policy plays all of it."""
    interleave: float = 0.0
    """Probability that an attempt executes although the game still explores."""
    restart: float = 1.0
    """Probability that a failed execution attempt ends the game."""


@dataclass(frozen=True)
class Settings:
    """Numbers of a rollout, of the policy and of its learner."""

    absent: ClassVar[dict[str, Any]] = {}
    """Settings that older files do not name, and the values by which those agents were trained."""
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
    """Age at which a training game ends, once the current attempt has ended. Without this horizon the lanes drift into
    emptied maps."""

    discount: float = 0.88
    """Discount per step of the execution policy."""
    trace: float = 0.95
    """λ: how far returns look along the rollout while its actions are the ones the policy would take."""
    temperature: float = 0.07
    """Temperature of the execution policy, on the scale of its logits."""
    repeat_cost: float = 1.0
    """Logits that an action loses for every time this attempt has taken it at the same place (paper: 0)."""
    harm: float = 3.0
    """Exponent for losses of vital attributes: an action that keeps the share x of them is worth x to this power,
    because later changes depend on survival. The paper has no vital attributes."""
    relabel: bool = True
    """Whether every step teaches the execution policy about every known subgoal (paper: only the attempted one)."""
    policy_gradient: bool = False
    """Whether policies learn by policy gradients, as in the paper, and not by Q-learning. It implies no `relabel`."""
    entropy: float = 0.03
    """Weight of the policies' entropy in policy gradients."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            default = getattr(type(self), name)
            wanted = _wanted_kind(type(default), value, 0 if default == 0 else 1)
            if wanted:
                raise InputError(f"{option_name(name)} must be {wanted}, got {value!r}")
        check_limits(vars(self))
        self._check_range(SHARES, "lie in 0..1", lambda x: 0 <= x <= 1)
        self._check_range(WEIGHTS, "not be negative", lambda x: x >= 0)
        self._check_range(RATES, "be above 0", lambda x: x > 0)
        self._check_range(DISCOUNTS, "lie in (0, 1]", lambda x: 0 < x <= 1)
        if self.policy_gradient and (self.relabel or self.repeat_cost):
            raise InputError(
                "policy gradients learn from the steps of the policy itself: set no-relabel, repeat-cost 0"
            )
        if self.lanes * self.rollout % self.minibatches:
            raise InputError(f"lanes × rollout = {self.lanes * self.rollout} must be a multiple of minibatches")

    def _check_range(self, names: tuple[str, ...], wanted: str, allowed: Any) -> None:
        for name, value in vars(self).items():
            if name in names and not allowed(value):
                raise InputError(f"{option_name(name)} must {wanted}, got {value}")

    @property
    def schedule(self) -> AttemptSchedule:
        """Every attempt executes, and one failure ends a game."""
        return AttemptSchedule()


@dataclass(frozen=True)
class ExploringSettings(Settings):
    """Numbers of a learner that also has an exploration policy."""

    restart: float = 0.2
    """Probability that a failed execution attempt ends the game (paper: 1)."""
    explore_discount: float = 0.9
    """Discount per step of the exploration policy."""
    explore_temperature: float = 0.05
    """Temperature of the exploration policy, on the scale of a typical reward."""
    explore_random: float = 0.3
    """Share of uniformly random actions of the exploration policy."""
    credit_to_game: bool = False
    """Whether exploration is credited with rewards until the end of the game, not only of the attempt."""
    handover: bool = True
    """Whether a game passes from exploring to executing at a random age, so that execution starts wherever exploration
    gets to (paper: one policy plays a whole game)."""
    interleave: float = 0.0
    """Probability that an attempt executes although the game still explores. Useful where new changes lie behind a long
    sequence of known ones: execution gets there, and exploration continues from there (paper: 0)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lanes % 2 and not self.handover:
            raise InputError(f"without handover half of the lanes explore: lanes must be even, got {self.lanes}")

    @property
    def schedule(self) -> AttemptSchedule:
        """Attempts explore at first, and execute later in a game."""
        return AttemptSchedule(True, self.handover, self.interleave, self.restart)


def paper_settings(credit_to_game: bool) -> dict[str, Any]:
    """What the paper's variant changes in the settings of a method that explores.

    One policy plays a whole game, and one failure ends it. Credit to the end of a game is not discounted.
    """
    return {
        **GRADIENT_SETTINGS, "credit_to_game": credit_to_game, "handover": False, "restart": 1.0, "discount": 0.95,
        "explore_temperature": 1.0, "explore_random": 0.0, "explore_discount": 1.0 if credit_to_game else 0.95,
    }  # fmt: skip


def _wanted_kind(kind: type, value: Any, least: int) -> str:
    """What a setting of this kind must be, or nothing if the value is."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is bool:
        return "" if isinstance(value, bool) else "true or false"
    if kind is int:
        whole = number and isinstance(value, int) and least <= value <= LARGEST_WHOLE
        return "" if whole else f"a whole number in {least}..{LARGEST_WHOLE}"
    return "" if number and math.isfinite(value) else "a number"

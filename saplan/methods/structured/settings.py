"""The numbers of the structured attribute planner."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from saplan.errors import InputError
from saplan.games import Game
from saplan.rl.settings import ExploringSettings, paper_settings

MISREADINGS = 0.005
"""Share of all changes below which a change counts as a misreading, where attributes are read off observations."""


@dataclass(frozen=True)
class StructuredSettings(ExploringSettings):
    """Numbers of exploration, memory 𝓑, proposals and edge detector. `structured_settings` gives those of a game."""

    absent: ClassVar[dict[str, Any]] = {"mask_actions": False}

    alpha_surprise: float = 0.0
    """α_1: weight of -log ED in the exploration reward."""
    alpha_rare: float = 1.0
    """α_2: weight of rarely visited attribute values in the exploration reward."""
    joint: bool = True
    """Whether rarity counts combinations of attribute values (paper: each value alone)."""

    capacity: int = 16
    """Distinct transitions that 𝓑 can hold; further ones are counted as overflow."""
    cells: int = 2**20
    """Joint cells of attribute values whose visits are counted; far more than there are values in play, so that few
    values share a cell."""
    threshold: float = 0.1
    """p_0: transitions that the edge detector thinks less likely are not proposed."""
    uniform: float = 0.5
    """s_0: share of proposals drawn uniformly from the transitions above p_0."""
    doubt: float = 0.05
    """Share of proposals drawn from all of 𝓑, so that the edge detector's denials stay tested (paper: 0)."""
    rare: float = 0.0
    """Transitions below this share of all changes are neither proposed nor planned with. Where attributes are read off
    observations, these are misreadings."""

    double: float = 0.0
    """Transitions that two others make together are left out as well, if they are below this share of either: two
    changes within one step are no change of their own."""

    random_moves: bool = False
    """Whether an action may lead to several changes by chance, as on ice: training counts what each action leads to,
    and plans choose actions by the probability of reaching the goal. `saplan check` says when a world needs it."""
    sees_rho: bool = True
    """Whether the policy sees ρ besides the observation. Without it, what is learnt at one ρ holds at all: useful where
    ρ has many values and the way to a change does not depend on it."""
    mask_actions: bool = True
    """Whether execution never takes an action that, in all of training, led to other changes and to nothing else that
    is seen: it could only spoil the attempt (paper: it may take all of them)."""
    rho_dropout: float = 0.0
    """Share of the examples from which the policy learns to act without the attributes whose values can lie ever
    farther out. Beyond the values of training it then sees none of them, rather than a combination that it never met.
    """

    replay: int = 0
    """Earlier rollouts that the policy learns from in every update, besides the new one. Useful where a step of the
    world costs more than learning from it (paper: 0)."""
    replay_size: int = 32
    """Rollouts that are kept for that; the oldest is dropped first."""

    positives: int = 4096
    """Replay of places where a transition was feasible, per transition."""
    outcomes: int = 2048
    """Replay of recent execution attempts, per transition."""
    edge_batch: int = 512
    """Examples of each kind per gradient step of the edge detector."""
    edge_steps: int = 4
    """Gradient steps of the edge detector per update."""
    edge_hidden: int = 64
    """Hidden units of the edge detector."""
    edge_rate: float = 1e-3
    """Step size of Adam for the edge detector."""
    calibrated: bool = True
    """Whether the edge detector learns a calibrated probability and the steps of a success too (paper: one output)."""
    explored_positives: bool = False
    """Whether only changes that exploration made are examples of feasible ones (paper), not those of execution."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cells % 8:
            raise InputError(f"cells must be a multiple of 8, got {self.cells}")


def structured_settings(game: Game[Any], paper: bool = False) -> StructuredSettings:
    """Defaults for a game, with the paper's exploration rewards; `paper` also undoes our improvements."""
    settings = StructuredSettings(
        alpha_surprise=game.alphas[0], alpha_rare=game.alphas[1], credit_to_game=game.credit == "game"
    )
    if game.misread:
        settings = replace(settings, rare=MISREADINGS)
    if paper:
        ours: dict[str, Any] = {
            "joint": False, "doubt": 0.0, "calibrated": False, "explored_positives": True, "mask_actions": False,
        }  # fmt: skip
        settings = replace(settings, **ours, **paper_settings(settings.credit_to_game))
    return settings

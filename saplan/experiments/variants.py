"""Variants of training: the paper's, a ladder from it to the default, and the default without each of its parts."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

from saplan.methods.ablations import FULL
from saplan.methods.agent import DEFAULT_PLANNER, PAPER_PLANNER, PlannerSettings
from saplan.methods.structured.settings import StructuredSettings
from saplan.rl.settings import GRADIENT_SETTINGS

ONE_OUTPUT = replace(DEFAULT_PLANNER, calibrated=False, time_weight=0.0, patience=math.inf)
"""The default planner for a detector with one output: the steps of an attempt are not known."""


@dataclass(frozen=True)
class Variant:
    """A change of the default training."""

    what: str
    """For people."""
    settings: dict[str, Any] = field(default_factory=dict)
    paper: bool = False
    algebra: str = FULL
    games: tuple[str, ...] | None = None
    """The games that it changes; None: all of them."""
    planner: PlannerSettings | None = None
    """None: the planner that belongs to the training."""


def _defaults(*names: str) -> dict[str, Any]:
    return {name: vars(StructuredSettings())[name] for name in names}


LEARNER = _defaults(
    "policy_gradient", "temperature", "learning_rate", "epochs", "minibatches", "discount", "explore_discount",
    "explore_temperature", "explore_random",
)  # fmt: skip
"""What policy gradients change, changed back."""
HINDSIGHT = {**LEARNER, **_defaults("relabel")}
TRAIL = {**HINDSIGHT, **_defaults("repeat_cost")}
HANDOVER = {**TRAIL, **_defaults("handover", "restart")}
JOINT = {**HANDOVER, **_defaults("joint")}
MASK = {**JOINT, **_defaults("mask_actions")}

PAPER_VARIANTS = {
    "paper": Variant("the paper's variant", paper=True),
    "paper-q": Variant(
        "the paper's variant with Q-learning", {**LEARNER, **_defaults("calibrated", "explored_positives")}, paper=True
    ),
}
LADDER = {
    "add-planner": Variant("the paper's training, our planner", paper=True, planner=ONE_OUTPUT),
    "add-q": Variant("and Q-learning", LEARNER, paper=True, planner=ONE_OUTPUT),
    "add-hindsight": Variant("and hindsight", HINDSIGHT, paper=True, planner=ONE_OUTPUT),
    "add-trail": Variant("and the history against circles", TRAIL, paper=True, planner=ONE_OUTPUT),
    "add-handover": Variant("and games that both policies play", HANDOVER, paper=True, planner=ONE_OUTPUT),
    "add-joint": Variant("and joint counts", JOINT, paper=True, planner=ONE_OUTPUT),
    "add-mask": Variant("and a mask for actions that only spoil an attempt", MASK, paper=True, planner=ONE_OUTPUT),
}
"""From the paper's variant to the default, each with everything above it. Calibrated heads lead to the default."""
REMOVALS = {
    "no-counts": Variant("without visit counts in proposals", {"uniform": 1.0}),
    "no-filter": Variant("without the edge detector's filter p_0", {"threshold": 0.0}),
    "raw": Variant("raw numbers in place of the algebra's features", algebra="raw"),
    "integers": Variant("ℤ/q treated as ℤ, S¹ as ℝ", algebra="integers", games=("switches", "arm", "tiles")),
    "labels": Variant("D_n treated as labels", {"capacity": 64}, algebra="labels", games=("tiles",)),
    "no-hindsight": Variant("without hindsight: a step teaches only about its own subgoal", {"relabel": False}),
    "no-trail": Variant("without the history that keeps attempts from walking in circles", {"repeat_cost": 0.0}),
    "no-joint": Variant("marginal in place of joint counts", {"joint": False}),
    "no-handover": Variant("one policy plays a whole game, one failure ends it", {"handover": False, "restart": 1.0}),
    "no-calibration": Variant("one output of the edge detector", {"calibrated": False}, planner=ONE_OUTPUT),
    "no-execution-positives": Variant("positive examples of exploration alone", {"explored_positives": True}),
    "no-mask": Variant("actions that only spoil an attempt are not masked", {"mask_actions": False}),
    "no-doubt": Variant("no proposals against the edge detector", {"doubt": 0.0}),
    "no-planner": Variant("the paper's planner", planner=PAPER_PLANNER),
    "gradients": Variant(
        "policy gradients, thus without hindsight and history",
        {**GRADIENT_SETTINGS, "discount": 0.95, "explore_temperature": 1.0, "explore_random": 0.0},
        planner=DEFAULT_PLANNER,
    ),
}
VARIANTS = {"default": Variant("the default"), **PAPER_VARIANTS, **LADDER, **REMOVALS}
ABLATIONS = [name for name in VARIANTS if name != "default"]
GROUPS = {"ablations": ABLATIONS, "ladder": ["paper", *LADDER, "default"], "removals": ["default", *REMOVALS]}
"""Names that stand for several variants."""

"""Upper limits of settings. A larger number is a typing error, and would take all memory or all day."""

from collections.abc import Mapping
from typing import Any

from saplan.errors import InputError

LARGEST_WHOLE = 2**24
"""Limit of every whole number without a limit of its own."""
MOST = {
    "lanes": 2**18, "rollout": 2**14, "hidden": 2**14, "epochs": 2**10, "minibatches": 2**16, "attempt_steps": 2**16,
    "game_steps": 2**24, "capacity": 2**14, "positives": 2**20, "outcomes": 2**20, "edge_batch": 2**20,
    "edge_steps": 2**14, "edge_hidden": 2**14, "cells": 2**24,
}  # fmt: skip
MOST_TOGETHER = {
    ("lanes", "rollout"): 2**22,
    ("lanes", "attempt_steps"): 2**27,
    ("epochs", "minibatches"): 2**20,
    ("edge_steps", "edge_batch"): 2**26,
}
"""Limits of products: steps of a rollout, entries of all histories, gradient steps, examples of the edge detector."""
LARGEST, SMALLEST = 1e9, 1e-9
"""Limits of the magnitude of other numbers, zero apart: float32 must hold their squares."""


def check_limits(settings: Mapping[str, Any]) -> None:
    """`InputError` if a setting, by its name, is beyond its limit."""
    for name, value in settings.items():
        if name in MOST and value > MOST[name]:
            raise InputError(f"{option_name(name)} must be at most {MOST[name]}, got {value}")
        if isinstance(value, float) and value and not SMALLEST <= abs(value) <= LARGEST:
            raise InputError(f"{option_name(name)} must be 0, or from {SMALLEST:g} to {LARGEST:g} in size, got {value}")
    for (one, other), most in MOST_TOGETHER.items():
        product = settings.get(one, 0) * settings.get(other, 0)
        if product > most:
            raise InputError(f"{option_name(one)} × {option_name(other)} must be at most {most}, got {product}")


def option_name(name: str) -> str:
    """A setting as the command line writes it."""
    return name.replace("_", "-")

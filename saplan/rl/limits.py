"""Upper limits of settings: what lies beyond is a slip of the keyboard, and would take all memory or all day."""

from typing import Any

from saplan.errors import InputError

MOST = {
    "lanes": 2**18, "rollout": 2**14, "hidden": 2**14, "epochs": 2**10, "minibatches": 2**16, "attempt_steps": 2**16,
    "game_steps": 2**24, "capacity": 2**14, "positives": 2**20, "outcomes": 2**20, "edge_batch": 2**20,
    "edge_steps": 2**14, "edge_hidden": 2**14, "cells": 2**24,
}  # fmt: skip
TOGETHER = {
    ("lanes", "rollout"): 2**22,
    ("lanes", "attempt_steps"): 2**27,
    ("epochs", "minibatches"): 2**20,
    ("edge_steps", "edge_batch"): 2**26,
}
"""Limits of products: steps of a rollout, marks of all trails, gradient steps, examples of the edge detector."""
LARGEST, SMALLEST = 1e9, 1e-9
"""Of other numbers, zero apart: float32 has to reckon with their squares."""


def check_limits(settings: Any) -> None:
    """`InputError` if a number of the settings is beyond all sense."""
    numbers = vars(settings)
    for name, most in MOST.items():
        if numbers[name] > most:
            raise InputError(f"{_option(name)} must be at most {most}, got {numbers[name]}")
    for (one, other), most in TOGETHER.items():
        product = numbers[one] * numbers[other]
        if product > most:
            raise InputError(f"{_option(one)} × {_option(other)} must be at most {most}, got {product}")
    for name, value in numbers.items():
        if isinstance(value, float) and value and not SMALLEST <= abs(value) <= LARGEST:
            raise InputError(f"{_option(name)} must be 0, or from {SMALLEST:g} to {LARGEST:g} in size, got {value}")


def _option(name: str) -> str:
    return name.replace("_", "-")

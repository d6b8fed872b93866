"""The rules of a game as plain data: each must be of the kind that the default is."""

import dataclasses
from typing import Any

from saplan.errors import InputError, unknown_name
from saplan.runs.plain import is_number, is_whole

LARGEST = 1000
"""Of whole numbers: maps and objects are counted in tens."""
LARGEST_AMOUNT = 1e6


def check_rules(usual: Any, rules: Any) -> None:
    """`InputError` unless these rules are of the same kinds as the `usual` ones, by their names."""
    if not isinstance(rules, dict):
        raise InputError("the rules must be an object")
    known = {field.name: getattr(usual, field.name) for field in dataclasses.fields(usual)}
    for name, value in rules.items():
        if name not in known:
            raise unknown_name("rule", name, known)
        if dataclasses.is_dataclass(known[name]):
            check_rules(known[name], value)
        elif not _alike(known[name], value):
            raise InputError(f"the rule {name} must be {_kind(known[name])}")


def _alike(usual: Any, value: Any) -> bool:
    if isinstance(usual, tuple):
        return isinstance(value, list | tuple) and len(value) <= LARGEST and all(_alike(usual[0], one) for one in value)
    if isinstance(usual, bool | str):
        return type(value) is type(usual)
    if isinstance(usual, float):
        return is_number(value, -LARGEST_AMOUNT, LARGEST_AMOUNT)
    return is_whole(value, 0, LARGEST)


def _kind(usual: Any) -> str:
    if isinstance(usual, tuple):
        return f"a list, each {_kind(usual[0])}"
    if isinstance(usual, bool | str):
        return "true or false" if isinstance(usual, bool) else "a text"
    return "a number" if isinstance(usual, float) else f"a whole number in 0..{LARGEST}"

"""The rules of a game: as a card for people, as data, and checked when they come from a file."""

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from saplan.algebra import Product
from saplan.errors import InputError, unknown_name
from saplan.games.game import Game, State
from saplan.storage.json_data import is_number, is_whole

LARGEST = 1000
"""Largest whole number in rules; maps and objects are counted in tens."""
LARGEST_AMOUNT = 1e6
"""Largest other number in rules."""


def check_rules(usual: Any, rules: object) -> None:
    """Raises `InputError` unless every rule has a known name and the type of its `usual` value."""
    if not isinstance(rules, dict):
        raise InputError("the rules must be a JSON object")
    known = {field.name: getattr(usual, field.name) for field in dataclasses.fields(usual)}
    for name, value in rules.items():
        if name not in known:
            raise unknown_name("rule", name, known)
        if dataclasses.is_dataclass(known[name]):
            check_rules(known[name], value)
        elif not _alike(known[name], value):
            raise InputError(f"the rule {name} must be {_kind(known[name])}")


def _alike(usual: object, value: object) -> bool:
    if isinstance(usual, tuple):
        one_of = usual[0] if usual else 0.0
        return isinstance(value, list | tuple) and len(value) <= LARGEST and all(_alike(one_of, one) for one in value)
    if isinstance(usual, bool | str):
        return type(value) is type(usual)
    if isinstance(usual, float):
        return is_number(value, -LARGEST_AMOUNT, LARGEST_AMOUNT)
    return is_whole(value, 0, LARGEST)


def with_rules(game: Game[State], texts: Sequence[str]) -> Game[State]:
    """The game with some rules changed, each written as `name=value`, such as `most=8` or `maps.largest=20`."""
    changes: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise InputError(f"{text!r}: write rules as name=value, such as most=8 or maps.largest=20")
        changes[name] = value
    changed: Game[State] = _changed(game, changes)
    return changed


def _changed(rules: Any, changes: dict[str, str]) -> Any:
    """Rules with all changes at once: one alone might not make a game."""
    known = {field.name: getattr(rules, field.name) for field in dataclasses.fields(rules)}
    values, inner = {}, dict[str, dict[str, str]]()
    for name, text in changes.items():
        first, _, rest = name.partition(".")
        if first not in known:
            raise unknown_name("rule", first, known)
        if dataclasses.is_dataclass(known[first]) != bool(rest):
            raise InputError(f"the rule {name} is not written like most=8 or maps.largest=20")
        if rest:
            inner.setdefault(first, {})[rest] = text
            continue
        values[first] = _parsed(known[first], text)
        if not _alike(known[first], values[first]):
            raise InputError(f"the rule {name} must be {_kind(known[first])}, got {text!r}")
    values |= {name: _changed(known[name], parts) for name, parts in inner.items()}
    return dataclasses.replace(rules, **values)


def _parsed(usual: object, text: str) -> object:
    """The value of a text, if it has the type of the usual value; else the text itself."""
    if isinstance(usual, tuple):
        rows = bool(usual) and isinstance(usual[0], tuple)
        return tuple(_parsed(usual[0] if usual else 0.0, part) for part in text.split("/" if rows else ",") if part)
    try:
        return type(usual)(text) if isinstance(usual, int | float) else text
    except ValueError:
        return text


def _kind(usual: object) -> str:
    if isinstance(usual, tuple):
        return f"a list, each {_kind(usual[0] if usual else 0.0)}"
    if isinstance(usual, bool | str):
        return "true or false" if isinstance(usual, bool) else "a text"
    return "a number" if isinstance(usual, float) else f"a whole number in 0..{LARGEST}"


def rule_card(game: Game[State], heading: Callable[[str], str] = str) -> str:
    """Rule card as text: the rules in words, then attributes, actions and admissible transitions."""
    space = game.space
    attributes = [f"{name} ∈ {block.symbol}" for name, block in zip(space.names, space.blocks, strict=True)]
    transitions = game.admissible()
    widest = max(len(name) for name, _ in transitions)
    lines = [f"{name:<{widest}}  {space.format_delta(jnp.array(delta))}" for name, delta in transitions]
    sections = [
        heading(game.name.upper()),
        _rules(game),
        heading("Attributes") + "\n  " + "  ".join(attributes),
        heading("Actions") + "\n  " + "  ".join(_quoted(action) for action in game.actions),
        heading("Admissible transitions δρ") + "".join(f"\n  {line}" for line in lines),
    ]
    return "\n\n".join(sections)


def name_of(game: Game[Any], delta: Float[np.ndarray, "K"]) -> str:
    """Name of a change by the rules of the game, such as `pick up red`, or the change as text if it has none."""
    slack = np.array([block.tolerance for block in game.space.blocks])
    for words, known in game.admissible():
        if np.all(np.abs(np.asarray(known) - delta) <= slack + 1e-6):
            return words
    return game.space.format_delta(delta)


def changed_text(space: Product, before: Sequence[float], after: Sequence[float]) -> str:
    """The attributes whose values differ, with their new values: `map_red=2 red=1`."""
    rows = zip(space.names, space.blocks, before, after, strict=True)
    return " ".join(f"{name}={block.format(float(new))}" for name, block, old, new in rows if new != old)


def rule_data(game: Game[State]) -> dict[str, Any]:
    """Rule card as data, for `--json`."""
    space = game.space
    return {
        "name": game.name,
        "rules": _rules(game),
        "attributes": [{"name": n, "algebra": b.symbol} for n, b in zip(space.names, space.blocks, strict=True)],
        "actions": list(game.actions),
        "transitions": [{"name": name, "delta": _changes(game, delta)} for name, delta in game.admissible()],
    }


def _rules(game: Game[State]) -> str:
    """The rules in words: the docstring of the game."""
    return inspect.getdoc(type(game)) or ""


def _changes(game: Game[State], delta: tuple[float, ...]) -> dict[str, float]:
    parts = zip(game.space.names, game.space.blocks, delta, strict=True)
    return {name: x for name, block, x in parts if x != block.identity}


def _quoted(action: str) -> str:
    return f"'{action}'" if " " in action else action

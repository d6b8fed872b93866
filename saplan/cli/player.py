"""A person in the agent's place."""

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np

from saplan.cli.terminal import from_pipe, full_screen, keys, raw_keyboard
from saplan.envs.goal_env import GoalEnv, rho_text
from saplan.errors import InputError
from saplan.games import Game
from saplan.goals import format_goal
from saplan.render.ansi import strong, tint, write
from saplan.render.palette import TERMINAL

MOVES = {"up": "w", "left": "a", "down": "s", "right": "d", "interact": " "}
NEW, QUIT = "n", "q"


class Player:
    """One person's game: it takes keys and gives frames."""

    def __init__(self, game: Game[Any], seed: int, goal: str | None) -> None:
        self.env = GoalEnv(game, goal=goal)
        self.actions = action_keys(game.actions)
        self.start(seed)

    def start(self, seed: int | None = None) -> None:
        """A fresh map; without a seed, the one that follows."""
        _, self.info = self.env.reset(seed=seed)
        self.before, self.steps = self.info["attributes"], 0

    def press(self, key: str) -> None:
        """Does what a key says; `InputError` if it says nothing."""
        if key == NEW:
            self.start()
        elif key in self.actions:
            self.before = self.info["attributes"]
            *_, self.info = self.env.step(self.actions[key])
            self.steps += 1
        else:
            raise InputError(f"no action has the key {key!r}: {self.help()}")

    def frame(self, colour: bool) -> str:
        """All there is to see, as lines of text."""
        change = self.env.space.difference(jnp.asarray(self.info["attributes"]), jnp.asarray(self.before))
        lines = [
            f"{strong(self.env.game.name, colour)} · step {self.steps}",
            write(self.env.scene(), colour),
            "",
            f"ρ      {self._attributes(colour)}",
            f"δρ     {strong(self.env.space.format_delta(change), colour)}",
            f"goal   {self._progress(colour)}",
        ]
        return "\n".join(lines)

    def screen(self, colour: bool) -> str:
        """A frame, and the keys that may follow."""
        return f"{self.frame(colour)}\n\n{self.help()}\n"

    def help(self) -> str:
        """What the keys mean."""
        names = self.env.game.actions
        others = [f"{key} {names[number]}" for key, number in self.actions.items() if names[number] not in MOVES]
        return " · ".join(["arrows or w a s d", "space interact", *others, "n new map", "q quit"])

    def _attributes(self, colour: bool) -> str:
        """ρ; what has just changed stands out."""
        after = self.info["rho"].split()
        former = rho_text(self.env.space, self.before).split()
        return " ".join(
            now if now == then else tint(f"[{now}]", TERMINAL["yellow"], colour, bold=True)
            for now, then in zip(after, former, strict=True)
        )

    def _progress(self, colour: bool) -> str:
        """The goal's conditions, those that hold ticked."""
        words = [
            tint(f"✓ {text}", TERMINAL["green"], colour) if met else f"· {text}"
            for text, met in conditions(self.env, self.info["attributes"])
        ]
        reached = strong(f"   reached in {self.steps} steps!", colour) if self.info["is_success"] else ""
        over = "   (the game is over: nothing can change any more)" if self.info["is_over"] and not reached else ""
        return "   ".join(words) + reached + over


def action_keys(actions: Iterable[str]) -> dict[str, int]:
    """The key of every action: letters for moves, digits for the others."""
    digits = iter("123456789")
    named = {name: MOVES.get(name) or next(digits, "") for name in actions}
    return {key: number for number, key in enumerate(named.values()) if key}


def conditions(env: GoalEnv, rho: np.ndarray) -> list[tuple[str, bool]]:
    """Every attribute that the goal asks for: the condition in words, and whether it holds."""
    met = (np.asarray(env.goal.low) <= rho) & (rho <= np.asarray(env.goal.high))
    written = format_goal(env.space, env.goal).split()
    named = [(words, re.match(r"([\w-]+)[<>=]", words)) for words in written]
    return [(words, bool(met[env.space.index(name[1])])) for words, name in named if name]


def play_by_keyboard(player: Player, colour: bool) -> None:
    """Plays in the terminal until q."""
    with raw_keyboard() as read, full_screen() as draw:
        draw(player.screen(colour))
        for key in keys(read):
            if key == QUIT:
                return
            if key == NEW or key in player.actions:
                player.press(key)
                draw(player.screen(colour))


def play_keys(player: Player, colour: bool, pressed: Iterable[str] | None = None) -> None:
    """Plays the given keys, by default those that are piped in, and prints every frame."""
    out: Callable[[str], object] = sys.stdout.write
    out(player.frame(colour) + "\n")
    for key in keys(from_pipe) if pressed is None else pressed:
        if key == QUIT:
            return
        if key in "\r\n":
            continue
        player.press(key)
        out("\n" + player.frame(colour) + "\n")
        sys.stdout.flush()


def random_keys(player: Player, count: int, seed: int) -> list[str]:
    """So many actions, each as likely as any other."""
    choices = list(player.actions)
    return [choices[k] for k in np.random.default_rng(seed).integers(len(choices), size=count)]

"""A person plays a game in a terminal."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from saplan.cli.terminal import from_pipe, full_screen, keys, raw_keyboard
from saplan.envs.goal_env import GoalEnv, rho_text
from saplan.errors import InputError
from saplan.games import Game
from saplan.goals import Goal, format_goal, meets
from saplan.planning.certificate import why_not
from saplan.render.ansi import legend, scene_text, strong, tint
from saplan.render.palette import TERMINAL
from saplan.render.start import start

MOVES = {"up": "w", "left": "a", "down": "s", "right": "d", "interact": " "}
NEW, QUIT = "n", "q"


class Player:
    """One person's game: takes keys, returns frames of text."""

    def __init__(self, game: Game[Any], seed: int, goal: str | None) -> None:
        self.env, self.seed = GoalEnv(game, goal=goal), seed
        self.actions = action_keys(game.actions)
        self.start()

    def start(self) -> None:
        """Draws the map of the seed, which is the one that `saplan plan` and `saplan watch` show for it."""
        begin = start(self.env.game, self.seed)
        goal = self.env.default_goal or possible_goal(self.env.game, np.array(begin.rho, np.float32), self.seed)
        _, self.info = self.env.reset(seed=self.seed, options={"state": begin.state, "goal": goal})
        self.before, self.steps, self.note = self.info["attributes"], 0, ""

    def press(self, key: str) -> None:
        """Carries out the action of a key; `InputError` if the key has none."""
        if key == NEW:
            self.seed += 1
            self.start()
        elif key in self.actions:
            self.before, scene = self.info["attributes"], self.env.scene()
            *_, self.info = self.env.step(self.actions[key])
            self.steps += 1
            name = self.env.game.actions[self.actions[key]]
            self.note = self._no_effect(name) if self.env.scene() == scene else ""
        else:
            raise InputError(f"no action has the key {key!r}: {self.help()}")

    def frame(self, colour: bool) -> str:
        """The map, ρ, its last change and the goal, as lines of text."""
        change = self.env.space.difference(jnp.asarray(self.info["attributes"]), jnp.asarray(self.before))
        lines = [
            f"{strong(self.env.game.name, colour)} · step {self.steps} · map {self.seed}",
            scene_text(self.env.scene(), colour),
            legend(self.env.scene()),
            self.note,
            f"ρ      {self._attributes(colour)}",
            f"δρ     {strong(self.env.space.format_delta(change), colour)}",
            f"goal   {self._progress(colour)}",
        ]
        return "\n".join(lines)

    def screen(self, colour: bool) -> str:
        """A frame with the list of keys below it."""
        return f"{self.frame(colour)}\n\n{self.help()}\n"

    def _no_effect(self, action: str) -> str:
        """Why an action changed nothing, as far as one can say."""
        if self.info["is_over"]:
            return f"{action}: no effect, the game is over"
        blocked = action in ("up", "down", "left", "right")
        reason = "a wall or the edge is in the way" if blocked else "nothing here that this can change now"
        return f"{action}: no effect, {reason}"

    def help(self) -> str:
        """The keys and their actions, in one line."""
        names = self.env.game.actions
        others = [f"{key} {names[number]}" for key, number in self.actions.items() if names[number] not in MOVES]
        return " · ".join(["arrows or w a s d", "space interact", *others, "n new map", "q quit"])

    def _attributes(self, colour: bool) -> str:
        """ρ as text, with the values that have just changed highlighted."""
        after = self.info["rho"].split()
        former = rho_text(self.env.space, self.before).split()
        return " ".join(
            now if now == then else tint(f"[{now}]", TERMINAL["yellow"], colour, bold=True)
            for now, then in zip(after, former, strict=True)
        )

    def _progress(self, colour: bool) -> str:
        """The goal's conditions, with a tick at those that hold."""
        words = [
            tint(f"✓ {text}", TERMINAL["green"], colour) if met else f"· {text}"
            for text, met in conditions(self.env, self.info["attributes"])
        ]
        reached = strong(f"   reached in {self.steps} steps!", colour) if self.info["is_success"] else ""
        over = "   (the game is over: no transition is left)" if self.info["is_over"] and not reached else ""
        return "   ".join(words) + reached + over


def action_keys(actions: Iterable[str]) -> dict[str, int]:
    """Number of the action for every key: letters for moves, digits for the others."""
    digits = iter("123456789")
    named = {name: MOVES.get(name) or next(digits, "") for name in actions}
    return {key: number for number, key in enumerate(named.values()) if key}


def possible_goal(game: Game[Any], rho: Float[np.ndarray, "K"], seed: int) -> Goal:
    """A goal of the game's tasks that arithmetic does not rule out on the map that has this ρ."""
    draw = jax.jit(lambda key: game.tasks(key)[1])
    goals: Iterator[Goal] = (jax.tree.map(np.asarray, draw(k)) for k in jax.random.split(jax.random.key(seed), 100))
    return next(
        goal for k, goal in enumerate(goals) if k == 99 or (_asks(goal, rho) and why_not(game, rho, goal) is None)
    )


def _asks(goal: Goal, rho: Float[np.ndarray, "K"]) -> bool:
    """Whether a goal does not hold already."""
    return not bool(np.all(meets(np.asarray(goal.low), np.asarray(goal.high), rho)))


def conditions(env: GoalEnv, rho: Float[np.ndarray, "K"]) -> list[tuple[str, bool]]:
    """Every condition of the goal as text, and whether it holds."""
    met = np.asarray(meets(np.asarray(env.goal.low), np.asarray(env.goal.high), rho))
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
    """Plays the given keys, by default those from standard input, and prints every frame."""
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
    """`count` keys drawn uniformly from those of actions."""
    choices = list(player.actions)
    return [choices[k] for k in np.random.default_rng(seed).integers(len(choices), size=count)]

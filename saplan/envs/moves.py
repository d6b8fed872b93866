"""Continuous actions as a few discrete moves, and MuJoCo states as plain numbers: what robots need to become worlds."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float


class DiscreteMoves(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment with continuous actions that takes one of a few of them."""

    def __init__(self, env: gymnasium.Env[Any, Any], moves: Sequence[Sequence[float]]) -> None:
        """`moves` holds one action of the environment per discrete action."""
        super().__init__(env)
        self.moves = np.array(moves, np.float32)
        self.action_space = gymnasium.spaces.Discrete(len(self.moves))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        return self.env.step(self.moves[int(action)])


class MujocoStates(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment on MuJoCo whose state can be saved and set: it is `Restorable`.

    The state is all that MuJoCo integrates, the clock of a time limit, and the `fields` of the unwrapped environment,
    which are numbers or arrays of them. `refresh` brings the rest of that environment in line with a new state.

    `once` names methods of the unwrapped environment, without arguments, that only read the state. They are computed
    once per state: some environments call them several times in every step.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        fields: Sequence[str] = (),
        refresh: Callable[[Any], None] | None = None,
        once: Sequence[str] = (),
    ) -> None:
        """The environment must have `model` and `data` of MuJoCo after its first reset."""
        super().__init__(env)
        self.fields, self.refresh = tuple(fields), refresh
        for name in once:
            setattr(self.unwrapped, name, self._computed_once(getattr(self.unwrapped, name)))
        self.timers = [layer for layer in layers(env) if hasattr(layer, "_elapsed_steps")]

    def _computed_once(self, compute: Callable[[], Any]) -> Callable[[], Any]:
        """A method that remembers its last result while time, positions, velocities, places and fields stay the same.

        Every caller gets a copy: environments add to such results.
        """
        inner: Any = self.unwrapped
        last: tuple[tuple[bytes, ...], Any] = (), None

        def once() -> Any:
            nonlocal last
            data = inner.data
            own = [getattr(inner, name) for name in self.fields]
            numbers = data.time, data.qpos, data.qvel, data.xpos, data.site_xpos, *own
            here = tuple(np.asarray(part).tobytes() for part in numbers)
            if here != last[0]:
                last = here, compute()
            return copy(last[1])

        return once

    def get_state(self) -> Float[np.ndarray, "S"]:
        """The state as numbers."""
        import mujoco

        inner: Any = self.unwrapped
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        physics = np.empty(mujoco.mj_stateSize(inner.model, kind))
        mujoco.mj_getState(inner.model, inner.data, physics, kind)
        own = [np.asarray(getattr(inner, name), float).reshape(-1) for name in self.fields]
        clocks = [float(getattr(timer, "_elapsed_steps", 0) or 0) for timer in self.timers]
        return np.concatenate([physics, *own, clocks])

    def set_state(self, state: Float[np.ndarray, "S"]) -> None:
        """Continue from a state that `get_state` returned."""
        import mujoco

        inner: Any = self.unwrapped
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        size = mujoco.mj_stateSize(inner.model, kind)
        rest = state[size:]
        for name in self.fields:
            old = np.asarray(getattr(inner, name))
            new, rest = rest[: old.size].reshape(old.shape).astype(old.dtype), rest[old.size :]
            setattr(inner, name, new if old.shape else new.item())
        for timer, clock in zip(self.timers, rest, strict=True):
            timer._elapsed_steps = int(clock)
        mujoco.mj_setState(inner.model, inner.data, np.ascontiguousarray(state[:size]), kind)
        (self.refresh or forward)(inner)
        # Computing what follows from the state also moves the solver's first guess, which is part of the state.
        mujoco.mj_setState(inner.model, inner.data, np.ascontiguousarray(state[:size]), kind)


def forward(inner: Any) -> None:
    """Computes everything that follows from MuJoCo's state."""
    import mujoco

    mujoco.mj_forward(inner.model, inner.data)


def layers(env: gymnasium.Env[Any, Any]) -> list[gymnasium.Env[Any, Any]]:
    """An environment and everything that it wraps."""
    found = [env]
    while isinstance(found[-1], gymnasium.Wrapper):
        found.append(found[-1].env)
    return found

"""Vectorised rollouts: every lane plays one game after another, and each game is a sequence of attempts.

An attempt starts at some ρ, lasts at most M_max steps, and ends with the first change of ρ or by the clock. The next
attempt starts where the last one ended. An exploring attempt may end with any change; an executing one must reach its
subgoal. Methods whose subgoals are not changes bring their own `Judge`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int32, PRNGKeyArray, Shaped

from saplan.algebra import Delta, Product
from saplan.games.game import Game, State
from saplan.rl.repeated_actions import History, empty_history, extend
from saplan.rl.settings import Settings


class RolloutState(eqx.Module, Generic[State]):
    """Where every lane stands."""

    state: State
    rho: Float[Array, "lanes K"]
    explores: Bool[Array, "lanes"]
    """Whether the current attempt explores."""
    subgoal: Float[Array, "lanes W"]
    """What an executing attempt must reach: a change of ρ, or whatever the method proposes."""
    choice: Int32[Array, "lanes"]
    """Which of the method's candidates the subgoal is."""
    clock: Int[Array, "lanes"]
    """Steps since the attempt began."""
    age: Int[Array, "lanes"]
    """Steps since the game began."""
    handover: Int[Array, "lanes"]
    """Age from which all attempts of the game execute; earlier ones explore, unless interleaved."""
    history: History
    """Actions of the current attempt."""


class Trajectory(eqx.Module):
    """The steps of a rollout, with any leading axes: (time, lanes), or both flattened into one."""

    observation: Shaped[Array, "... slots"]
    rho: Float[Array, "... K"]
    explores: Bool[Array, "..."]
    subgoal: Float[Array, "... W"]
    choice: Int32[Array, "..."]
    action: Int[Array, "..."]
    delta: Float[Array, "... K"]
    """The change that this step made."""
    after: Float[Array, "... K"]
    """ρ after the step, before any new map."""
    changed: Bool[Array, "..."]
    success: Bool[Array, "..."]
    """The attempt reached its subgoal (never when exploring)."""
    failure: Bool[Array, "..."]
    """The attempt ended without a success, or without a change when exploring."""
    clock: Int[Array, "..."]
    """Steps of the attempt so far, this one included."""
    game_over: Bool[Array, "..."]
    """A new map follows."""
    lost: Bool[Array, "..."]
    """No further change is possible, as after a death."""

    @property
    def tried(self) -> Bool[Array, "..."]:
        """Steps that ended an execution attempt."""
        return (self.success | self.failure) & ~self.explores

    @property
    def usable(self) -> Bool[Array, "..."]:
        """Steps with a known consequence: the cut at the end of a game hides it, a death does not."""
        return self.changed | ~self.game_over | self.lost


class Proposal(NamedTuple):
    """A subgoal for every lane."""

    subgoal: Float[Array, "lanes W"]
    choice: Int32[Array, "lanes"]
    """Which of the method's candidates it is."""


class StepOutcome(NamedTuple):
    """What a step means for its attempt."""

    hit: Bool[Array, "lanes"]
    """The subgoal is reached."""
    ends: Bool[Array, "lanes"]
    """The attempt is over, hit or not."""
    ends_game: Bool[Array, "lanes"] | bool = False
    """The game is over too."""


class Change(NamedTuple):
    """A step as seen in attributes."""

    after: Float[Array, "lanes K"]
    delta: Float[Array, "lanes K"]
    changed: Bool[Array, "lanes"]


Act = Callable[
    [Float[Array, "lanes actions"], Shaped[Array, "lanes slots"], Shaped[Array, "lanes signs"], RolloutState[State]],
    tuple[Int[Array, "lanes"], Float[Array, "lanes features"]],
]
"""(noise, observations, places, lanes) → an action per lane, and what was computed of the state for it.

The noise follows Gumbel's law: an action is drawn by adding it to logits. A place identifies where the agent has been
before.
"""
Propose = Callable[[PRNGKeyArray, Float[Array, "lanes K"], Bool[Array, "lanes"]], Proposal]
"""(key, ρ, where it is wanted) → a subgoal for every lane, used where the next attempt executes."""
Judge = Callable[[Change, Float[Array, "lanes W"]], StepOutcome]
"""(step in attributes, subgoal) → what that means for the attempt."""


@dataclass(frozen=True)
class Behaviour(Generic[State]):
    """How a method plays: its policy, its proposals, its verdict on a step, and a fresh map per lane."""

    act: Act[State]
    propose: Propose
    judge: Judge
    fresh: State
    """Maps of games to come. They are drawn once per rollout: under `vmap` a reset inside the step would be paid in
    every step. A lane whose games end twice within one rollout plays its fresh map twice."""
    fresh_rho: Float[Array, "lanes K"]


def by_first_change(space: Product) -> Judge:
    """The paper's attempt: any change ends it, and the proposed one is a hit."""

    def judge(step: Change, subgoal: Delta) -> StepOutcome:
        return StepOutcome(step.changed & space.same_change(step.delta, subgoal), step.changed)

    return judge


def fresh_maps(game: Game[State], key: PRNGKeyArray, lanes: int) -> State:
    """One new map per lane."""
    return jax.vmap(game.reset)(jax.random.split(key, lanes))


def draw_handover(settings: Settings, key: PRNGKeyArray) -> Int[Array, "lanes"]:
    """The age at which each lane's next game passes from exploring to executing."""
    lanes, schedule = settings.lanes, settings.schedule
    if not schedule.explores:
        return jnp.zeros(lanes, jnp.int32)
    if schedule.handover:
        return jax.random.randint(key, (lanes,), 0, settings.game_steps)
    # The paper's way: one policy plays a whole game.
    return jnp.where(jnp.arange(lanes) < lanes // 2, settings.game_steps, 0)


def begin_rollout(game: Game[State], settings: Settings, key: PRNGKeyArray, subgoal_size: int) -> RolloutState[State]:
    """Every lane at the start of a game, exploring where the method explores: it has no subgoals yet."""
    map_key, handover_key = jax.random.split(key)
    state, lanes = fresh_maps(game, map_key, settings.lanes), settings.lanes
    zero = jnp.zeros(lanes, jnp.int32)
    return RolloutState(
        state=state,
        rho=jax.vmap(game.attributes)(state),
        explores=jnp.full(lanes, settings.schedule.explores),
        subgoal=jnp.zeros((lanes, subgoal_size)),
        choice=zero,
        clock=zero,
        age=zero,
        handover=draw_handover(settings, handover_key),
        history=empty_history(lanes, settings.attempt_steps),
    )


class StepDraws(NamedTuple):
    """What chance decides in one step of every lane. A whole rollout's are drawn at once, outside of its loop."""

    noise: Float[Array, "lanes actions"]
    """Gumbel noise of the actions."""
    step_keys: PRNGKeyArray
    restart: Float[Array, "lanes"]
    subgoal_key: PRNGKeyArray
    handover: Int[Array, "lanes"]
    interleave: Float[Array, "lanes"]


def draw_step(game: Game[State], settings: Settings, key: PRNGKeyArray) -> StepDraws:
    """What chance decides in one step."""
    act_key, step_key, restart_key, subgoal_key, handover_key = jax.random.split(key, 5)
    lanes = settings.lanes
    return StepDraws(
        noise=jax.random.gumbel(act_key, (lanes, len(game.actions))),
        step_keys=jax.random.split(step_key, lanes),
        restart=jax.random.uniform(restart_key, (lanes,)),
        subgoal_key=subgoal_key,
        handover=draw_handover(settings, handover_key),
        interleave=jax.random.uniform(jax.random.fold_in(handover_key, 1), (lanes,)),
    )


def roll_out(
    game: Game[State], settings: Settings, key: PRNGKeyArray, lanes: RolloutState[State], behaviour: Behaviour[State]
) -> tuple[RolloutState[State], Trajectory, Float[Array, "time lanes features"]]:
    """`settings.rollout` steps of every lane; the last result is what `act` computed of every state."""
    draws = jax.vmap(lambda key: draw_step(game, settings, key))(jax.random.split(key, settings.rollout))

    def one(lanes: RolloutState[State], draws: StepDraws) -> tuple[RolloutState[State], tuple[Trajectory, Array]]:
        following, recorded, features = advance_lanes(game, settings, draws, lanes, behaviour)
        return following, (recorded, features)

    lanes, (trajectory, features) = jax.lax.scan(one, lanes, draws)
    return lanes, trajectory, features


def advance_lanes(
    game: Game[State], settings: Settings, draws: StepDraws, lanes: RolloutState[State], behaviour: Behaviour[State]
) -> tuple[RolloutState[State], Trajectory, Float[Array, "lanes features"]]:
    """One step of every lane. A lane whose game ends continues with its fresh map."""
    observation = jax.vmap(game.observe)(lanes.state)
    place = jax.vmap(game.place)(lanes.state)
    action, features = behaviour.act(draws.noise, observation, place, lanes)
    state = jax.vmap(game.step)(draws.step_keys, lanes.state, action)
    step = _change(game, lanes.rho, state)
    recorded, ended = _record(game, settings, draws.restart, lanes, observation, action, state, step, behaviour.judge)

    over = recorded.game_over
    state = select_lanes(over, behaviour.fresh, state)
    rho = jnp.where(over[:, None], behaviour.fresh_rho, step.after)
    starts = ended | over
    age = jnp.where(over, 0, lanes.age + 1)
    handover = jnp.where(over, draws.handover, lanes.handover)
    explores = age < handover
    if settings.schedule.interleave:
        explores &= draws.interleave >= settings.schedule.interleave
    proposal = behaviour.propose(draws.subgoal_key, rho, starts & ~explores)
    following = RolloutState(
        state=state,
        rho=rho,
        explores=jnp.where(starts, explores, lanes.explores),
        subgoal=jnp.where(starts[:, None], proposal.subgoal, lanes.subgoal),
        choice=jnp.where(starts, proposal.choice, lanes.choice),
        clock=jnp.where(starts, 0, lanes.clock + 1),
        age=age,
        handover=handover,
        # Every change is a new situation, even if the attempt goes on: observations may not show what is held.
        history=jnp.where((starts | step.changed)[:, None], 0, extend(lanes.history, place, 0, action)),
    )
    return following, recorded, features


def _change(game: Game[State], rho: Float[Array, "lanes K"], state: State) -> Change:
    after = jax.vmap(game.attributes)(state)
    return Change(after, game.space.difference(after, rho), game.space.changed(rho, after))


def _record(
    game: Game[State],
    settings: Settings,
    draw: Float[Array, "lanes"],
    lanes: RolloutState[State],
    observation: Shaped[Array, "lanes slots"],
    action: Int[Array, "lanes"],
    state: State,
    step: Change,
    judge: Judge,
) -> tuple[Trajectory, Bool[Array, "lanes"]]:
    """The step with its consequences for attempt and game, and which attempts it ended."""
    outcome = judge(step, lanes.subgoal)
    success = outcome.hit & ~lanes.explores
    lost = jax.vmap(game.lost)(state)
    ended = outcome.ends | (lanes.clock + 1 >= settings.attempt_steps) | lost
    failure = ended & jnp.where(lanes.explores, ~step.changed, ~success)
    resigned = failure & (lanes.explores | (draw < settings.schedule.restart))
    # An executing attempt finishes after the horizon. Cut short it would have no outcome, and because failures take
    # longer than successes the edge detector would see too few failures.
    too_old = (lanes.age + 1 >= settings.game_steps) & (ended | lanes.explores)
    game_over = resigned | outcome.ends_game | too_old | jax.vmap(game.over)(state)
    recorded = Trajectory(
        observation, lanes.rho, lanes.explores, lanes.subgoal, lanes.choice, action, step.delta, step.after,
        step.changed, success, failure, lanes.clock + 1, game_over, lost,
    )  # fmt: skip
    return recorded, ended


def select_lanes(mask: Bool[Array, "lanes"], yes: State, no: State) -> State:
    """Lane by lane one of two states."""
    pick = lambda a, b: jnp.where(mask.reshape(-1, *(1,) * (a.ndim - 1)), a, b)  # noqa: E731
    selected: State = jax.tree.map(pick, yes, no)
    return selected


def flatten_steps(trajectory: Trajectory) -> Trajectory:
    """All steps of all lanes in one row."""
    flat: Trajectory = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), trajectory)
    return flat

"""Success on a fixed set of tasks: all of them carried out side by side, planned and replanned on the host."""

from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from saplan.games import task_set
from saplan.goals import Goal
from saplan.model.agent import Agent, Planning, choose_actions, price_first
from saplan.planning import Route
from saplan.planning.graph import NO_NODE

GROUP = 64
"""Tasks whose searches share a graph: enough to fill batches, few enough to fit in memory."""


@dataclass
class Walk:
    """How the tasks of an evaluation went."""

    success: np.ndarray
    steps: np.ndarray
    attempts: list[tuple[int, np.ndarray, int, bool, int]] = field(default_factory=list)


def evaluate(agent: Agent, tasks: int = 1000, task_seed: int = 0, budget: int = 150, planning: Planning = Planning(), seed: int = 0) -> Walk:
    states, goals = task_set(agent.game, tasks, task_seed)
    return walk(agent, states, goals, budget, planning, seed)


@eqx.filter_jit
def _step(agent, key, state, transition):
    a, b = jax.random.split(key)
    action = choose_actions(agent, a, state, transition)
    state = jax.vmap(agent.game.step)(jax.random.split(b, action.shape[0]), state, action)
    return state, jax.vmap(agent.game.attributes)(state)


def walk(agent, state, goals, budget, planning, seed):
    low, high = np.asarray(goals.low), np.asarray(goals.high)
    rho = np.asarray(jax.jit(jax.vmap(agent.game.attributes))(state))
    n = len(rho)
    keys = jax.random.split(jax.random.key(seed), budget)
    routes: list[Route | None] = [None] * n
    transition = np.zeros(n, np.int32)
    clock = np.zeros(n, int)
    done = np.all((rho >= low) & (rho <= high), axis=1)
    steps = np.where(done, 0, budget)
    fresh = ~done
    result = Walk(done, steps)
    for t in range(budget):
        timed_out = ~done & (clock >= agent.settings.attempt_steps)
        for lane in np.flatnonzero(timed_out):
            result.attempts.append((lane, rho[lane], int(transition[lane]), False, int(clock[lane])))
            node = routes[lane].node(rho[lane])
            if node != NO_NODE: routes[lane].penalise(node, int(transition[lane]), planning.penalty)
        decide = ~done & (fresh | timed_out)
        if decide.any():
            _decide(agent, planning, state, rho, low, high, routes, transition, np.flatnonzero(decide))
            clock[decide] = 0
        state, after = _step(agent, keys[t], state, jnp.asarray(transition))
        after = np.asarray(after)
        clock += 1
        fresh = np.any(after != rho, axis=1)
        space = agent.game.space
        hit = np.asarray(space.same_change(space.difference(after, rho), agent.memory.delta[transition]))
        for lane in np.flatnonzero(fresh & ~done):
            result.attempts.append((lane, rho[lane], int(transition[lane]), bool(hit[lane]), int(clock[lane])))
        rho = after
        reached = ~done & np.all((rho >= low) & (rho <= high), axis=1)
        steps[reached] = t + 1
        done |= reached
        if done.all(): break
    return result


def _decide(agent, planning, state, rho, low, high, routes, transition, lanes):
    lost = [k for k in lanes if routes[k] is None or routes[k].node(rho[k]) == NO_NODE]
    for i in range(0, len(lost), GROUP):
        group = np.array(lost[i : i + GROUP])
        for k, route in zip(group, agent.routes(rho[group], Goal(low[group], high[group]), planning), strict=True):
            routes[k] = route
    first = np.asarray(price_first(agent, state, planning)) if planning.critic else None
    for k in lanes:
        route = routes[k]
        node = route.node(rho[k])
        options = route.options(node)
        if first is not None:
            options = np.where(np.isfinite(options), options, 0) - np.where(np.isfinite(options), route.graph.cost[node], -np.inf) + first[k]
        options = np.where(np.isfinite(route.graph.cost[node]), options, np.inf)
        if not np.isfinite(options).any():
            # nothing known leads there: any likely change may open a way
            weights = np.exp(-route.graph.cost[node])
            weights = weights if weights.sum() > 0 else np.asarray(agent.memory.used, float)
            transition[k] = np.random.default_rng(k).choice(len(weights), p=weights / weights.sum())
        else:
            transition[k] = int(np.argmin(options))

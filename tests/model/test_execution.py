"""The two ways to the logits of the actions taken are one function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from saplan.games import Switches
from saplan.model.coding import Algebraic
from saplan.model.execution import _taken_of_all, _taken_of_one, taken_logits
from saplan.model.policy import Policy

GAME = Switches()
CODING = Algebraic(GAME.space)


@pytest.mark.parametrize("wishes", [(), (6,)], ids=["one wish for all", "a wish each"])
@pytest.mark.parametrize("way", ["one column", "by the platform"])
def test_value_and_gradient_are_the_same_either_way(wishes: tuple[int, ...], way: str) -> None:
    keys = jax.random.split(jax.random.key(0), 4)
    head = Policy.init(keys[0], GAME, CODING, 16).network.head
    trunk = jax.random.normal(keys[1], (6, 16))
    wish = jax.random.randint(keys[2], (*wishes, GAME.space.size), 0, 2).astype(jnp.float32)
    action = jax.random.randint(keys[3], (6,), 0, 5)
    weights = jnp.arange(1.0, 7.0)

    def summed(function, learnt):
        return jnp.sum(weights * function(CODING, *learnt, wish, action))

    ways = {"one column": _taken_of_one, "by the platform": lambda coding, h, t, w, a: taken_logits(h, coding, t, w, a)}
    found = jax.value_and_grad(summed, argnums=1)(ways[way], (head, trunk))
    wanted = jax.value_and_grad(summed, argnums=1)(_taken_of_all, (head, trunk))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)

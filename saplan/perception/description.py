"""Description lengths of the changes of one attribute.

The right algebra makes a change the same everywhere. So the changes at one place (one value of the attribute) are coded
with what was seen at all *other* places: each place is held out in turn. A place may still differ in how often changes
happen there, since objects and walls decide that too; a Dirichlet prior around the pooled shares allows it at a price.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import gammaln

STAY = 0
"""The symbol of a step without a change."""
SURPRISE = 0.01
"""Share of all changes that a prior spreads evenly over all ends, so that an exception costs few bits, not all."""
TRUST = 2.0 ** np.arange(-2, 15, 2)
"""How many steps the pooled shares count for at a new place; the best is chosen for every context."""


class Counts(NamedTuple):
    """Steps by context (action), place and symbol."""

    steps: Float[np.ndarray, "contexts places symbols"]
    """The symbol `STAY` and one for every distinct change."""
    allowed: Bool[np.ndarray, "places symbols"] | None
    """Which changes lead to a value in range; the share of the others belongs to `STAY`. None: all do."""
    ends: int
    """Number of values that a step can lead to."""


def pooled_bits(counts: Counts) -> Float[np.ndarray, "contexts"]:
    """Bits of all steps per context, each place coded with the pooled changes of the other places."""
    steps = counts.steps
    other = steps.sum(axis=1, keepdims=True) - steps
    anywhere = other.sum(axis=0, keepdims=True)
    anywhere = (anywhere + 1 / counts.ends) / (anywhere.sum(axis=-1, keepdims=True) + 1)
    shares = (other + anywhere) / (other.sum(axis=-1, keepdims=True) + 1)
    if counts.allowed is not None:
        shares = np.where(counts.allowed, shares, 0.0)
        shares[..., STAY] += 1 - shares.sum(axis=-1)
    surprise = SURPRISE * (1 - shares[..., STAY : STAY + 1])
    return _coded(steps, (1 - surprise) * shares + surprise / counts.ends)


def free_bits(steps: Float[np.ndarray, "contexts places ends"]) -> Float[np.ndarray, "contexts"]:
    """The same without any algebra: other places say only how often something changes, every end is as likely."""
    other = steps.sum(axis=1, keepdims=True) - steps
    total = other.sum(axis=-1)
    stays = (other[..., STAY] + 0.5) / (total + 1)
    change = (1 - stays) / max(1, steps.shape[1] - 1)
    shares = np.concatenate([stays[..., None], np.repeat(change[..., None], steps.shape[-1] - 1, axis=-1)], axis=-1)
    return _coded(steps, shares)


def _coded(
    steps: Float[np.ndarray, "contexts places symbols"], shares: Float[np.ndarray, "contexts places symbols"]
) -> Float[np.ndarray, "contexts"]:
    """Bits of the Dirichlet-multinomial code around `shares`, with the best trust in them per context."""
    bits = []
    for trust in TRUST:
        prior = np.where(steps > 0, np.maximum(trust * shares, 1e-12), 1.0)
        rows = np.where(steps > 0, gammaln(prior + steps) - gammaln(prior), 0.0).sum(axis=-1)
        rows += gammaln(trust) - gammaln(trust + steps.sum(axis=-1))
        bits.append(-rows.sum(axis=1) / np.log(2))
    best: Float[np.ndarray, "contexts"] = np.min(bits, axis=0)
    return best


def symbols(
    context: Int[np.ndarray, "n"], place: Int[np.ndarray, "n"], code: Int[np.ndarray, "n"], weight: Int[np.ndarray, "n"]
) -> tuple[Float[np.ndarray, "contexts places symbols"], Int[np.ndarray, "symbols"]]:
    """Weights of steps by context, place and code, with code 0 first, and the code of every symbol."""
    codes = np.concatenate([[0], np.setdiff1d(code, [0])])
    symbol = np.where(code == 0, STAY, np.searchsorted(codes[1:], code) + 1)
    shape = int(context.max()) + 1, int(place.max()) + 1, len(codes)
    flat = np.bincount(np.ravel_multi_index((context, place, symbol), shape), weight, int(np.prod(shape)))
    return flat.reshape(shape), codes

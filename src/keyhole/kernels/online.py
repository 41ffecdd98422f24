"""Single decisions and rewards, with as little as can be between Python and the work.

A named tuple as an argument costs a compiled function 2 microseconds a call and its members one by
one a third of that, so these two take `*state, *rule` and put the tuples together inside.
"""

import numpy as np

from keyhole.kernels.choosing import select
from keyhole.kernels.jit import kernel
from keyhole.kernels.learning import absorb
from keyhole.kernels.types import Floats, Ints, Rule, State


@kernel
def choose(
    precision: Floats,
    moment: Floats,
    pulls: Floats,
    squares: Floats,
    covariance: Floats,
    mean: Floats,
    residual: Floats,
    trace: Floats,
    bound: Floats,
    staleness: Floats,
    optimism: float,
    dispersion: float,
    epsilon: float,
    learned: bool,
    prior_precision: float,
    owner: Ints,
    y: Floats,
    z: Floats,
    coin: float,
    tie: float,
    prune: bool,
    law: Floats,
) -> int:
    """The place of the chosen candidate; law: (3, n) becomes location, scale and score of each."""
    state = State(
        precision, moment, pulls, squares, covariance, mean, residual, trace, bound, staleness
    )
    rule = Rule(optimism, dispersion, epsilon, learned, prior_precision)
    return select(state, rule, owner, y, z, coin, tie, prune, law[0], law[1], law[2])


@kernel
def learn(
    precision: Floats,
    moment: Floats,
    pulls: Floats,
    squares: Floats,
    covariance: Floats,
    mean: Floats,
    residual: Floats,
    trace: Floats,
    bound: Floats,
    staleness: Floats,
    i: int,
    y: Floats,
    reward: float,
) -> None:
    """Learn one reward of parameter i at y."""
    state = State(
        precision, moment, pulls, squares, covariance, mean, residual, trace, bound, staleness
    )
    absorb(state, i, y, reward, np.empty(y.size))


@kernel
def all_usable(values: Floats, largest: float) -> bool:
    """Whether no number is NaN, infinite or beyond `largest`."""
    usable = True
    for value in values.flat:
        usable = usable and bool(abs(value) <= largest)
    return usable

"""Playing a block of rounds: choose, see the reward of the chosen arm, learn, again and again."""

import numpy as np

from keyhole.kernels.choosing import select
from keyhole.kernels.jit import kernel
from keyhole.kernels.learning import absorb
from keyhole.kernels.types import Floats, Ints, Rule, State


@kernel
def play(
    state: State,
    rule: Rule,
    owner: Ints,
    observations: Floats,
    rewards: Floats,
    z: Floats,
    uniforms: Floats,
    prune: bool,
    chosen: Ints,
) -> None:
    """Play every round of a block, moving `state` along and writing the arms into `chosen`.

    observations: (T, n_arms, d), or (T, 1, d) for a context that the arms share; rewards and
    z: (T, n_arms); uniforms: (T, 2), a coin and a tie-breaker a round.
    """
    location, scale, score = np.empty(owner.size), np.empty(owner.size), np.empty(owner.size)
    w = np.empty(observations.shape[2])
    for t in range(observations.shape[0]):
        y = observations[t]
        k = select(
            state,
            rule,
            owner,
            y,
            z[t],
            uniforms[t, 0],
            uniforms[t, 1],
            prune,
            location,
            scale,
            score,
        )
        absorb(state, owner[k], y[min(k, y.shape[0] - 1)], rewards[t, k], w)
        chosen[t] = k

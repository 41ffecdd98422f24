"""What each arm's score can be at most, before any quadratic form.

Since P only ever shrinks, width <= |y| sqrt(bound): an arm whose score cannot reach the best one
even at that width needs no y'Py. And since y'mean <= |y| |mean|, of very many arms most need not
even that.
"""

import numpy as np

from keyhole.kernels.algebra import dot, dots, most, multiply, place_of_most
from keyhole.kernels.deferring import Late, subtract_late
from keyhole.kernels.exploring import SLACK, exploration
from keyhole.kernels.jit import part
from keyhole.kernels.types import Floats, Ints, Rule, State
from keyhole.kernels.vectors import store

# From so many arms on, a first glance at all of them is worth its time.
MANY = 4096


@part
def predict(state: State, owner: Ints, y: Floats, mean: Floats) -> None:
    """mean[k] = y_k'mean of each candidate."""
    n, means = owner.size, state.mean
    if y.shape[0] > 1 or n < 4 or y.shape[1] < 4:
        for k in range(n):
            mean[k] = dot(y[min(k, y.shape[0] - 1)], means[owner[k]])
        return
    for start in range(0, n, 4):
        k = min(start, n - 4)  # the last four overlap with those before
        a, b, c, d = owner[k], owner[k + 1], owner[k + 2], owner[k + 3]
        store(mean, k, dots(means[a], means[b], means[c], means[d], y[0]))


@part
def hope(mean: float, steps: float, squared_width: float) -> float:
    """The most that a score can be, whose width is at most the root of this.

    One product and one sum, as in a score, so that rounding keeps a bound a bound.
    """
    highest: float = mean + max(steps, 0.0) * (SLACK * np.sqrt(squared_width))
    return highest


@part
def survey(
    state: State,
    rule: Rule,
    owner: Ints,
    y: Floats,
    z: Floats,
    greedy: bool,
    pooled: float,
    law: Floats,
    w: Floats,
    late: Late | None,
) -> int:
    """Fill in the most that each candidate's score can be; the place of one that promises much.

    law: as in `select`; its locations become y'mean of all but those that are ruled out here, whose
    scores are then -infinity. w: (d,) is scratch space.
    """
    mean, score = law[0], law[2]
    own = rule.learned or rule.radius > 0.0  # each arm explores in its own way
    if owner.size > MANY and y.shape[0] == 1 and not own:
        optimism, dispersion = exploration(state, rule, 0, greedy, pooled)
        return glance(state, optimism, dispersion, owner, y[0], z, law, w, late)

    predict(state, owner, y, mean)
    # Plain loops over arrays, one thing at a time, become vector instructions: with many arms they
    # count. The first, which goes by owner, does not: roots are left to the others.
    squared_length = dot(y[0], y[0])
    for k in range(score.size):
        if y.shape[0] > 1:
            squared_length = dot(y[k], y[k])
        score[k] = squared_length * state.bound[owner[k]]
    if own:
        for k in range(score.size):
            optimism, dispersion = exploration(state, rule, owner[k], greedy, pooled)
            score[k] = hope(mean[k], optimism + dispersion * z[k], score[k])
    else:
        optimism, dispersion = exploration(state, rule, 0, greedy, pooled)
        for k in range(score.size):
            score[k] = hope(mean[k], optimism + dispersion * z[k], score[k])
    return place_of_most(score)


@part
def glance(
    state: State,
    optimism: float,
    dispersion: float,
    owner: Ints,
    y: Floats,
    z: Floats,
    law: Floats,
    w: Floats,
    late: Late | None,
) -> int:
    """`survey` for very many candidates: few means are read, and few roots taken.

    Nobody's score is above |y| (length of the longest mean + steps sqrt(bound)). Once one
    candidate's is known, another's steps^2 bound tells whether it can get there.
    """
    mean, score = law[0], law[2]
    for k in range(score.size):
        steps = max(optimism + dispersion * z[k], 0.0)
        score[k] = steps * steps * state.bound[owner[k]]
    leader = place_of_most(score)
    i = owner[leader]
    multiply(state.matrices[i, 1:], y, w)
    if late is not None:  # a question that the compiler answers
        subtract_late(late, i, y, w)
    steps = optimism + dispersion * z[leader]
    known = dot(y, state.mean[i]) + np.sqrt(max(dot(y, w), 0.0)) * steps

    squared_length = dot(y, y)
    # penalty is prior |mean|^2, and the prior everybody's.
    longest = np.sqrt(squared_length * most(state.penalty) / state.prior[0])
    missing = max(known - SLACK * longest, 0.0) / SLACK
    for k in range(score.size):
        if squared_length * score[k] < missing * missing:
            score[k] = -np.inf
            continue
        i, steps = owner[k], optimism + dispersion * z[k]
        mean[k] = dot(y, state.mean[i])
        score[k] = hope(mean[k], steps, squared_length * state.bound[i])
    return leader

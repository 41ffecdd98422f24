"""What each arm's score can be at most, before any quadratic form.

Since P only ever shrinks, width <= |y| sqrt(bound): an arm whose score cannot reach the best one
even at that width needs no y'Py. And since y'mean <= |y| |mean|, of very many arms most need not
even that, while most are not known yet.
"""

import numpy as np

from keyhole.kernels.algebra import dot, dots, place_of_most
from keyhole.kernels.deferring import Late, multiply_now
from keyhole.kernels.exploring import SLACK, exploration
from keyhole.kernels.jit import part
from keyhole.kernels.types import Floats, Ints, Rule, State
from keyhole.kernels.vectors import number, store

# Beyond so many arms a first glance at all of them may be worth its time: if it leaves no more than
# this share of them.
MANY, SHARE = 4096, 0.125
# Squares of smaller numbers are too close to the smallest number there is.
TINY = 1e-100


@part
def predict(state: State, owner: Ints, y: Floats, mean: Floats) -> None:
    """mean[k] = y_k'mean of each candidate."""
    n, means = owner.size, state.mean
    if y.shape[0] > 1:
        for k in range(n):
            mean[k] = dot(y[k], means[owner[k]])
        return
    if n < 4:
        for k in range(n):
            mean[k] = predict_one(means[owner[k]], y[0])
        return
    for start in range(0, n, 4):
        k = min(start, n - 4)  # the last four overlap with those before
        a, b, c, d = owner[k], owner[k + 1], owner[k + 2], owner[k + 3]
        store(mean, k, dots(means[a], means[b], means[c], means[d], y[0]))


@part
def predict_one(mean: Floats, y: Floats) -> float:
    """y'mean, rounded as if it were one of four."""
    return number(dots(mean, mean, mean, mean, y), 0)


@part
def steps_of(state: State, rule: Rule, i: int, z: float, greedy: bool, pooled: float) -> float:
    """How many widths a score is above its mean, of an arm of parameter i that drew z."""
    optimism, dispersion = exploration(state, rule, i, greedy, pooled)
    return optimism + dispersion * z


@part
def fill_steps(
    state: State, rule: Rule, owner: Ints, z: Floats, greedy: bool, pooled: float, steps: Floats
) -> None:
    """`steps_of` each candidate."""
    if rule.learned or rule.radius > 0.0:
        for k in range(owner.size):
            steps[k] = steps_of(state, rule, owner[k], z[k], greedy, pooled)
    else:  # by the same numbers for all
        optimism, dispersion = exploration(state, rule, 0, greedy, pooled)
        for k in range(owner.size):
            steps[k] = optimism + dispersion * z[k]


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
) -> int:
    """Fill in the most that each candidate's score can be; the place of the one with most.

    law: as in `select`, with y'mean as locations; its scales become steps.
    """
    mean, steps, score = law[0], law[1], law[2]
    fill_steps(state, rule, owner, z, greedy, pooled, steps)
    # Plain loops over arrays, one thing at a time, become vector instructions: with many arms they
    # count. The first, which goes by owner, does not: roots are left to the other.
    squared_length = dot(y[0], y[0])
    for k in range(score.size):
        if y.shape[0] > 1:
            squared_length = dot(y[k], y[k])
        score[k] = squared_length * state.bound[owner[k]]
    for k in range(score.size):
        score[k] = hope(mean[k], steps[k], score[k])
    return place_of_most(score)


@part
def glance(
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
    """`survey` of very many candidates at one y, without reading most of their means.

    A score is at most |y| (|mean| + steps sqrt(bound)), and the square of that is at most
    2 |y|^2 (|mean|^2 + steps^2 bound). Once one candidate's score is known, this tells without a
    root who can get there; the score of one who cannot becomes -infinity. Gives the place of the
    one that is known, or -1 if too many are left: then nothing was gained. w: (d,) is scratch.
    """
    mean, score = law[0], law[2]
    fill_steps(state, rule, owner, z, greedy, pooled, score)
    for k in range(score.size):
        score[k] = max(score[k], 0.0) ** 2 * state.bound[owner[k]]
    leader = place_of_most(score)
    i = owner[leader]
    multiply_now(state, late, i, y, w)
    steps = steps_of(state, rule, i, z[leader], greedy, pooled)
    known = dot(y, state.mean[i]) + np.sqrt(max(dot(y, w), 0.0)) * steps

    squared_length = dot(y, y)
    if not (known > TINY and squared_length > TINY):
        return -1
    least, left = (known / SLACK) ** 2 / (2.0 * squared_length), 0
    for k in range(score.size):
        score[k] += state.penalty[owner[k]] / state.prior[0]  # |mean|^2; the prior is everybody's
    for k in range(score.size):
        left += score[k] >= least
    if left > SHARE * score.size:
        return -1
    for k in range(score.size):
        if score[k] < least:
            score[k] = -np.inf
        else:
            i = owner[k]
            mean[k] = predict_one(state.mean[i], y)
            steps = steps_of(state, rule, i, z[k], greedy, pooled)
            score[k] = hope(mean[k], steps, squared_length * state.bound[i])
    return leader

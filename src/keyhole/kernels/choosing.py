"""Choosing an arm: one rule for every policy, exact with and without pruning.

An arm's score is y'mean + width (optimism + dispersion z) with width^2 = y'Py, which is in
distribution what the paper's Algorithms 1 and 2 get by drawing a d-dimensional sample (eq:sample).
An arm whose score cannot reach the best one needs no width, and goes without one if it may.
"""

import numpy as np

from keyhole.kernels.algebra import dot
from keyhole.kernels.deferring import Late, multiply_now
from keyhole.kernels.exploring import exploration, pooled_variance
from keyhole.kernels.jit import kernel, part
from keyhole.kernels.surveying import MANY, glance, predict, survey
from keyhole.kernels.types import Floats, Ints, Rule, State


@part
def pick(share: float, n: int) -> int:
    """One of n, uniformly, from a uniform number."""
    return min(int(share * n), n - 1)


@part
def one_of_best(score: Floats, best: float, tie: float) -> int:
    """The place of the best score; among several, one uniformly by the uniform number `tie`."""
    ties = 0
    for k in range(score.size):
        ties += score[k] == best
    left = pick(tie, ties)
    for k in range(score.size):
        if score[k] == best:
            if left == 0:
                return k
            left -= 1
    return -1


@part
def select(
    state: State,
    rule: Rule,
    owner: Ints,
    y: Floats,
    z: Floats,
    coin: float,
    tie: float,
    greedy: bool,
    prune: bool,
    law: Floats,
    w: Floats,
    late: Late | None,
) -> tuple[int, int]:
    """The place of the chosen arm among the candidates, whose parameters are `owner`.

    y has one row for all candidates or a row each. greedy: for this once, whatever the rule.
    Of `law`, (3, n), the rows become locations, scales and scores; with pruning, only those of the
    candidates that were looked at. w: (2, d) is scratch space; the second number says which row of
    it is the chosen arm's P y, or is -1. late: what the matrices have yet to be told.
    """
    location, scale, score = law[0], law[1], law[2]
    explores = coin < rule.epsilon
    pooled = pooled_variance(state) if rule.learned else 0.0
    hopes = rule.optimism > 0.0 or rule.radius > 0.0
    uncertain = not greedy and (rule.learned or rule.dispersion > 0.0 or hopes)
    # A candidate that promises much goes first: its score rules out most of the others. Whoever is
    # picked without regard to scores still has one: then nobody is ruled out.
    prunes, leader = prune and not explores, -1
    if prunes and uncertain and y.shape[0] == 1 and owner.size > MANY:
        leader = glance(state, rule, owner, y[0], z, greedy, pooled, law, w[0], late)
    if leader < 0:
        predict(state, owner, y, location)
        if prunes:
            leader = survey(state, rule, owner, y, z, greedy, pooled, law)
        else:
            leader = 0
            score[:] = np.inf
    best, winner, tied, kept = -np.inf, leader, False, -1
    for step in range(-1, owner.size):
        k = leader if step < 0 else step
        if score[k] < best or step == leader:
            continue
        width, row, free = 0.0, min(k, y.shape[0] - 1), 1 if kept == 0 else 0
        if uncertain:
            multiply_now(state, late, owner[k], y[row], w[free])
            width = np.sqrt(max(dot(y[row], w[free]), 0.0))
        optimism, dispersion = exploration(state, rule, owner[k], greedy, pooled)
        score[k] = location[k] + width * (optimism + dispersion * z[k])
        location[k] += width * optimism
        scale[k] = width * dispersion
        if score[k] >= best:
            tied = score[k] == best
            best, winner = score[k], k
            kept = free if uncertain else -1

    chosen = winner
    if explores:
        chosen = pick(coin / rule.epsilon, owner.size)
    elif tied:
        chosen = one_of_best(score, best, tie)
    return chosen, kept if chosen == winner else -1


@kernel
def select_rows(
    location: Floats, scale: Floats, z: Floats, uniforms: Floats, epsilon: float, chosen: Ints
) -> None:
    """The chosen place in each row, from how the scores are distributed and the numbers drawn."""
    for t in range(location.shape[0]):
        if uniforms[t, 0] < epsilon:
            chosen[t] = pick(uniforms[t, 0] / epsilon, location.shape[1])
        else:
            score = location[t] + scale[t] * z[t]
            chosen[t] = one_of_best(score, score.max(), uniforms[t, 1])

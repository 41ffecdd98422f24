"""Choosing an arm: one rule for every policy, exact with and without pruning.

An arm's score is y'mean + width (optimism + dispersion z) with width^2 = y'Py, which is in
distribution what the paper's Algorithms 1 and 2 get by drawing a d-dimensional sample (eq:sample).
Since P only ever shrinks, width <= |y| sqrt(bound): an arm whose score cannot reach the best one
even at that width needs no quadratic form.
"""

import math

import numpy as np

from keyhole.kernels.algebra import dot, multiply
from keyhole.kernels.deferring import Late, subtract_late
from keyhole.kernels.jit import kernel, part
from keyhole.kernels.types import Floats, Ints, Rule, State

# Far above the rounding of any quadratic form, far below what pruning would notice.
SLACK = 1.0 + 1e-6

# The weak priors of a learned noise scale count as much as this many residuals.
PRIOR_RESIDUALS = 4.0


@part
def misfit(state: State, i: int) -> float:
    """The sum of squares of parameter i's residuals r - y'mean."""
    squares: float = max(state.residual[i] - state.penalty[i], 0.0)
    return squares


@part
def freedom(state: State, i: int) -> float:
    """The degrees of freedom of parameter i's residuals, or somewhat fewer.

    With H = YPY', the misfit r'(I - H)^2 r has the noise variance times n - d + prior^2 trace(P^2)
    as its expectation, up to what the prior holds back of the signal, which vanishes like 1/n.
    trace(P)^2 / d is at most trace(P^2), equal if all directions are known alike, and at hand.
    """
    dim = state.mean.shape[1]
    unknown = (state.prior[i] * state.trace[i]) ** 2 / dim
    free: float = max(state.n[i] - dim + unknown, 0.0)
    return free


@part
def pooled_variance(state: State) -> float:
    """The noise variance as all parameters together tell it, from the rewards' mean square on.

    The start counts as a few residuals and fades as real ones come, so that rewards much larger
    than their noise do not pass for noise for long. Starting from the data makes every choice
    independent of the rewards' unit. While all rewards are zero there is no unit, and any
    positive number leads to the same choice.
    """
    n, squares, left, free = 0.0, 0.0, 0.0, 0.0
    for i in range(state.n.size):
        n += state.n[i]
        squares += state.squares[i]
        left += misfit(state, i)
        free += freedom(state, i)
    if squares == 0.0:
        return 1.0
    weight = PRIOR_RESIDUALS * PRIOR_RESIDUALS / (PRIOR_RESIDUALS + free)
    return (weight * squares / n + left) / (weight + free)


@part
def noise_scale(state: State, i: int, pooled: float) -> float:
    """The standard deviation of parameter i's rewards given y: between the pooled one and its own.

    Its own counts by how many residuals of the pooled size it has seen, not by how many rewards.
    An arm of rare rewards that has not seen one yet would otherwise be sure of having no noise,
    and never be tried again.
    """
    seen = misfit(state, i)
    own = (PRIOR_RESIDUALS * pooled + seen) / (PRIOR_RESIDUALS + freedom(state, i))
    trust = seen / (PRIOR_RESIDUALS * pooled + seen) if seen > 0.0 else 0.0
    return math.sqrt(pooled + trust * (own - pooled))


@part
def optimism_of(state: State, rule: Rule, i: int) -> float:
    """The optimism about parameter i: the rule's number, and a multiple of a confidence radius.

    log det B - log det prior is at most d log(trace B / (d prior)): lem:subg with what was seen in
    place of the bound L on what can be.
    """
    if rule.radius == 0.0:
        return rule.optimism
    dim = state.mean.shape[1]
    trace = 0.0
    for j in range(dim):
        trace += state.matrices[i, j, j]
    seen = max(dim * math.log(trace / (dim * state.prior[i])), 0.0)
    return rule.optimism + rule.radius * math.sqrt(seen + rule.level)


@kernel
def is_diverse(state: State, rule: Rule) -> bool:
    """Whether all data are as diverse as a rule asks for.

    The smallest eigenvalue of each parameter's sum of y y' is at least diversity times the number
    of all rewards. Cheap bounds from either side decide most cases: a kept bound on the largest
    eigenvalue of P from above, its diagonal and a few steps of power iteration from below. Where
    the eigenvalue itself has to, it becomes the kept bound, and is not needed again for a while.
    """
    total = 0.0
    for i in range(state.n.size):
        total += state.n[i]
    dim = state.mean.shape[1]
    if total < (rule.patience if rule.patience >= 0.0 else 4.0 * state.n.size * dim):
        return True
    for i in range(state.n.size):
        limit = 1.0 / (state.prior[i] + rule.diversity * total)
        if state.bound[i] > limit:
            covariance = state.matrices[i, 1:]
            for j in range(dim):
                if covariance[j, j] > limit:
                    return False
    for i in range(state.n.size):
        limit = 1.0 / (state.prior[i] + rule.diversity * total)
        if state.bound[i] > limit:
            if lower_eigenvalue(state.matrices[i, 1:]) > limit:
                return False
            largest = float(np.linalg.eigvalsh(state.matrices[i, 1:])[-1])
            state.bound[i] = min(state.bound[i], largest * SLACK)
            if largest > limit:
                return False
    return True


@kernel
def lower_eigenvalue(covariance: Floats) -> float:
    """A little less than the largest eigenvalue: the quotient after a few steps of iteration."""
    dim = covariance.shape[0]
    v, u = np.zeros(dim), np.empty(dim)
    widest = 0
    for j in range(dim):
        if covariance[j, j] > covariance[widest, widest]:
            widest = j
    v[widest] = 1.0
    quotient = 0.0
    for _ in range(4):
        multiply(covariance, v, u)
        quotient = dot(v, u)
        v[:] = u / math.sqrt(dot(u, u))
    # Rounding may have put it above the eigenvalue by this much.
    return quotient * (1.0 - 1e-12)


@part
def exploration(
    state: State, rule: Rule, i: int, greedy: bool, pooled: float
) -> tuple[float, float]:
    """The optimism and the dispersion of parameter i."""
    if greedy:
        return 0.0, 0.0
    dispersion = noise_scale(state, i, pooled) if rule.learned else rule.dispersion
    return optimism_of(state, rule, i), dispersion


@kernel
def explorations(state: State, rule: Rule, optimism: Floats, dispersion: Floats) -> None:
    """The optimism and the dispersion of each parameter, as the next choice will use them."""
    pooled = pooled_variance(state)
    greedy = rule.diversity > 0.0 and is_diverse(state, rule)
    for i in range(state.n.size):
        optimism[i], dispersion[i] = exploration(state, rule, i, greedy, pooled)


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
def predict(state: State, owner: Ints, y: Floats, mean: Floats) -> None:
    """mean[k] = y_k'mean of each candidate."""
    for k in range(owner.size):
        mean[k] = dot(y[min(k, y.shape[0] - 1)], state.mean[owner[k]])


@part
def survey(
    state: State,
    rule: Rule,
    owner: Ints,
    y: Floats,
    z: Floats,
    greedy: bool,
    pooled: float,
    mean: Floats,
    score: Floats,
) -> int:
    """Fill in the most that each candidate's score can be; the place of the one with most.

    Costs O(1) a candidate, or O(d) where each has a y of its own.
    """
    squared_length = dot(y[0], y[0])
    for k in range(owner.size):
        if y.shape[0] > 1:
            squared_length = dot(y[k], y[k])
        score[k] = squared_length * state.bound[owner[k]]
    # Plain loops over arrays, one thing at a time, become vector instructions: with very many arms
    # they count. Where hope is largest is anybody's guess, and a branch would guess wrong.
    for k in range(owner.size):
        optimism, dispersion = exploration(state, rule, owner[k], greedy, pooled)
        reach = max(optimism + dispersion * z[k], 0.0) * SLACK
        score[k] = mean[k] + reach * np.sqrt(score[k])
    most = -np.inf
    for k in range(owner.size):
        most = max(most, score[k])
    leader = 0
    while score[leader] < most:
        leader += 1
    return leader


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
    predicted: bool,
    law: Floats,
    w: Floats,
    late: Late | None,
) -> tuple[int, int]:
    """The place of the chosen arm among the candidates, whose parameters are `owner`.

    y has one row for all candidates or a row each. greedy: for this once, whatever the rule.
    predicted: the locations are there already, as y'mean.
    Of `law`, (3, n), the rows become locations, scales and scores; with pruning, only those of the
    candidates that were looked at. w: (2, d) is scratch space; the second number says which row of
    it is the chosen arm's P y, or is -1. late: what the matrices have yet to be told.
    """
    location, scale, score = law[0], law[1], law[2]
    explores = coin < rule.epsilon
    pooled = pooled_variance(state) if rule.learned else 0.0
    if not predicted:
        predict(state, owner, y, location)
    # The candidate that promises most goes first: its score rules out most of the others. Whoever
    # is picked without regard to scores still has one: then nobody is ruled out.
    leader = 0
    if prune and not explores:
        leader = survey(state, rule, owner, y, z, greedy, pooled, location, score)
    else:
        score[:] = np.inf
    hopes = rule.optimism > 0.0 or rule.radius > 0.0
    uncertain = not greedy and (rule.learned or rule.dispersion > 0.0 or hopes)
    best, winner, tied, kept = -np.inf, leader, False, -1
    for step in range(-1, owner.size):
        k = leader if step < 0 else step
        if score[k] < best or step == leader:
            continue
        width, row, free = 0.0, min(k, y.shape[0] - 1), 1 if kept == 0 else 0
        if uncertain:
            multiply(state.matrices[owner[k], 1:], y[row], w[free])
            if late is not None:  # a question that the compiler answers
                subtract_late(late, owner[k], y[row], w[free])
            width = np.sqrt(max(dot(y[row], w[free]), 0.0))
        optimism, dispersion = exploration(state, rule, owner[k], greedy, pooled)
        # One product and one sum, as in the survey, so that rounding keeps a bound a bound.
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

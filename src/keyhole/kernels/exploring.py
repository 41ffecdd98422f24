"""How much a rule explores: its optimism and dispersion, as numbers or as the data tell them."""

import math

import numpy as np

from keyhole.kernels.algebra import dot, multiply
from keyhole.kernels.jit import kernel, part
from keyhole.kernels.types import Floats, Rule, State

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

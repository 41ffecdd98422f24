"""Learning one reward: the sums grow, the caches follow by a rank-one step (eq:Bi, eq:etahat)."""

import numpy as np

from keyhole.kernels.algebra import EPSILON, dot, invert, move_squares, multiply
from keyhole.kernels.jit import kernel, loop, part
from keyhole.kernels.types import Floats, Ints, State

# A rank-one step with q = y'Py loses about log10(1 + q) digits of the covariance in the direction
# of y, and every step rounds once more. The caches are computed anew from the sums after this many
# steps, or as soon as the q's since the last time add up to this (9 of 16 digits are then left).
REFRESH_STEPS = 4096
REFRESH_LOSS = 1e7
# Where the terms of y'Py cancel so far that rounding may change 1 + q by this part of it, as with
# collinear features of a large scale, a step cannot be trusted, and the sums are asked at once.
CANCELLATION = 1e-6


@loop
def forget(state: State) -> None:
    """Know nothing but the prior."""
    dim = state.mean.shape[1]
    for i in range(state.n.size):
        prior = state.prior[i]
        state.matrices[i, :, :] = 0.0
        for j in range(dim):
            state.matrices[i, j, j], state.matrices[i, j + 1, j] = prior, 1.0 / prior
            state.moment[i, j], state.mean[i, j] = 0.0, 0.0
        state.n[i], state.squares[i], state.residual[i], state.penalty[i] = 0.0, 0.0, 0.0, 0.0
        state.trace[i], state.bound[i], state.staleness[i] = dim / prior, 1.0 / prior, 0.0


@kernel
def refresh(state: State, i: int) -> None:
    """Compute the covariance of parameter i, and what follows from it, anew from the sums."""
    covariance = state.matrices[i, 1:]
    invert(state.matrices[i, :-1], covariance)
    multiply(covariance, state.moment[i], state.mean[i])
    state.penalty[i] = state.prior[i] * dot(state.mean[i], state.mean[i])
    state.trace[i] = np.trace(covariance)
    state.bound[i] = eigenvalue_bound(covariance, state.trace[i], np.empty(covariance.shape[0]))
    state.staleness[i] = 0.0


@kernel
def settle(state: State, i: int) -> None:
    """`refresh`, and the residual sum of squares as well, after sums were added from outside.

    The difference loses digits where rewards are much larger than their noise, which the running
    sum of `absorb` does not: a scheduled refresh leaves that as it is.
    """
    refresh(state, i)
    difference = state.squares[i] - dot(state.moment[i], state.mean[i])
    state.residual[i] = max(difference, state.penalty[i])


@loop
def eigenvalue_bound(covariance: Floats, trace: float, rows: Floats) -> float:
    """The trace or the largest absolute row sum: both are at least the largest eigenvalue.

    rows: (d,) is scratch space.
    """
    largest = 0.0
    for i in range(rows.size):
        total = covariance[i, i]
        for j in range(i):
            total += abs(covariance[i, j])
        for j in range(i):
            rows[j] += abs(covariance[i, j])
        rows[i] = total
    for i in range(rows.size):
        largest = max(largest, rows[i])
    return min(trace, largest)


@part
def cancels(covariance: Floats, y: Floats, most: float, q: float) -> bool:
    """Whether rounding may change 1 + y'Py too much; y'Py is q, and its terms add up to `most`.

    Or to less: the diagonal of P, which tells, is far apart in memory, and seldom needed.
    """
    limit = (CANCELLATION / EPSILON) * (1.0 + q)
    if most <= limit:
        return False
    terms = 0.0
    for j in range(y.size):
        terms += y[j] * y[j] * covariance[j, j]
    return terms > limit


@part
def step(state: State, i: int, y: Floats, reward: float, w: Floats) -> float:
    """Move all but the matrices of parameter i along, where w is P y.

    With q = y'w: P loses w w' / (1 + q), the mean gains w (r - y'mean) / (1 + q), and the residual
    sum of squares gains (r - y'mean)^2 / (1 + q). What comes back is 1 / (1 + q), or zero where
    rounding or overflow is too much for a step, and the sums must be asked.
    """
    mean, moment = state.mean[i], state.moment[i]
    # One sum or one row a loop: only then do they become vector instructions.
    q, value, squared_length = max(dot(y, w), 0.0), dot(y, mean), dot(y, y)
    for j in range(y.size):
        moment[j] += reward * y[j]
    state.n[i] += 1.0
    state.squares[i] += reward * reward
    if cancels(state.matrices[i, 1:], y, squared_length * state.bound[i], q):
        return 0.0

    share = 1.0 / (1.0 + q)
    surprise = (reward - value) * share
    for j in range(y.size):
        mean[j] += surprise * w[j]
    state.residual[i] += surprise * (reward - value)
    state.penalty[i] = state.prior[i] * dot(mean, mean)
    state.trace[i] -= share * dot(w, w)
    state.staleness[i] += 1.0 / REFRESH_STEPS + q * (1.0 / REFRESH_LOSS)
    return share


@part
def absorb(state: State, i: int, y: Floats, reward: float, w: Floats, known: bool) -> None:
    """Learn that parameter i gave `reward` at y. `w` is P y if that is known, else scratch."""
    covariance = state.matrices[i, 1:]
    if not known:
        multiply(covariance, y, w)
    share = step(state, i, y, reward, w)
    move_squares(state.matrices[i], y, w, share)
    if share == 0.0:
        settle(state, i)
    elif state.staleness[i] >= 1.0:
        refresh(state, i)
    elif int(state.n[i]) % y.size == 0:
        # Once in d steps the bound costs no more than a dot product each.
        state.bound[i] = min(state.bound[i], eigenvalue_bound(covariance, state.trace[i], w))


@kernel
def absorb_many(state: State, owner: Ints, y: Floats, rewards: Floats) -> None:
    """Learn rewards one after another; row t goes to parameter owner[t]."""
    w = np.empty(y.shape[1])
    for t in range(y.shape[0]):
        absorb(state, owner[t], y[t], rewards[t], w, False)

"""The variance of each round, for logs that were collected adaptively.

The variance of a round's term G is about v_t = mean over contexts x of sum_a pi(a|x)^2 / e_t(a|x).
As the logged policy learns, e_t of the worse arms vanishes and v_t grows without bound: a plain
mean is then dominated by a few rounds and is not normal. MinVar gives a round the share 1 / v_t,
StableVar v_t^-1/2 (Hadad et al. 2021, Zhan et al. 2021). The shares must be known before the round:
v_t is computed at checkpoints, from the posterior there and the contexts of earlier rounds.

A target that learns has a value that changes from round to round. Unequal shares would estimate
another average of it than that over the rounds, so such a target has equal shares: its weights stay
moderate, since it learns from the same data as the logged policy.
"""

from __future__ import annotations

import numpy as np

from keyhole.core import Floats
from keyhole.evaluation.replay import Checkpoints
from keyhole.evaluation.targets import Propensities


def variances(target: Propensities, logged: Propensities, checkpoints: Checkpoints) -> Floats:
    """Return v_t of each round, (n,): constant from one checkpoint to the next.

    It depends on earlier rounds only. For a target that learns it is 1.

    Without observations, the rounds of the block before a checkpoint stand in for the contexts and
    the posterior at the checkpoint: their v_s, each at its own context and posterior.

    Parameters
    ----------
    target, logged : Propensities
        Probabilities of the target and of the logged policy.
    checkpoints : Checkpoints
        Where they are known at other contexts.
    """
    n = len(target.rows)
    if target.moves:
        return np.ones(n)
    sizes = np.diff([0, *checkpoints.starts, n])
    if target.at is not None and logged.at is not None:
        moments, firsts = _second_moment(target.at, logged.at), checkpoints.firsts
        found = np.add.reduceat(moments, firsts) / checkpoints.counts
    else:
        own = _second_moment(target.rows, logged.rows)
        found = np.add.reduceat(own, [0, *checkpoints.starts])[:-1] / sizes[:-1]
    # Before the first round nothing is known. The number of arms that could be chosen is v_t of a
    # fixed arm under uniform choices.
    first = float(np.count_nonzero(logged.rows[0]))
    return np.repeat([first, *found], sizes)


def mean_squares(target: Propensities, logged: Propensities) -> Floats:
    """Return the mean square of the weight in each round given its context, (n,).

    It is sum_a pi(a)^2 / e(a). Probabilities below `min_support` count as that: a log has too few
    such choices for a normal approximation, and `evaluate` tells what share of the target's choices
    they are.

    Parameters
    ----------
    target, logged : Propensities
        Probabilities of the target and of the logged policy.
    """
    return _second_moment(target.rows, np.maximum(logged.rows, min_support(len(target.rows))))


def min_support(n: int) -> float:
    """Return the smallest probability that counts as support in a log of n rounds."""
    return float(0.1 / np.sqrt(n))


def _second_moment(target: Floats, logged: Floats) -> Floats:
    """Return sum_a pi(a)^2 / e(a) of each row, infinite where e is 0 and pi is not."""
    # A quotient beyond float64 is infinite, as it is with e = 0.
    with np.errstate(divide="ignore", over="ignore"):
        if (logged > 0.0).all():
            plain: Floats = np.einsum("nk,nk->n", target, target / logged)
            return plain
        terms = np.where(target > 0.0, target * target / np.where(target > 0.0, logged, 1.0), 0.0)
    moment: Floats = terms.sum(axis=1)
    return moment

"""Euclidean likelihood of a value: Cressie and Read's power divergence with lambda = -2.

The mean weight is 1 for sure. Probabilities Q of the rounds are therefore chosen near equal ones,
by the smallest mean of (dQ/dP - 1)^2, such that E_Q[w] = 1, and the value is E_Q[w r]
(Karampatziakis, Langford and Mineiro 2020). A weight that no round has may be missing in the log:
one more point joins the n rounds, with the weight 0 or an infinite one.

Let a bar be a mean over these n + 1 points, P. The smallest divergence D = (1 - w_bar)^2 / var(w)
is at dQ/dP = 1 + (1 - w_bar) (w - w_bar) / var(w), where E_Q[w r] is the regression estimate
mean(w r) + (1 - w_bar) cov(w, w r) / var(w). Along the direction in which w r is not explained by
w, the value changes by the root of the divergence that is left: all Q with a divergence of at most
C have values within sqrt((C - D) var(w r | w)) of it, var(w r | w) the residual variance. An
infinite weight is the limit of a large one: its probability vanishes, its share of E_Q[w] does not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from keyhole.core import Floats


def value(weight: Floats, reward: Floats) -> float:
    """Return the value at the largest likelihood.

    The share of the mean weight that a point without a reward has is given the mean reward.

    Parameters
    ----------
    weight, reward : ndarray of shape (n,)
        Importance weights and rewards.
    """
    terms = weight * reward
    if _is_short(weight):
        return float(terms.mean() + (1.0 - weight.mean()) * reward.mean())
    return _zero_weight(weight, terms).centre


def interval(
    weight: Floats, reward: Floats, bounds: tuple[float, float], level: float
) -> tuple[float, float]:
    """Return the values whose likelihood is not too small for a level.

    The divergence may exceed the smallest one by the quantile of F with 1 and n degrees of freedom,
    over n + 1. The missing point has the worst possible reward.

    Parameters
    ----------
    weight, reward : ndarray of shape (n,)
        Importance weights and rewards.
    bounds : tuple of float
        Smallest and largest possible reward.
    level : float
        Confidence level.
    """
    n = len(weight)
    worst, best = bounds
    zero = _zero_weight(weight, weight * reward)
    smallest = 1.0 / n if _is_short(weight) else zero.divergence
    # The square of Student's quantile is that of F with 1 and n degrees of freedom.
    most = smallest + float(stdtrit(n, 0.5 + level / 2.0)) ** 2 / (n + 1)
    low = min(one.centre - one.reach(most) for one in (zero, _infinite(weight, reward, worst)))
    high = max(one.centre + one.reach(most) for one in (zero, _infinite(weight, reward, best)))
    return min(max(low, worst), best), max(min(high, best), worst)


class _Profile(NamedTuple):
    """The likeliest value with one more point, its divergence, and the residual variance of w r."""

    centre: float
    divergence: float
    residual: float

    def reach(self, most: float) -> float:
        """Return how far values with a divergence of at most `most` are; -inf if there are none."""
        left = most - self.divergence
        return math.sqrt(self.residual * left) if left >= 0.0 else -math.inf


def _is_short(weight: Floats) -> bool:
    """Return whether the mean weight is below 1, so that large weights are missing."""
    return math.fsum(weight.tolist()) < len(weight)


def _zero_weight(weight: Floats, terms: Floats) -> _Profile:
    """Return the profile with a point of weight 0, whose reward does not count."""
    n = len(weight) + 1
    mean, mean_term = float(weight.sum()) / n, float(terms.sum()) / n
    off, off_term = weight - mean, terms - mean_term
    spread = (float(off @ off) + mean * mean) / n
    if not spread > 0.0:  # all weights are 0
        return _Profile(mean_term, math.inf, 0.0)
    joint = (float(off @ off_term) + mean * mean_term) / n
    own = (float(off_term @ off_term) + mean_term * mean_term) / n
    return _Profile(
        mean_term + (1.0 - mean) * joint / spread,
        (1.0 - mean) ** 2 / spread,
        max(own - joint * joint / spread, 0.0),
    )


def _infinite(weight: Floats, reward: Floats, missing: float) -> _Profile:
    """Return the profile with a point of an infinite weight.

    Parameters
    ----------
    weight, reward : ndarray of shape (n,)
        Importance weights and rewards.
    missing : float
        Reward of the point.
    """
    n = len(weight)
    terms = weight * (reward - missing)
    return _Profile(missing + float(terms.mean()), 1.0 / n, n / (n + 1) * float(np.var(terms)))

"""Bounds on a running mean that hold at all times at once.

If x_t >= 0 and g_t in [0, 1] is a guess made before x_t, then for every l in [0, 1)
exp(l sum (x - E x) - (-log(1 - l) - l) sum (x - g)^2) is a supermartingale (Fan, Grama and Liu
2015): with an expectation of at most 1, and ever above 1 / alpha with a probability of at most
alpha. The mixture over l with a gamma density has a closed form (Howard, Ramdas, McAuliffe and
Sekhon 2021, proposition 9). It depends on the sum of the expectations alone, so that these may
change from round to round.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammainc, gammaln

from keyhole.core import Floats, Ints

# Parameter of the gamma density: the bound is tightest when sum (x - g)^2 is near it.
RHO = 1.0
# Bisection halves the bracket this many times, to below the rounding of float64.
HALVINGS = 60


def log_wealth(s: Floats, v: Floats) -> Floats:
    """Return the log of the mixture.

    Parameters
    ----------
    s : ndarray
        Sum of x less its expectation.
    v : ndarray
        Sum of (x - g)^2.
    """
    constant = RHO * math.log(RHO) - float(gammaln(RHO)) - math.log(float(gammainc(RHO, RHO)))
    total = s + v + RHO
    shape = v + RHO
    wealth: Floats = (
        s + v + constant - shape * np.log(total) + np.log(gammainc(shape, total)) + gammaln(shape)
    )
    return wealth


def reach(v: Floats, alpha: float) -> Floats:
    """Return how far the sum of x exceeds that of its expectations with probability alpha at most.

    Parameters
    ----------
    v : ndarray
        Sum of (x - g)^2 at several times.
    alpha : float
        Probability that the bound is ever exceeded.
    """
    limit = -math.log(alpha)
    low, high = np.zeros_like(v), 4.0 * np.sqrt((v + 1.0) * limit) + 4.0 * limit
    while (short := log_wealth(high, v) < limit).any():
        high = np.where(short, 2.0 * high, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        is_short = log_wealth(middle, v) < limit
        low, high = np.where(is_short, middle, low), np.where(is_short, high, middle)
    return high


def lower_bounds(x: Floats, first: float, looks: Ints, alpha: float, scale: float = 1.0) -> Floats:
    """Return lower bounds on the mean expectation of x up to each look.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Numbers whose expectation given the past is at least 0 and at most about 1 / `scale`.
        They must be at least 1 / `scale` - 1.
    first : float
        Guess of the expectation before any of them.
    looks : ndarray of int
        Numbers of rounds.
    alpha : float
        Probability that a bound is ever wrong.
    scale : float, default 1.0
        1 + k, for x that may be as low as -k / (1 + k).

    Returns
    -------
    ndarray
        The bounds.
    """
    sums = np.cumsum(x)
    before = np.concatenate([[0.0], sums[:-1]])
    # A guess of at most 1 / scale keeps x - guess at -1 or above, where the inequality holds.
    guess = np.clip((before + first) / np.arange(1, len(x) + 1), 0.0, 1.0 / scale)
    squares = np.cumsum((x - guess) ** 2)
    bounds: Floats = (sums[looks - 1] - reach(squares[looks - 1], alpha)) / looks
    return bounds

"""From expected to realised regret, and the largest loss of any policy: steps 6 to 8.

**Largest gap.** G = max V - min V is a Lipschitz function of u with the constant s, the largest
standard deviation of a gap. By Gaussian concentration P(G > E G + s x) <= exp(-x^2 / 2), and the
sum of G over t rounds, whose constant is s sqrt(t), is at most t E G + s sqrt(2 t log(1 / delta))
with probability 1 - delta. The latter bounds the regret of every policy: the trivial bound. By
symmetry E G = 2 E max V.

**Deviation.** With probability 1 - delta no gap exceeds b = E G + s sqrt(2 log(T / delta)) in T
rounds. Then the loss of a round is X = min(loss, b), with E[X | past] <= r(t). Since exp is convex,
E[exp(x X) | past] <= 1 + (exp(x b) - 1) E[X | past] / b <= exp((exp(x b) - 1) r(t) / b), and by
Markov's inequality with the best x

    P(sum of X >= R + excess) <= exp(-(R / b) ((1 + e) log(1 + e) - e)),   e = excess / R,

with R = sum of r(t). At probability delta, e solves (1 + e) log(1 + e) - e = b log(1 / delta) / R.

All of this holds for the process that is stopped as soon as one of the earlier steps fails.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, lambertw

from keyhole.core import expected_largest
from keyhole.theory.certificates.setting import Setting
from keyhole.theory.ranges import Floats

# Observations per block of a Monte Carlo estimate, and blocks.
BLOCK, BLOCKS = 20_000, 50
# The share of E[u u'] that is cut off where a matrix must be bounded.
CUT = 1e-4


class Shared(NamedTuple):
    """Monte Carlo bounds for a shared context, all of them one-sided.

    Parameters
    ----------
    gap : float
        E G, at most.
    lead : ndarray of shape (n_arms,)
        lambda_min E[u u' 1(i best)], at least.
    """

    gap: float
    lead: Floats


def mean_gap(setting: Setting) -> float:
    """Return E G = E[max V - min V] of own contexts, to 1e-9."""
    largest = expected_largest(np.zeros(setting.n_arms), setting.lengths)
    return 2.0 * largest * (1.0 + 1e-9)


def shared_bounds(setting: Setting, share: float) -> Shared:
    """Return bounds for a shared context from a million observations.

    E G has Gaussian concentration. For E[u u' 1(i best)] observations with |u|^2 > l^2 count as 0,
    which lowers it, and the matrix Bernstein inequality (Tropp, 2012) bounds the rest: with n
    observations, probability 1 - delta and L = log(d N / delta) the mean exceeds its expectation
    by at most (l^2 L / 3 + sqrt((l^2 L / 3)^2 + 2 n L (d + 2))) / n in any direction.

    Parameters
    ----------
    setting : Setting
        A setting with a shared context.
    share : float
        The probability with which one of the bounds may fail.
    """
    n, d = setting.n_arms, setting.dim
    rng = np.random.default_rng(np.random.SeedSequence(0))
    cut = float(chdtri(d + 2, CUT))
    sums, total, size = np.zeros((n, d, d)), 0.0, BLOCK * BLOCKS
    for _ in range(BLOCKS):
        u = rng.standard_normal((BLOCK, d))
        values = u @ setting.h.T
        best = values.max(axis=1)
        total += float((best - values.min(axis=1)).sum())
        kept = (u**2).sum(axis=1) <= cut
        # Of arms that tie, none counts as best: the bound is from below.
        alone = (values == best[:, None]).sum(axis=1) == 1
        for i in range(n):
            mine = u[kept & alone & (values[:, i] == best)]
            sums[i] += mine.T @ mine
    log = np.log(2.0 * d * n / share)
    near = cut * log / 3.0
    off = (near + np.sqrt(near**2 + 2.0 * size * log * (d + 2))) / size
    lead = np.linalg.eigvalsh(sums / size)[:, 0] - off
    gap = total / size + setting.separations.max() * np.sqrt(2.0 * np.log(2.0 / share) / size)
    return Shared(float(gap), lead.clip(min=0.0))


def trivial(setting: Setting, gap: float, rounds: ArrayLike, share: float) -> Floats:
    """Return the trivial bound: t E G + s sqrt(2 t log(1 / delta)).

    Parameters
    ----------
    setting : Setting
        The world and the policy.
    gap : float
        E G.
    rounds : array_like
        t.
    share : float
        The probability with which it may fail.
    """
    t = np.asarray(rounds, dtype=np.float64)
    spread = setting.separations.max() * np.sqrt(2.0 * t * np.log(1.0 / share))
    found: Floats = t * gap + spread
    return found


def largest_gap(setting: Setting, gap: float, rounds: int, share: float) -> float:
    """Return b, which no gap exceeds.

    Parameters
    ----------
    setting : Setting
        The world and the policy.
    gap : float
        E G.
    rounds : int
        The number of rounds.
    share : float
        The probability with which it may fail.
    """
    return float(gap + setting.separations.max() * np.sqrt(2.0 * np.log(rounds / share)))


def excess(expected: ArrayLike, limit: float, share: float) -> Floats:
    """Return a bound on a sum of losses less the sum of their bounded expectations.

    Parameters
    ----------
    expected : array_like
        R, the sum of the bounds on expectations.
    limit : float
        b, which no loss exceeds.
    share : float
        The probability with which it may fail.

    Examples
    --------
    >>> e = float(excess(2.0, 0.5, np.exp(-3.0))) / 2.0
    >>> round(float((1 + e) * np.log(1 + e) - e), 9)
    0.75
    """
    r = np.asarray(expected, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        level = limit * np.log(1.0 / share) / r
        e = np.expm1(1.0 + np.real(lambertw((level - 1.0) / np.e)))
        found: Floats = np.where(r > 0.0, r * e, 0.0)
    return found

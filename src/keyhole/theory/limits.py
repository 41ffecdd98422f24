"""One-sided limits for constants that are estimated, on the side on which bounds stay true.

Each is exceeded on its wrong side with probability `MISS` at most, by exact binomial tails. That is
a probability of the estimate, not of a run, and does not count in delta.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln
from scipy.stats import beta, binom

from keyhole.theory.ranges import Floats

# The probability that a safe value is on the wrong side of the constant.
MISS = 1e-3


def lowest_median(values: Floats, *, miss: float = MISS) -> float:
    """Return a number that the median of a distribution is not below, from a sample of it.

    It is the order statistic of rank k, the largest k with P(Binomial(n, 1/2) < k) <= miss; 0 for
    samples that are too small, where values are at least 0.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The sample.
    miss : float, default 0.001
        The probability that the median is below.

    Examples
    --------
    >>> float(lowest_median(np.arange(1.0, 11.0), miss=0.011))  # P(Binomial(10, 1/2) < 2) = 0.0107
    2.0
    """
    n = len(values)
    rank = int(binom.ppf(miss, n, 0.5)) if n else 0
    # ppf gives the smallest k with P(X <= k) >= miss; P(X < rank) <= miss is what is needed.
    if n and binom.cdf(rank, n, 0.5) <= miss:
        rank += 1
    return float(np.sort(values)[rank - 1]) if rank else 0.0


def lowest_probability(p: float, error: float, *, miss: float = MISS) -> float:
    """Return a number that a probability is not below, from its estimate by counting.

    The limit of Clopper and Pearson. An error of 0 means an exact probability.

    Parameters
    ----------
    p, error : float
        The share counted, and its standard error, at least 1 / n for n rounds.
    miss : float, default 0.001
        The probability that the true one is below.

    Examples
    --------
    >>> lowest_probability(0.3, 0.0), lowest_probability(0.0, 1e-5)
    (0.3, 0.0)
    >>> 0.25 < lowest_probability(0.3, 0.014491376746189438) < 0.26  # 300 of 1000 rounds
    True
    """
    if error == 0.0:
        return p
    n = max(p * (1.0 - p) / error**2, 1.0 / error)
    # Ties are shared between arms: a share may be no whole number, and less is safe.
    wins = np.floor(p * n + 1e-6)
    return float(beta.ppf(miss, wins, n - wins + 1.0)) if wins > 0.0 else 0.0


def largest_margin(eta: Floats, covariance: Floats, p: Floats, *, shared_context: bool) -> float:
    """Return a number that the margin constant of a normal world does not exceed (ass:mar).

    With g standard normal and y = Sigma^(1/2) g, the gap is w'g and |y| <= sqrt(eig_max) |g|. The
    direction of g is uniform on a sphere, and P(0 < w'g <= u |g|) <= k u / |w|: k is the density
    of a coordinate at 0, or 1/2 in dimensions 1 and 2. Being best costs the factor 1 / p_i.

    Parameters
    ----------
    eta : ndarray of shape (n_arms, dim)
        The learnable parameters.
    covariance : ndarray of shape (dim, dim)
        Sigma_y.
    p : ndarray of shape (n_arms,)
        The probability of each arm to be best, or less. NaN for an arm that never is, of which
        ass:mar says nothing.
    shared_context : bool
        Whether all arms see one observation.

    Examples
    --------
    >>> two = np.array([[1.0], [-1.0]])  # the gap over |y| is sqrt(2) |cos|: C = 1 / sqrt(2)
    >>> p = np.array([0.5, 0.5])
    >>> round(largest_margin(two, np.eye(1), p, shared_context=False) * 2**0.5, 12)
    1.0
    """
    n_arms, dim = eta.shape
    spread = eta @ covariance @ eta.T
    squares = np.diag(spread)
    crossed = 2.0 * spread if shared_context else 0.0
    gaps = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - crossed, 0.0))
    m = dim if shared_context else n_arms * dim
    longest = np.linalg.eigvalsh(covariance)[-1] * (n_arms if shared_context else 1)
    peak = np.exp(gammaln(m / 2) - gammaln((m - 1) / 2)) / np.sqrt(np.pi) if m > 2 else 0.5
    of_pairs = [
        peak * np.sqrt(longest) / (gaps[i, j] * p[i]) if p[i] > 0.0 else np.inf
        for i in range(n_arms)
        for j in range(n_arms)
        # Arms whose values are always equal have no gap to be small.
        if i != j and not np.isnan(p[i]) and gaps[i, j] > 1e-9 * np.sqrt(squares[i] + squares[j])
    ]
    return float(max(of_pairs, default=0.0))

"""The mean of B^-1 after a number of pulls, from the mean of B.

B is the prior precision plus a sum of random matrices y y'. The mean of its inverse is larger than
the inverse of its mean: with fewer pulls than dimensions some directions are not seen at all. The
deterministic equivalent of random-matrix theory divides the sum by 1 + q, with q = y'B^-1 y of a
typical pull, which itself follows from B. For many pulls q tends to 0.
"""

from __future__ import annotations

import numpy as np

from keyhole.theory.ranges import Floats

STEPS, CLOSE = 100, 1e-10


def mean_covariance(prior: Floats, seen: Floats, pulls: Floats) -> Floats:
    """Return the mean of B^-1 of each parameter, (n, rank, rank).

    q solves q = tr(B^-1 seen) / pulls. The right side is increasing and concave in q, so that
    Newton's method from its limit for q -> infinity decreases to the only solution.

    Parameters
    ----------
    prior : ndarray of shape (rank, rank)
        The prior precision.
    seen : ndarray of shape (n, rank, rank)
        The mean of the sum of y y' of each parameter.
    pulls : ndarray of shape (n,)
        The mean number of pulls of each.
    """
    q = np.trace(np.linalg.solve(prior, seen), axis1=1, axis2=2) / pulls
    for _ in range(STEPS):
        covariance = np.linalg.inv(prior + seen / (1.0 + q)[:, None, None])
        share = covariance @ seen
        right = np.trace(share, axis1=1, axis2=2) / pulls
        slope = np.einsum("kij,kji->k", share, share) / pulls / (1.0 + q) ** 2
        step = (right - q) / (1.0 - slope)
        q = q + step
        if (np.abs(step) <= CLOSE * (1.0 + q)).all():
            break
    return np.asarray(np.linalg.inv(prior + seen / (1.0 + q)[:, None, None]))

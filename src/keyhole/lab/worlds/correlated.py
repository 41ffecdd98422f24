"""Closed forms for the probability that each of up to four correlated normals is the largest."""

from __future__ import annotations

import numpy as np

from keyhole.core import Floats

# Orthants of more than three correlated normals have no closed form.
MAX_NORMALS = 4
# A difference below this share of the largest is a tie up to rounding. Leads with a correlation
# this close to 1 count as equal: the arcsine would turn an error of 1e-16 there into 1e-8.
TIE = 1e-12


def largest_of(covariance: Floats) -> Floats | None:
    """Return the probability that each of up to four centred normals is the largest, or None.

    Normal i is the largest if its leads over all others are positive. With the correlations r of
    the leads this has probability 1/2, 1/4 + asin(r) / 2 pi, or 1/8 + (asin(r_12) + asin(r_13) +
    asin(r_23)) / 4 pi.

    Examples
    --------
    >>> largest_of(np.eye(4))
    array([0.25, 0.25, 0.25, 0.25])
    """
    n = len(covariance)
    if n > MAX_NORMALS:
        return None
    if n == 1:
        return np.ones(1)
    spread = np.diag(covariance)
    apart = spread[:, None] + spread[None, :] - 2.0 * covariance
    if (apart[~np.eye(n, dtype=bool)] <= TIE * spread.max()).any():
        return None
    return np.array([_leads(covariance, apart, i) for i in range(n)])


def _leads(covariance: Floats, apart: Floats, i: int) -> float:
    others = [j for j in range(len(covariance)) if j != i]
    angles = 0.0
    for k, a in enumerate(others):
        for b in others[k + 1 :]:
            joint = covariance[i, i] - covariance[i, a] - covariance[i, b] + covariance[a, b]
            correlation = joint / np.sqrt(apart[i, a] * apart[i, b])
            whole = abs(correlation) > 1.0 - TIE
            angles += float(np.arcsin(np.sign(correlation) if whole else correlation))
    m = len(others)
    chance = 0.5**m + angles / (2.0**m / 2.0 * np.pi)
    return chance if chance > TIE else 0.0

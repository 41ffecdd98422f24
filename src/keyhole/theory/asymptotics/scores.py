"""Choices by independent scores that equal the values of arms up to an error.

Given its value s z (z standard normal), arm k's score is normal about slope z with the variance
flat + bent z^2. All scores are centred at 0, so that one grid over scores serves every arm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keyhole.theory.asymptotics.grids import REACH, graded, others
from keyhole.theory.ranges import Floats

# Nodes over z given a score. The integrand is a normal density times a smooth function.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
# Steps of the fixed point that centres the nodes; the rule is accurate wherever they stand.
CENTRING = 3
# Nodes about z fail if the variance nearly vanishes at z = 0 while the slope is no larger than this
# many standard deviations of it: the density then has a peak at 0 that no polynomial follows.
STEEP, PEAKED = 8.0, 2.0
# The part of a score's width to which its peak at 0 is resolved, and the nodes over the factor w.
# Their number is even: a node at w = 0 would give a score of 0 a mass of its own.
FINE, FACTORS = 1e-4, 192


class Spread(NamedTuple):
    """The distribution of each arm's score given its value.

    Parameters
    ----------
    slope, flat, bent : ndarray of shape (n_arms,)
        The score is normal about slope z, with the variance flat + bent z^2.
    """

    slope: Floats
    flat: Floats
    bent: Floats


def chosen_moments(spread: Spread) -> Floats:
    """Return E[Z_k^q 1(k has the largest score)] for q = 0, 1, 2, as (3, n_arms)."""
    from scipy.interpolate import CubicSpline  # here, since importing it takes long

    slope, flat, bent = (part[:, None] for part in spread)
    # Rounding may put a variance below 0 where nothing is left to know: no arm is narrower than
    # 1e-12 of the widest.
    variance = slope**2 + flat + bent
    widths = np.sqrt(variance.clip(min=1e-24 * variance.max()))
    peaked = ((flat < PEAKED * bent) & (slope**2 < STEEP**2 * bent)).ravel()
    # Where the variance grows with z^2, tails are heavier than those of a normal distribution.
    narrowest = widths.min() * (FINE if peaked.any() else 1.0)
    grid = graded(narrowest, np.sqrt((slope**2 + flat + 3.0 * bent).max()) * 1.5)
    moments = np.empty((3, len(slope), len(grid.x)))
    for arms, rule in ((peaked, _peaked_moments), (~peaked, _moments)):
        if arms.any():
            moments[:, arms] = rule(slope[arms], flat[arms], bent[arms], grid.x)
    along = moments[0] * grid.weights / (grid.u[1] - grid.u[0])
    below = CubicSpline(grid.u, along, axis=1).antiderivative()(grid.u)
    below /= below[:, -1:]
    result: Floats = (moments * others(below) * grid.weights).sum(axis=2)
    result /= result[0].sum()  # 1 up to the error of the quadrature
    return result


def _moments(slope: Floats, flat: Floats, bent: Floats, score: Floats) -> Floats:
    """Return E[Z^q; score], the density of a score times the moments of Z given it.

    Given the variance, Z is normal about a multiple of the score; the Gauss-Hermite nodes stand
    about that, and their weights are corrected for the variance that z itself changes.
    """
    centre = score * slope / (slope**2 + flat + bent)
    for _ in range(CENTRING):
        centre = score * slope / (slope**2 + flat + bent * centre**2)
    variance = flat + bent * centre**2
    width = np.sqrt(variance / (slope**2 + variance))
    result = np.zeros((3, *centre.shape))
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        z = centre + width * node
        variance = flat + bent * z**2
        exponent = 0.5 * (node**2 - z**2 - (score - slope * z) ** 2 / variance)
        mass = weight * width * np.exp(exponent) / np.sqrt(variance)
        result += mass * np.stack([np.ones_like(z), z, z**2])
    scaled: Floats = result / (2.0 * np.pi)
    return scaled


def _peaked_moments(slope: Floats, flat: Floats, bent: Floats, score: Floats) -> Floats:
    """Return what `_moments` returns, where the density of a score may peak at 0.

    A score is w Z + flat^1/2 n with w = slope + bent^1/2 m, and n and m standard normal. Given w,
    Z and the score are jointly normal, and all moments are known. What remains is an integral over
    w, on a grid that is fine about w = 0, where the density of a score given w is the narrowest.
    """
    bend = np.sqrt(bent)
    reach = (np.abs(slope) / bend + REACH).max()
    grid = graded(FINE * reach, reach / REACH, FACTORS)
    result = np.zeros((3, len(slope), len(score)))
    for u, weight in zip(grid.x, grid.weights, strict=True):
        w = bend * u
        variance = w**2 + flat
        mean = score * w / variance
        exponent = -0.5 * (score**2 / variance + (u - slope / bend) ** 2)
        mass = weight * np.exp(exponent) / np.sqrt(variance)
        result += mass * np.stack([np.ones_like(mean), mean, mean**2 + flat / variance])
    scaled: Floats = result / (2.0 * np.pi)
    return scaled

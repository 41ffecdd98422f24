"""The two brackets that several bounds have in common."""

from __future__ import annotations

from numpy import log, sqrt

from keyhole.theory.constants import Constants
from keyhole.theory.ranges import Floats


def radius(c: Constants, n: Floats, length: Floats) -> Floats:
    """Return R sqrt(d_y log((1 + L^2 n) / delta)) + c_eta, log(1 / delta) twice if d_y = 1.

    Parameters
    ----------
    c : Constants
        The constants of the instance.
    n : float or ndarray
        The number of pulls.
    length : float or ndarray
        L, which no observation exceeds.
    """
    logs = c.dim * log(1.0 + length**2 * n) + max(c.dim, 2) * log(1.0 / c.delta)
    return c.r * sqrt(logs) + c.c_eta


def spread(c: Constants, horizon: Floats, length: Floats) -> Floats:
    """Return v sqrt(2 d_y log(2 T N / delta)) + the radius after T pulls, as in lem:eta1.

    Parameters
    ----------
    c : Constants
        The constants of the instance.
    horizon : float or ndarray
        T, the number of rounds.
    length : float or ndarray
        L, which no observation exceeds.
    """
    drawn = c.v * sqrt(2.0 * c.dim * log(2.0 * horizon * c.n_arms / c.delta))
    return drawn + radius(c, horizon, length)

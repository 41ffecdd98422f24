"""Observations, eigenvalues and estimates: lem:tr to lem:eta1 (appendix C)."""

from __future__ import annotations

import numpy as np
from numpy import log, power, sqrt

from keyhole.theory.bounds.brackets import radius, spread
from keyhole.theory.bounds.decorator import bound
from keyhole.theory.constants import Constants
from keyhole.theory.ranges import Floats


@bound("lem:tr", "no entry of any observation is larger")
def truncation(c: Constants, *, horizon: Floats) -> Floats:
    """Return v_T(delta) = c_y sqrt(2 log(2 T N d_y / delta)) (lem:tr).

    No entry of an observation exceeds it, with probability at least 1 - delta, for all arms and
    rounds at once.
    """
    return c.c_y * sqrt(2.0 * log(2.0 * horizon * c.n_arms * c.dim / c.delta))


@bound("eq:ybnd", "no observation is longer", rests_on=("truncation",))
def length(c: Constants, *, horizon: Floats) -> Floats:
    """Return L = sqrt(d_y) v_T(delta) (eq:ybnd), or `c.longest` where it is given."""
    if c.longest is not None:
        return np.full(np.shape(horizon), c.longest)
    return sqrt(c.dim) * truncation(c, horizon=horizon)


@bound(
    "lem:subg",
    "radius of an arm's ellipsoid after as many pulls as rounds, if no observation is longer "
    "than L",
    rests_on=("length",),
    repair="mean - eta = B^-1 (S - eta), which gives + c_eta; R^2 on the right of |S|^2; "
    "log(1 / delta) twice where d_y = 1",
)
def confidence_radius(c: Constants, *, horizon: Floats, n: Floats) -> Floats:
    """Return R sqrt(d_y log((1 + L^2 n) / delta)) + c_eta (lem:subg).

    |mean - eta| in the norm of B stays within it for all rounds at once, with probability at least
    1 - delta for each arm. The paper's proof has a square on the left and none on the right, and
    writes B^-1 S for mean - eta = B^-1 (S - eta): that term is the c_eta. It is for d_y >= 2:
    eq:stau has log(1 / delta) twice, which d_y = 1 would lose, and keeps here. For all N arms at
    once, give delta / N; lem:eta0 and what follows from it are for one arm, too. The miss has
    probability delta besides that of an observation longer than L (lem:tr).
    """
    return radius(c, n, length(c, horizon=horizon))


@bound(
    "lem:eig",
    "pulls from which B's eigenvalues are said to grow",
    rests_on=("length",),
    gaps=("selection", "direction", "truncation"),
)
def nu_1(c: Constants, *, horizon: Floats) -> Floats:
    """Return nu_(1) = 8 L^4 log(T N / delta) / lambda_m^2 (lem:eig).

    Pulls from which `covariance_bound` is claimed. The proof is for one direction and then used for
    all, and ignores that the choice of an arm selects y. With a shared context it is false.
    """
    # `power` rounds alike for numbers and arrays; ** does not.
    fourth = power(length(c, horizon=horizon), 4)
    return 8.0 * fourth * log(horizon * c.n_arms / c.delta) / c.lambda_m**2


@bound("lem:eig", "largest eigenvalue of B^-1", starts="nu_1", rests_on=("nu_1",), of_arm=True)
def covariance_bound(c: Constants, *, n: Floats) -> Floats:
    """Return 2 / (lambda_m n) (lem:eig).

    The largest eigenvalue of B^-1 does not exceed it from nu_1 on. lem:eta1's proof writes the
    square root of it: the eigenvalue itself is meant.
    """
    return 2.0 / (c.lambda_m * n)


@bound(
    "eq:h",
    "estimation error times the root of the pulls",
    starts="nu_1",
    rests_on=("confidence_radius", "nu_1"),
    gaps=("delta",),
)
def h(c: Constants, *, horizon: Floats) -> Floats:
    """Return h = sqrt(2 / lambda_m) (R sqrt(d_y log((1 + T L^2) / delta)) + c_eta) (eq:h)."""
    return sqrt(2.0 / c.lambda_m) * radius(c, horizon, length(c, horizon=horizon))


@bound("lem:eta0", "|mean - eta|", starts="nu_1", rests_on=("h",), of_arm=True)
def estimation_error(c: Constants, *, horizon: Floats, n: Floats) -> Floats:
    """Return h / sqrt(n), which |mean - eta| does not exceed from nu_1 on (lem:eta0)."""
    return h(c, horizon=horizon) / sqrt(n)


@bound(
    "lem:eta1",
    "|sample - eta|",
    starts="nu_1",
    rests_on=("h",),
    repair="the largest eigenvalue of B^-1 is 2 / (lambda_m n), without a root",
    of_arm=True,
)
def sampling_error(c: Constants, *, horizon: Floats, n: Floats) -> Floats:
    """Return a bound on |sample - eta| after n pulls, from nu_1 on (lem:eta1).

    sqrt(2 / (lambda_m n)) (v sqrt(2 d_y log(2 T N / delta)) + R sqrt(d_y log((1 + T L^2) / delta))
    + c_eta).
    """
    bracket = spread(c, horizon, length(c, horizon=horizon))
    return sqrt(2.0 / c.lambda_m) * bracket / sqrt(n)

"""Observations, eigenvalues and estimates: lem:tr to lem:eta1 (appendix C)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from keyhole.theory.bounds.guards import guarded
from keyhole.theory.bounds.parts import Floats, floats, radius, root, spread


@guarded
def truncation(*, horizon: ArrayLike, n_arms: int, dim: int, c_y: float, delta: float) -> Floats:
    """v_T(delta) = c_y sqrt(2 log(2 T N d_y / delta)), which no entry of an observation exceeds.

    With probability at least 1 - delta, for all arms and rounds at once (lem:tr).
    """
    return floats(c_y * np.sqrt(2.0 * np.log(2.0 * floats(horizon) * n_arms * dim / delta)))


@guarded
def length(*, horizon: ArrayLike, n_arms: int, dim: int, c_y: float, delta: float) -> Floats:
    """L = sqrt(d_y) v_T(delta), which the length of no observation exceeds (eq:ybnd)."""
    largest = truncation(horizon=horizon, n_arms=n_arms, dim=dim, c_y=c_y, delta=delta)
    return floats(np.sqrt(dim) * largest)


@guarded
def confidence_radius(
    n: ArrayLike, *, dim: int, r: float, c_eta: float, length: ArrayLike, delta: float
) -> Floats:
    """R sqrt(d_y log((1 + L^2 n) / delta)) + c_eta, the radius of an arm's confidence ellipsoid.

    |mean - eta| in the norm of B stays within it for all rounds at once, with probability at least
    1 - delta for each arm (lem:subg). The paper's proof has a square on the left and none on the
    right, and writes B^-1 S for mean - eta = B^-1 (S - eta): that term is the c_eta. It is for
    d_y >= 2: eq:stau has log(1 / delta) twice, which d_y = 1 would lose, and keeps here. For all N
    arms at once, delta / N is to be given; lem:eta0 and what follows from it are for one arm, too.
    The miss has probability delta besides that of an observation longer than L (lem:tr).

    >>> confidence_radius(2, dim=2, r=1.0, c_eta=0.5, length=1.0, delta=3 / np.e**2).round(12)
    np.float64(2.5)
    """
    return radius(n, dim, r, c_eta, length, delta)


@guarded
def nu_1(
    *, horizon: ArrayLike, n_arms: int, length: ArrayLike, lambda_m: float, delta: float
) -> Floats:
    """nu_(1) = 8 L^4 log(T N / delta) / lambda_m^2, pulls from which `covariance_bound` holds.

    lem:eig, which is open: its proof is for one direction and then used for all, and ignores
    that the choice of an arm selects y. With a shared context it is false.
    """
    logarithm = np.log(floats(horizon) * n_arms / delta)
    return floats(np.divide(8.0 * floats(length) ** 4 * logarithm, lambda_m**2))


@guarded
def covariance_bound(n: ArrayLike, *, lambda_m: float) -> Floats:
    """2 / (lambda_m n), which the largest eigenvalue of B^-1 does not exceed from nu_1 on.

    lem:eig. lem:eta1's proof writes the square root of it: the eigenvalue itself is meant.
    """
    return floats(np.divide(2.0, lambda_m * floats(n)))


@guarded
def h(
    *,
    horizon: ArrayLike,
    dim: int,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """sqrt(2 / lambda_m) (R sqrt(d_y log((1 + T L^2) / delta)) + c_eta) (eq:h)."""
    return floats(root(2.0, lambda_m) * radius(horizon, dim, r, c_eta, length, delta))


@guarded
def estimation_error(
    n: ArrayLike,
    *,
    horizon: ArrayLike,
    dim: int,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """h / sqrt(n), which |mean - eta| does not exceed after n pulls, from nu_1 on (lem:eta0)."""
    constant = h(
        horizon=horizon, dim=dim, r=r, c_eta=c_eta, length=length, lambda_m=lambda_m, delta=delta
    )
    return floats(constant / np.sqrt(floats(n)))


@guarded
def sampling_error(
    n: ArrayLike,
    *,
    horizon: ArrayLike,
    n_arms: int,
    dim: int,
    v: float,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """What |sample - eta| does not exceed after n pulls, from nu_1 on (lem:eta1)."""
    bracket = spread(horizon, n_arms, dim, v, r, c_eta, length, delta)
    return floats(root(2.0, lambda_m) * bracket / np.sqrt(floats(n)))

"""`Constants`: the numbers that the bounds are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keyhole.theory.ranges import Range

AT_LEAST_0 = Range(0.0)
COUNT = Range(1.0, high=1e15, whole=True)
# Infinite constants are allowed where the theory has them: their bounds promise nothing.
RANGES = {
    "n_arms": COUNT,
    "dim": COUNT,
    "delta": Range(0.0, high=1.0, open_ends=True),
    "p_min": Range(0.0, high=1.0),
    **dict.fromkeys(
        ("kappa", "margin", "lambda_m", "c_eta", "c_y", "r", "v", "eig_min", "eig_max"), AT_LEAST_0
    ),
    "tie_density": AT_LEAST_0,
}


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of an instance, the dispersion v and the probability delta, as numbers.

    A constant that is not given is unknown. Its default is the value with which the bounds that
    depend on it promise nothing. `Instance.constants` makes them from a world.

    Parameters
    ----------
    n_arms : int
        N, the number of arms.
    dim : int
        d_y, the dimension of an observation.
    delta : float, default 0.05
        The probability with which a bound may fail, above 0 and below 1.
    p_min : float, default 0
        The smallest positive probability that an arm is best (thm:reg2).
    kappa : float, default 0
        The normalised gap by which the best arm leads half of the time (eq:kappa).
    margin : float, default inf
        C, the margin constant (ass:mar).
    lambda_m : float, default 0
        The smallest eigenvalue of the sensing noise's covariance (eq:vt).
    c_eta : float, default inf
        The length of the longest eta_i (ass:para).
    c_y : float, default inf
        The sub-Gaussian constant of the entries of an observation (eq:cy).
    r : float, default inf
        R, the sub-Gaussian constant of a reward about y'eta (lem:subg).
    v : float, default inf
        The dispersion of Thompson sampling.
    eig_min : float, default 0
        The smallest eigenvalue of Sigma_y, the covariance of an observation. Known only where
        contexts are the arms' own and normal, as the repaired bounds need it.
    eig_max : float, default inf
        The largest eigenvalue of Sigma_y, where contexts are normal.
    tie_density : float, default inf
        D, a bound on the density at 0 of gaps between values of two arms, added up over all
        ordered pairs: the sum of 1 / sqrt(2 pi (s_i^2 + s_j^2)), s_i^2 = eta_i' Sigma_y eta_i.
    longest : float, optional
        A length that no observation exceeds, in place of the L of eq:ybnd.

    Raises
    ------
    InvalidValue
        If a constant is outside of its range.

    Examples
    --------
    >>> from keyhole.theory import bounds
    >>> c = Constants(n_arms=1, dim=2, r=1.0, c_eta=0.5, longest=1.0, delta=3 / np.e**2)
    >>> float(bounds.confidence_radius(c, horizon=100, n=2).round(12))
    2.5
    >>> float(bounds.theorem_2(c, horizon=100))
    inf
    """

    n_arms: int
    dim: int
    delta: float = 0.05
    p_min: float = 0.0
    kappa: float = 0.0
    margin: float = np.inf
    lambda_m: float = 0.0
    c_eta: float = np.inf
    c_y: float = np.inf
    r: float = np.inf
    v: float = np.inf
    eig_min: float = 0.0
    eig_max: float = np.inf
    tie_density: float = np.inf
    longest: float | None = None

    def __post_init__(self) -> None:
        allowed = RANGES if self.longest is None else {**RANGES, "longest": AT_LEAST_0}
        for name, each in allowed.items():
            number = each.checked(f"Constants.{name}", getattr(self, name))
            object.__setattr__(self, name, int(number) if each.whole else number)

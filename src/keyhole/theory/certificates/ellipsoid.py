"""Errors of the estimates: steps 3 and 4 of a certificate.

**Spectrum.** S_i(t) is at most the sum of u u' over all rounds before t, a Wishart matrix: with
probability 1 - exp(-x^2 / 2) its largest eigenvalue is at most omega = (sqrt(t) + sqrt(d) + x)^2
(Davidson and Szarek, 2001). It is needed at the end of every epoch, for every arm.

**Ellipsoid.** Let V be the sum of y y' over the pulls of an arm, and s that of y times the noise,
which is R-sub-Gaussian given the past, the observations and the choice. For a fixed matrix Gamma >
0 (Abbasi-Yadkori, Pal and Szepesvari, 2011, theorem 1), with probability 1 - delta for all t

    s'(V + Gamma)^-1 s <= R^2 (log det(I + Gamma^-1 V) + 2 log(1 / delta)).

An epoch [t_e, t_(e+1)) has Gamma = prior I + gamma Sigma, with a gamma that is fixed beforehand.
Since B = prior I + V >= prior I + m Sigma with m from step 2, V + Gamma = B + gamma Sigma <= k B
with k = 1 + gamma sigma_1 / (prior + m sigma_1), where sigma_1 is the largest eigenvalue of Sigma.
The mean is off by B^-1 (s - prior eta), hence

    |mean - eta|_B <= R sqrt(k (sum_k log(1 + omega sigma_k / (prior + gamma sigma_k))
                               + 2 log(1 / delta))) + prior |eta|_(prior I + m Sigma)^-1.

gamma = 0 is the usual ellipsoid, whose log det grows with d log t; with gamma in proportion to m it
is d log(t / m). Each epoch and arm takes the gamma that makes the bound smallest.
"""

from __future__ import annotations

import numpy as np

from keyhole.theory.certificates.setting import Setting
from keyhole.theory.ranges import Floats

# gamma as multiples of m, the bound on the information.
GAMMAS = np.array([0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.6, 0.9])


def spectrum(rounds: float, dim: int, share: float) -> float:
    """Return a bound on the largest eigenvalue of a sum of u u' over rounds.

    Parameters
    ----------
    rounds : float
        The number of rounds.
    dim : int
        The dimension of u.
    share : float
        The probability with which it may fail.

    Examples
    --------
    >>> round(spectrum(100, 4, np.exp(-2.0)))
    196
    """
    return float((np.sqrt(rounds) + np.sqrt(dim) + np.sqrt(2.0 * np.log(1.0 / share))) ** 2)


class Ellipsoid:
    """The radius of |mean - eta|_B of every arm during one epoch.

    Parameters
    ----------
    setting : Setting
        The world and the policy.
    information : ndarray of shape (n_arms,)
        The bound m on lambda_min(S_i) at the start of the epoch, by which gamma is chosen.
    omega : float
        The bound on lambda_max(S_i) at its end.
    share : float
        The probability with which the ellipsoid of one arm may fail in this epoch.
    """

    def __init__(self, setting: Setting, information: Floats, omega: float, share: float) -> None:
        self.setting = setting
        gammas = np.multiply.outer(information, GAMMAS)  # (n_arms, gammas)
        sigma, prior = setting.scales, setting.prior
        spread = omega * sigma / (prior + gammas[..., None] * sigma)
        inner = np.log1p(spread).sum(axis=2) + 2.0 * np.log(1.0 / share)
        chosen = (_loss(setting, gammas, information[:, None]) * inner).argmin(axis=1)
        arms = np.arange(setting.n_arms)
        self.gamma, self.inner = gammas[arms, chosen], inner[arms, chosen]

    def radii(self, information: Floats) -> Floats:
        """Return the radius of each arm, given the information so far.

        Parameters
        ----------
        information : ndarray of shape (n_arms,)
            The bound m on lambda_min(S_i), at least that at the start of the epoch.
        """
        one = self.setting
        noise = one.noise * np.sqrt(_loss(one, self.gamma, information) * self.inner)
        shrunk = one.eta**2 / (one.prior + np.multiply.outer(information, one.scales))
        radii: Floats = noise + one.prior * np.sqrt(shrunk.sum(axis=1))
        return radii


def _loss(setting: Setting, gamma: Floats, information: Floats) -> Floats:
    """Return k, with which B + gamma Sigma <= k B."""
    largest = setting.scales.max()
    loss: Floats = 1.0 + gamma * largest / (setting.prior + information * largest)
    return loss

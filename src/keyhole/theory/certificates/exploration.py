"""Exploration of every arm, whatever was learned: steps 1 and 2 of a certificate.

**Exploration.** Own contexts. Given the past, the score of arm j is S_j = u_j'm_j + v w_j z_j with
m_j fixed and w_j an even function of u_j. Under (u, z) -> (-u, -z) it changes its sign, so it is
symmetric about 0, and scores are independent. Ties are broken at random, which is to compare (S_j,
U_j) in lexicographic order with independent uniform U_j; that order is reversed by U -> 1 - U. Let
F_j be the probability that (S_j, U_j) is below (S_i, U_i), given the latter. All F_j - 1/2 =: x_j
have one sign, and they change it together under the reflection of arm i. Therefore, with f any even
function of u_i that is at least 0,

    E[f(u_i) 1(a = i) | past] = E[f(u_i) (prod (1/2 + x_j) + prod (1/2 - x_j)) / 2]
                             >= 2^-(N-1) E f(u_i),

since in the sum of the two products the odd terms cancel, and the even ones are at least 0. This
holds for Greedy at its start too, where all scores are 0.

**Information.** S_i(t) is the sum of X = u u' 1(a = i) over rounds before t. For theta > 0,
exp(-theta X) = I - g(|u|^2) u u' 1(a = i) with g(r) = (1 - exp(-theta r)) / r. By the above with f
= g(|u|^2) (z'u)^2, and since E exp(-theta |u|^2) = (1 + 2 theta)^(-d/2),

    E[exp(-theta X) | past] <= c I,   c = 1 - q (1 - (1 + 2 theta)^(-d/2)) / d,   q = 2^-(N-1).

By the Golden-Thompson inequality tr exp(A + B) <= tr exp(A) exp(B), tr exp(-theta S_i(t)) / c^(t-1)
is a supermartingale that begins at d. By Ville's inequality it ever exceeds d / delta with
probability at most delta. As tr exp(-theta S) >= exp(-theta lambda_min(S)),

    lambda_min(S_i(t)) >= (sum over s < t of log(1 / c_s) - log(d / delta)) / theta   for all t,

simultaneously for all t: no union over rounds is needed, no observation has to be truncated, and
the rates may change over time if they are fixed beforehand. The best of several theta is taken, at
delta / (N K) each.

This replaces the truncation and the matrix Chernoff bound for adapted sequences (Tropp, 2011),
which lose a logarithm.

**Exploration once estimates are near.** See `confusion.py` for cone_ij, which bounds lambda_max
E[u_i u_i' 1(i is best, j beats i) | past]. As 1(a = i) >= 1(i best) - sum over j of 1(i best, j
beats i), g(r) >= theta - theta^2 r / 2 and g <= theta,

    log(1 / c) >= theta (lead_i - sum over j of cone_ij) - theta^2 fourth_i / 2,

with lead_i <= lambda_min E[u u' 1(i best)] and fourth_i >= lambda_max E[|u|^2 u u' 1(i best)]. Own
contexts: arm i is best with a probability H(V_i) that increases in V_i, and the even part of H
increases in |V_i|; by Chebyshev's association inequality lead_i = p_i. The fourth moments are
integrals over V_i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

from keyhole.core import choice_probabilities
from keyhole.theory.certificates.setting import Setting
from keyhole.theory.ranges import Floats

# How many values of theta the best is taken of.
THETAS = 12
LARGEST_THETA = 4.0
# Absolute error that is allowed for numerical integrals, which are exact to about 1e-11.
QUADRATURE = 1e-8


def exploration(n_arms: int) -> float:
    """Return q = 2^-(N-1), below which no arm's exploration can fall."""
    return 2.0 ** -(n_arms - 1)


def chernoff_rates(q: float, dim: int, thetas: Floats) -> Floats:
    """Return log(1 / c) for each theta, with c = 1 - q (1 - (1 + 2 theta)^(-d/2)) / d.

    Parameters
    ----------
    q : float
        The exploration: E[f(u) 1(a = i) | past] >= q E f(u) for even f >= 0.
    dim : int
        The dimension d.
    thetas : ndarray
        The arguments of the Laplace transform.

    Examples
    --------
    >>> bool(np.isclose(chernoff_rates(0.5, 2, np.array([0.5]))[0], -np.log(7 / 8)))
    True
    """
    rates: Floats = -np.log1p(q / dim * np.expm1(-0.5 * dim * np.log1p(2.0 * thetas)))
    return rates


class Information:
    """A lower bound on lambda_min(S_i) of every arm, which grows round by round.

    Parameters
    ----------
    setting : Setting
        The world and the policy.
    horizon : int
        The last round, for which theta is chosen.
    share : float
        The probability with which the bound may ever fail for any arm.
    start : ndarray of shape (n_arms,)
        The bound before the first round.
    """

    def __init__(self, setting: Setting, horizon: int, share: float, start: Floats) -> None:
        n, d = setting.n_arms, setting.dim
        self.setting, self.start = setting, start
        self.level = float(np.log(n * d * THETAS / share))
        best = np.sqrt(2.0 * self.level / ((d + 2.0) * max(horizon * 0.5 / n, 1.0)))
        self.thetas = np.geomspace(min(best, 0.5), LARGEST_THETA, THETAS)
        q = 0.0 if setting.shared else exploration(n)
        self.least = chernoff_rates(q, d, self.thetas)
        self.sums = np.zeros((n, THETAS))

    @property
    def value(self) -> Floats:
        """The bound for each arm, at the start of the next round."""
        gained = ((self.sums - self.level) / self.thetas).max(axis=1)
        bound: Floats = self.start + gained.clip(min=0.0)
        return bound

    def add(self, rounds: int, lead: Floats, fourth: Floats) -> None:
        """Count rounds in which an arm is explored with at least `lead`, and 2^-(N-1).

        Parameters
        ----------
        rounds : int
            The number of rounds.
        lead, fourth : ndarray of shape (n_arms,)
            Bounds on lambda_min E[u u' 1(a = i) | past] and lambda_max E[|u|^2 u u' 1(i best)].
        """
        linear = np.multiply.outer(lead, self.thetas)
        near = linear - np.multiply.outer(fourth, 0.5 * self.thetas**2)
        self.sums += rounds * np.maximum(near, self.least)


class Best(NamedTuple):
    """Moments of u_i where arm i is best, for each arm.

    Parameters
    ----------
    lead : ndarray of shape (n_arms,)
        lambda_min E[u u' 1(i best)], at least.
    fourth : ndarray of shape (n_arms,)
        lambda_max E[|u|^2 u u' 1(i best)], at most.
    first : ndarray of shape (n_arms,)
        E[z_i 1(i best)] at most, z_i the part of u_i along h_i.
    """

    lead: Floats
    fourth: Floats
    first: Floats


def best_moments(setting: Setting) -> Best:
    """Return the moments of own contexts.

    lambda_min E[u u' 1(i best)] is at least p_i, and the others follow from moments of V_i.

    Parameters
    ----------
    setting : Setting
        A setting with own contexts.
    """
    lengths, d = setting.lengths, setting.dim
    p = choice_probabilities(np.zeros(len(lengths)), lengths)
    fourth, first = np.empty((2, len(lengths)))
    for i, own in enumerate(lengths):
        others = np.delete(lengths, i)
        m0, first[i], m2, m4 = (_moment(k, own, others) + QUADRATURE for k in (0, 1, 2, 4))
        fourth[i] = max(m4 + (d - 1) * m2, m2 + (d + 1) * m0)
    return Best((p - QUADRATURE).clip(min=0.0), fourth, first)


def _moment(power: int, own: float, others: Floats) -> float:
    """Return E[z^k 1(own z exceeds all others)] for standard normal z."""
    positive = others[others > 0.0]
    floor = 0.0 if len(positive) < len(others) else -12.0  # an arm of value 0 is exceeded from 0 on

    def integrand(z: float) -> float:
        density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
        return float(z**power * density * np.prod(ndtr(own * z / positive)))

    return float(quad(integrand, floor, 12.0, limit=400, epsabs=1e-11, epsrel=1e-11)[0])

"""Probability and cost of confusing two arms: step 5 of a certificate.

**A sample is an estimate.** The scores of Thompson sampling have the distribution of u_i'(h_i +
e_i) with e_i = Sigma^1/2 (sample - eta), the sample independent of u. Given the past and the
samples, everything is linear in normal u. Let D = u_i'h_i - u_j'h_j, with standard deviation s, and
let j beat i if D~ = D + u_i'e_i - u_j'e_j <= 0. The standard deviation of D~ - D is at most sqrt(Y)
s, with Y = (|e_i|^2 + |e_j|^2) / s^2 for own contexts, and Y = |e_i - e_j|^2 / s^2 for a shared
one.

**Angle.** D and D~ are linear forms at an angle phi. Then E[|D| 1(D, D~ differ in sign)] = s (1 -
cos phi) / sqrt(2 pi), and sin phi <= sqrt(Y) if Y < 1. So the loss of the pair is at most s psi(Y)
/ sqrt(2 pi) with psi(Y) = 1 - sqrt(1 - Y) for Y < 1, and 2 for any Y. In the same cone lambda_max
E[u_i u_i' 1(D > 0, D~ <= 0)] = (phi + sin phi) / (2 pi) at most; this is cone_ij.

**Best arms only.** Own contexts. If i is best, all others are below V_i, with a probability H(V_i)
= product of Phi(V_i / |h_k|). Let z_i, z_j be the parts of u_i, u_j along h_i, h_j. Given these, D~
= D + a + b g with g standard normal, |a| <= alpha |z|, alpha^2 + b^2 <= Y s^2. The worst alpha
gives P(D~ <= 0 | z) <= Q(sqrt(D^2 / (Y s^2) - |z|^2)), or 1 where the root is of a negative number.
With D = s x, |z|^2 = x^2 + w^2 for independent normal x, w, and x = k tau, k^2 = Y / (1 - Y),

    E[D 1(i best, j beats i)] <= s Y / (1 - Y) E_w int tau phi(k tau) Q(sqrt(tau^2 - w^2)) H dtau,

H at V_i = |h_i| (|h_i| k tau + |h_j| w) / s. The integral is bounded from above cell by cell, each
factor by its largest value in the cell and in an interval of Y.

**Far estimates.** While Y is near 1 the pairs add up to more than is lost. With b the best arm and
a the chosen one, whose score is at least that of b, V_b - V_a <= u_a'e_a - u_b'e_b. Given the past,

    E[V_b - V_a] <= sum over k of rho_k E[z_k 1(k best)] + E max rho_k g_k + v sqrt(c) M    (own)

where rho_k >= |e_hat_k|: samples have the mean e_hat, u_k enters 1(k best) by z_k alone, the
u_k'e_hat_k are independent normals, and the rest of u_a'e_a is at most v sqrt(c) max |u_k| z'_k, c
the largest c_k. By E max X_k <= (log N + log E exp(l X)) / l for every l > 0,

    M = inf over 0 < l < 1 of (log N - d log(1 - l^2) / 2) / l >= E max |u_k| z'_k.

With a shared context both first terms are at most sqrt(2 log N) max rho_k.

**Averaging over the sample.** Let C = Sigma^1/2 B^-1 Sigma^1/2 <= c I, with c = 1 / (m + prior /
sigma_1), and the estimate be within |e_hat|^2 <= rho^2 = radius^2 c. Then e = e_hat + v C^1/2 xi:

    E Y <= (rho_i^2 + rho_j^2 + v^2 (tr C_i + tr C_j)) / s^2                            (own)
    E Y <= ((rho_i + rho_j)^2 + v^2 (tr C_i + tr C_j)) / s^2                            (shared)
    P(Y > y) <= P(chi > (s sqrt(y) - rho) / (v sqrt(c)))

with chi of 2 d degrees, rho^2 = rho_i^2 + rho_j^2, c = max(c_i, c_j) for own contexts, and d
degrees, rho = rho_i + rho_j, c = c_i + c_j for a shared one. For every y a loss psi is at most (sup
over Y <= y of psi(Y) / Y) Y + psi_max 1(Y > y); the best of several y is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import chdtrc, ndtr

from keyhole.core import expected_largest
from keyhole.theory.certificates.setting import Setting
from keyhole.theory.ranges import Floats

# The y at which a loss is split into its linear part and the rest.
SPLITS = np.array([0.003, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.95])
ROOT = np.sqrt(2.0 * np.pi)
# The range of w, beyond which the integral is added in closed form, and of tau beyond |w|.
RANGE = 6.0
# Cells of all integrals together; with many arms each is made of fewer, and is a looser bound.
CELLS = 6e7
# With more arms these integrals take too long, and pairs are bounded by the angle alone.
MANY_ARMS = 40


class Errors(NamedTuple):
    """Bounds on Y of each pair of arms, (n_arms, n_arms).

    Parameters
    ----------
    mean : ndarray
        E Y.
    tails : ndarray of shape (splits, n_arms, n_arms)
        P(Y > y) for each of `SPLITS`.
    """

    mean: Floats
    tails: Floats


def errors(setting: Setting, information: Floats, radii: Floats) -> Errors:
    """Return bounds on the relative error Y of each pair.

    Parameters
    ----------
    setting : Setting
        The world and the policy.
    information, radii : ndarray of shape (n_arms,)
        Bounds on lambda_min(S_i) and on |mean - eta|_B.
    """
    inverse = 1.0 / (information[:, None] + setting.prior / setting.scales)  # of C, at most
    largest, trace = inverse.max(axis=1), inverse.sum(axis=1)
    rho2, v2 = radii**2 * largest, setting.v**2
    squares = setting.separations**2
    with np.errstate(divide="ignore", invalid="ignore"):
        if setting.shared:
            rho = np.add.outer(np.sqrt(rho2), np.sqrt(rho2))
            width, degrees = np.add.outer(largest, largest), setting.dim
        else:
            rho = np.sqrt(np.add.outer(rho2, rho2))
            width, degrees = np.maximum.outer(largest, largest), 2 * setting.dim
        mean = (rho**2 + v2 * np.add.outer(trace, trace)) / squares
        left = np.sqrt(SPLITS[:, None, None] * squares) - rho
        beyond = chdtrc(degrees, left**2 / (v2 * width)) if v2 > 0.0 else np.zeros_like(left)
    tails = np.where(left > 0.0, beyond, 1.0)
    return Errors(np.where(squares > 0.0, mean, np.inf), tails)


def pair_losses(setting: Setting, found: Errors, slopes: Floats) -> Floats:
    """Return a bound on the expected loss of each pair in a round, (n_arms, n_arms), i < j.

    Parameters
    ----------
    setting : Setting
        The world and the policy.
    found : Errors
        Bounds on Y.
    slopes : ndarray of shape (splits, n_arms, n_arms)
        The smaller slope of the two arguments, from `slopes`.
    """
    s = setting.separations
    with np.errstate(invalid="ignore"):  # 0 times infinity: arms that are the same
        losses = s * (slopes * found.mean + 2.0 / ROOT * found.tails)
    return np.triu(np.where(s > 0.0, losses.min(axis=0), 0.0), k=1)


class FarLoss:
    """A bound on the expected loss of a round that needs no estimate to be near.

    Parameters
    ----------
    setting : Setting
        The world and the policy.
    first : ndarray of shape (n_arms,)
        E[z_k 1(k best)] at most, of own contexts.
    """

    def __init__(self, setting: Setting, first: Floats) -> None:
        self.setting, self.first = setting, first
        n, d = setting.n_arms, setting.dim

        def bound(x: float) -> float:
            return float((np.log(n) - 0.5 * d * np.log1p(-x * x)) / x)

        # Every argument gives a bound, so that an inexact minimum is one too.
        best = minimize_scalar(bound, bounds=(0.01, 0.99), method="bounded").x
        self.widest = bound(float(best))

    def __call__(self, information: Floats, radii: Floats) -> float:
        """Return the bound.

        Parameters
        ----------
        information, radii : ndarray of shape (n_arms,)
            Bounds on lambda_min(S_i) and on |mean - eta|_B.
        """
        one = self.setting
        largest = 1.0 / (information + one.prior / one.scales.max())
        rho = radii * np.sqrt(largest)
        sampled = one.v * np.sqrt(largest.max()) * self.widest
        if one.shared:
            return float(2.0 * np.sqrt(2.0 * np.log(one.n_arms)) * rho.max() + sampled)
        chosen = expected_largest(np.zeros(one.n_arms), rho) * (1.0 + 1e-9)
        return float(rho @ self.first + chosen + sampled)


def cones(found: Errors) -> Floats:
    """Return cone_ij, a bound on lambda_max E[u_i u_i' 1(i best, j beats i)], (n_arms, n_arms).

    (phi + sin phi) / (2 pi) is at most its largest quotient by sqrt(Y) for Y <= y, and 1/2.

    Parameters
    ----------
    found : Errors
        Bounds on Y.
    """
    root = np.sqrt(SPLITS)
    slope = (np.arcsin(root) + root) / (2.0 * np.pi * root)
    linear = np.multiply.outer(slope, np.sqrt(found.mean))
    cone: Floats = np.minimum((linear + 0.5 * found.tails).min(axis=0), 0.5)
    np.fill_diagonal(cone, 0.0)
    return cone


def slopes(setting: Setting) -> Floats:
    """Return sup over Y <= y of the loss of a pair over s Y, for each of `SPLITS`.

    Parameters
    ----------
    setting : Setting
        The world and the policy.

    Returns
    -------
    ndarray of shape (splits, n_arms, n_arms)
        By the angle, or with own contexts and up to 40 arms by both arms as best ones, whichever is
        less.
    """
    angle = (1.0 - np.sqrt(1.0 - SPLITS)) / SPLITS / ROOT
    n = setting.n_arms
    by_angle: Floats = np.broadcast_to(angle[:, None, None], (len(SPLITS), n, n))
    if setting.shared or n == 2 or n > MANY_ARMS:
        return by_angle
    one_way = best_slopes(setting.lengths)
    return np.minimum(by_angle, one_way + one_way.transpose(0, 2, 1))


def best_slopes(lengths: Floats) -> Floats:
    """Return sup over Y <= y of E[D 1(i best, j beats i)] / (s Y), with i the first index.

    Parameters
    ----------
    lengths : ndarray of shape (n_arms,)
        |h_i|, the standard deviation of each arm's value.
    """
    n = len(lengths)
    per_pair = CELLS / (n * n * len(SPLITS))
    size = int(np.clip(np.sqrt(per_pair), 24, 160))
    w, tau = np.linspace(-RANGE, RANGE, size + 1), np.linspace(0.0, np.sqrt(2.0) * RANGE, size + 1)
    far = np.maximum(np.abs(w[:-1]), np.abs(w[1:]))[:, None]
    beaten = ndtr(-np.sqrt((tau[:-1] ** 2 - far**2).clip(min=0.0)))
    # The mass of phi(w) tau in a cell times the largest probability in it that j beats i.
    mass = np.diff(ndtr(w))[:, None] * (0.5 * np.diff(tau**2))
    mass = mass * np.where(tau[:-1] < far, 1.0, beaten)
    edges = np.concatenate([[0.0], SPLITS])
    ks = np.sqrt(edges / (1.0 - edges))
    grid = np.linspace(-9.0, 9.0, 4001)  # of V over the largest length
    with np.errstate(divide="ignore", invalid="ignore"):
        below = ndtr(np.where(lengths > 0.0, grid[:, None] * lengths.max() / lengths, np.inf))
    below[:, lengths == 0.0] = (grid >= 0.0)[:, None]
    found = np.zeros((len(SPLITS), n, n))
    for i in range(n):
        for j in range(n):
            s = float(np.hypot(lengths[i], lengths[j]))
            if i == j or s == 0.0:
                continue
            others = np.delete(below, [i, j], axis=1).prod(axis=1)
            scale = lengths[i] / (s * lengths.max())
            for y in range(len(SPLITS)):
                value = scale * np.add.outer(lengths[j] * w[1:], lengths[i] * ks[y + 1] * tau[1:])
                place = np.ceil((value - grid[0]) / (grid[1] - grid[0])).astype(int)
                h = others[place.clip(0, len(grid) - 1)]
                h[value > grid[-1]] = 1.0
                density = np.exp(-0.5 * (ks[y] * tau[:-1]) ** 2) / ROOT
                inner = float((mass * h * density).sum())
                found[y, i, j] = (inner + _outside()) / (1.0 - SPLITS[y])
    return np.maximum.accumulate(found, axis=0)


def _outside() -> float:
    """Return a bound on the integral over |w| > RANGE or tau^2 > 2 RANGE^2.

    For fixed w, int tau Q(sqrt(tau^2 - w^2)) dtau = w^2 / 2 + 1/4, where Q is 1 below |w|. Beyond
    the range of tau the integral is that of t Q(t) over t > RANGE, at most exp(-RANGE^2 / 2) / 2.
    """
    density = np.exp(-0.5 * RANGE**2) / ROOT
    wide = RANGE * density + 1.5 * ndtr(-RANGE)  # 2 (E[w^2; w > R] / 2 + P(w > R) / 4)
    return float((wide + 0.5 * np.exp(-0.5 * RANGE**2)) / ROOT)

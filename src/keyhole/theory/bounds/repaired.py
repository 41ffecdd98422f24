"""Bounds that are proved where contexts are the arms' own and normal, beside the printed ones.

All of them hold at once with probability 1 - delta: it is divided equally among the six steps that
can fail (lengths, eigenvalues, ellipsoids, samples, pulls, chance), and each step is for all arms
and rounds at once. They need no sensing noise, no kappa, no p_i and no margin constant: every
constant that they use is exact. docs/paper.md has the proofs.
"""

from __future__ import annotations

import numpy as np
from numpy import exp2, expm1, log, maximum, minimum, pi, sqrt
from scipy.stats import chi2

from keyhole.theory.bounds.decorator import bound
from keyhole.theory.constants import Constants
from keyhole.theory.ranges import Floats

# The steps among which delta is divided.
STEPS = 6
# The share of E[u u'] that observations cut off at a length may lose: the pulls from which
# eigenvalues grow are nearly the same from 0.02 to 0.1.
LOST = 0.05
OWN_NORMAL = "own normal contexts: "


def chernoff(share: float) -> float:
    """Return e + (1 - e) log(1 - e), the exponent of a lower tail that misses a share e."""
    return share + (1.0 - share) * float(np.log1p(-share))


# Half of the expected pulls, and half of E[u u'] of which LOST is cut off.
HALF = chernoff(0.5)
HALF_OF_CUT = (1.0 - LOST) * chernoff(1.0 - 0.5 / (1.0 - LOST))


@bound(
    "eq:ybnd",
    "no observation is longer (normal contexts)",
    repair="the length of a normal vector in place of its largest entry; delta / 6",
    replaces="length",
)
def length_repaired(c: Constants, *, horizon: Floats) -> Floats:
    """Return L = sqrt(eig_max) (sqrt(d_y) + sqrt(2 log(6 T N / delta))), or `c.longest`.

    |y| = |Sigma_y^(1/2) g| <= sqrt(eig_max) |g| for a standard normal g, and |g| exceeds
    sqrt(d_y) + x with probability at most exp(-x^2 / 2).
    """
    if c.longest is not None:
        return np.full(np.shape(horizon), c.longest)
    return sqrt(c.eig_max) * _norm(c, horizon)


def _norm(c: Constants, horizon: Floats) -> Floats:
    """Return the length that no standard normal vector exceeds, of one for each arm and round."""
    return sqrt(c.dim) + sqrt(2.0 * log(STEPS * horizon * c.n_arms / c.delta))


@bound(
    "lem:eig",
    "pulls from which B's eigenvalues grow",
    repair=OWN_NORMAL + "selection by an association inequality, all directions by a matrix "
    "Chernoff bound, observations cut off with the mean that they then have; delta / 6",
    replaces="nu_1",
)
def nu_1_repaired(c: Constants) -> Floats:
    """Return the pulls from which `covariance_bound_repaired` holds, for all of them and all arms.

    l^2 log(6 d_y N / (delta (1 - exp(-k / l^2)))) / k with k = 0.95 c(1 - 0.5 / 0.95) = 0.129,
    c(e) = e + (1 - e) log(1 - e), and l^2 the point that a chi-squared variable of d_y + 2 degrees
    of freedom exceeds with probability 0.05 / 2^(N - 2). It does not grow with the horizon.
    """
    return _pulls_of(c, exp2(max(c.n_arms - 2.0, 0.0)), float(c.n_arms))


@bound(
    "lem:eig",
    "rounds from which B's eigenvalues grow, shared parameter",
    repair=OWN_NORMAL + "as for own parameters, but every round adds to the one B",
    replaces="nu_1",
)
def shared_nu_1_repaired(c: Constants) -> Floats:
    """Return the pulls from which `covariance_bound_repaired` holds of a shared parameter.

    As `nu_1_repaired`, with one matrix in place of N, and N / 2 in place of 2^(N - 2).
    """
    return _pulls_of(c, max(c.n_arms / 2.0, 1.0), 1.0)


def _pulls_of(c: Constants, weight: float, matrices: float) -> Floats:
    """Return the pulls from which B >= n Sigma_y / 2, for all n and some matrices at once.

    `weight` is how much more likely a long observation may be among those pulled.
    """
    if c.eig_min == 0.0:
        return np.full((), np.inf)
    squared = chi2.isf(LOST / weight, c.dim + 2)
    rate = HALF_OF_CUT / squared
    # The sum of exp(-rate n) over all n from the answer on is a geometric series.
    return log(STEPS * c.dim * matrices / (c.delta * -expm1(-rate))) / rate


@bound(
    "lem:eig",
    "largest eigenvalue of B^-1",
    starts="nu_1_repaired",
    rests_on=("nu_1_repaired",),
    repair=OWN_NORMAL + "the smallest eigenvalue of Sigma_y in place of that of the sensing noise",
    replaces="covariance_bound",
    of_arm=True,
)
def covariance_bound_repaired(c: Constants, *, n: Floats) -> Floats:
    """Return 2 / (eig_min n), with the smallest eigenvalue of the covariance of y."""
    return 2.0 / (c.eig_min * n)


def _radius(c: Constants, horizon: Floats, n: Floats) -> Floats:
    """Return R sqrt(d_y log(1 + n L^2 / d_y) + 2 log(6 N / delta)) + c_eta."""
    squared = length_repaired(c, horizon=horizon) ** 2
    logs = c.dim * log(1.0 + n * squared / c.dim) + 2.0 * log(STEPS * c.n_arms / c.delta)
    return c.r * sqrt(logs) + c.c_eta


@bound(
    "lem:subg",
    "radius of every arm's ellipsoid after as many pulls as rounds",
    rests_on=("length_repaired",),
    repair="log det B <= d_y log(1 + n L^2 / d_y), for all arms at once",
    replaces="confidence_radius",
)
def confidence_radius_repaired(c: Constants, *, horizon: Floats, n: Floats) -> Floats:
    """Return R sqrt(d_y log(1 + n L^2 / d_y) + 2 log(6 N / delta)) + c_eta."""
    return _radius(c, horizon, n)


@bound(
    "eq:h",
    "estimation error times the root of the pulls",
    starts="nu_1_repaired",
    rests_on=("confidence_radius_repaired", "nu_1_repaired"),
    replaces="h",
)
def h_repaired(c: Constants, *, horizon: Floats) -> Floats:
    """Return sqrt(2 / eig_min) times the radius after T pulls."""
    return sqrt(2.0 / c.eig_min) * _radius(c, horizon, horizon)


@bound(
    "lem:eta0",
    "|mean - eta|",
    starts="nu_1_repaired",
    rests_on=("h_repaired",),
    replaces="estimation_error",
    of_arm=True,
)
def estimation_error_repaired(c: Constants, *, horizon: Floats, n: Floats) -> Floats:
    """Return sqrt(2 / (eig_min n)) times the radius after n pulls."""
    return sqrt(2.0 / (c.eig_min * n)) * _radius(c, horizon, n)


@bound(
    "lem:eta1",
    "|sample - eta|",
    starts="nu_1_repaired",
    rests_on=("h_repaired",),
    repair="the length of a normal vector, sqrt(d_y) + sqrt(2 log(6 T N / delta))",
    replaces="sampling_error",
    of_arm=True,
)
def sampling_error_repaired(c: Constants, *, horizon: Floats, n: Floats) -> Floats:
    """Return sqrt(2 / (eig_min n)) (v (sqrt(d_y) + sqrt(2 log(6 T N / delta))) + radius)."""
    return sqrt(2.0 / (c.eig_min * n)) * (c.v * _norm(c, horizon) + _radius(c, horizon, n))


@bound(
    "lem:ni",
    "the round from which every arm has been pulled often enough",
    rests_on=("nu_1_repaired",),
    repair=OWN_NORMAL + "every arm is chosen with probability 2^-(N - 1) at least in every round, "
    "whatever was learned: no kappa, no p_i, no odds",
    replaces="tau",
)
def tau_repaired(c: Constants) -> Floats:
    """Return the round from which `pulls_repaired` holds and exceeds `nu_1_repaired`.

    1 + max(2^N nu_1, log(6 N / (delta (1 - exp(-k)))) / k) with k = c(1/2) 2^-(N - 1).
    """
    rate = HALF / exp2(c.n_arms - 1.0)
    counted = log(STEPS * c.n_arms / (c.delta * -expm1(-rate))) / rate
    return 1.0 + maximum(exp2(float(c.n_arms)) * nu_1_repaired(c), counted)


@bound(
    "lem:ni",
    "pulls of every arm before the last round, at least",
    starts="tau_repaired",
    rests_on=("tau_repaired",),
    replaces="expected_pulls",
)
def pulls_repaired(c: Constants, *, t: Floats) -> Floats:
    """Return (t - 1) / 2^N, half of the pulls that every arm is expected to have at least."""
    return (t - 1.0) / exp2(float(c.n_arms))


@bound(
    "thm:eta2",
    "|mean - eta| of every arm, by rounds",
    starts="tau_repaired",
    rests_on=("h_repaired", "pulls_repaired"),
    replaces="theorem_1",
)
def theorem_1_repaired(c: Constants, *, horizon: Floats, t: Floats) -> Floats:
    """Return h / sqrt((t - 1) / 2^N), which |mean - eta| of no arm exceeds from tau on."""
    return h_repaired(c, horizon=horizon) / sqrt(pulls_repaired(c, t=t))


@bound(
    "thm:reg2",
    "probability of a suboptimal pull in the last round, given the past",
    starts="tau_repaired",
    rests_on=("theorem_1_repaired",),
    repair="the density of ties between values in place of the margin constant; the difference of "
    "two samples at once",
    replaces="suboptimal_probability",
)
def suboptimal_probability_repaired(c: Constants, *, horizon: Floats, t: Floats) -> Floats:
    """Return D L (2 h + v sqrt(2 / (pi eig_min))) / sqrt((t - 1) / 2^N) (D is the tie density).

    Given the past and y, arm j beats the best arm i if a normal variable of standard deviation
    s = 2 v L / sqrt(eig_min n) at most exceeds gap - b, b = 2 L h / sqrt(n). The gap has a density,
    and the integral of that probability over all gaps is at most b + s / sqrt(2 pi). Above 1 it
    says nothing.
    """
    missed, drawn = _scales(c, horizon)
    return c.tie_density * (missed + drawn / sqrt(2.0 * pi)) / sqrt(pulls_repaired(c, t=t))


def _scales(c: Constants, horizon: Floats) -> tuple[Floats, Floats]:
    """Return b and s of `suboptimal_probability_repaired`, each times the root of the pulls."""
    longest = length_repaired(c, horizon=horizon)
    drawn = 2.0 * c.v * longest / sqrt(c.eig_min)
    return 2.0 * longest * h_repaired(c, horizon=horizon), drawn


@bound(
    "thm:reg2",
    "regret of Algorithm 1",
    rests_on=("suboptimal_probability_repaired", "sampling_error_repaired"),
    repair="the expected loss of a round by one integral; Azuma's inequality given all of the past",
    replaces="theorem_2",
)
def theorem_2_repaired(c: Constants, *, horizon: Floats) -> Floats:
    """Return the regret that Algorithm 1 does not exceed, with probability 1 - delta.

    2 c_eta L min(m, T) + k log(T / (m - 1)) + 2 L g sqrt(2^(N - 1) log(T / (m - 1)) log(6 /
    delta)), with k = 2^N D (b^2 / 2 + b s / sqrt(2 pi) + s^2 / 4), b and s those of
    `suboptimal_probability_repaired` times the root of the pulls, g / sqrt(n) the bound of
    `sampling_error_repaired`, and m = max(tau, 1 + k / (2 c_eta L)), the round from which k / (t -
    1) is less than 2 c_eta L. The logarithms are 0 up to m. It holds for every horizon and every v,
    and grows like (log T)^3.
    """
    return _regret(c, horizon, tau_repaired(c), exp2(float(c.n_arms)))


@bound(
    "thm:reg1",
    "regret of Algorithm 2, if all arms share a parameter",
    rests_on=("shared_nu_1_repaired", "confidence_radius_repaired"),
    repair="as theorem 2, with every round a pull of the one parameter",
    replaces="shared_theorem",
)
def shared_theorem_repaired(c: Constants, *, horizon: Floats) -> Floats:
    """Return the regret that Algorithm 2 does not exceed, with probability 1 - delta.

    As `theorem_2_repaired`, with n = t - 1 pulls from shared_nu_1 + 1 on.
    """
    # n = t - 1 and not half of the expected pulls: nothing is left to chance.
    return _regret(c, horizon, 1.0 + shared_nu_1_repaired(c), 1.0)


def _regret(c: Constants, horizon: Floats, start: Floats, rounds_per_pull: float) -> Floats:
    """Return the regret up to a round, and from there on with n = (t - 1) / rounds_per_pull."""
    longest = length_repaired(c, horizon=horizon)
    b, s = _scales(c, horizon)
    # The expected loss of round t is at most rate / (t - 1), and worst in any case.
    rate = c.tie_density * (0.5 * b**2 + b * s / sqrt(2.0 * pi) + 0.25 * s**2) * rounds_per_pull
    worst = 2.0 * c.c_eta * longest
    turn = maximum(start, 1.0 + rate / worst)
    # The sum of 1 / (t - 1) from turn + 1 to T is at most log(T / (turn - 1)).
    logs = maximum(log(horizon / (turn - 1.0)), 0.0)
    drawn = sampling_error_repaired(c, horizon=horizon, n=horizon) * sqrt(horizon)
    chance = sqrt(0.5 * rounds_per_pull * logs * log(STEPS / c.delta))
    late = np.where(logs > 0.0, rate * logs + 2.0 * longest * drawn * chance, 0.0)
    known = np.isfinite(start) & np.isfinite(rate)
    return np.where(known, worst * minimum(turn, horizon) + late, np.inf)

"""Regret bounds of other papers for the same numbers, each with its conditions.

They are about worst cases: any contexts, chosen by an adversary, and sqrt(T). The paper's are about
independent random contexts, and powers of log T. So a smaller number says little, and none of these
is a bound for Algorithm 1 with v = R. Constants are derived here, by the arguments of the papers;
`docs/how-to/theory.md` has the steps.

Each arm's own eta is one long parameter of D = N d_y entries, of length sqrt(N) c_eta at most; an
observation of arm i is D entries long and 0 outside of arm i's. Where observations are normal, no
bounded length holds for certain: L is that of lem:tr, which fails with probability delta besides.
"""

from __future__ import annotations

import numpy as np
from numpy import log, maximum, sqrt
from numpy.typing import ArrayLike
from scipy.stats import norm

from keyhole.errors import InvalidValue, shown
from keyhole.theory import bounds
from keyhole.theory.bounds.decorator import POINT
from keyhole.theory.constants import Constants
from keyhole.theory.ranges import Floats


def oful(c: Constants, *, horizon: ArrayLike) -> Floats:
    """Return the regret that OFUL does not exceed, with probability 1 - delta.

    2 max(L c_eta, r) sqrt(2 T D log(1 + T L^2 / D)) with the radius r = R sqrt(D log(1 + T L^2 / D)
    + 2 log(1 / delta)) + sqrt(N) c_eta. A round loses at most 2 r times the width of the pulled
    arm, and 2 L c_eta; squared widths cut off at 1 add up to 2 log det B at most.

    Conditions: the policy is optimistic with this radius; noise is R-sub-Gaussian given the past;
    no observation is longer than L. Contexts may be chosen by an adversary. The published theorem
    has values within -1 and 1.

    Parameters
    ----------
    c : Constants
        The constants of the instance.
    horizon : float or array_like
        T, the number of rounds.

    References
    ----------
    Abbasi-Yadkori, Pal and Szepesvari, Improved algorithms for linear stochastic bandits, NeurIPS
    2011, theorem 3.
    """
    horizon, dim, longest = _point(c, horizon)
    with np.errstate(all="ignore"):
        radius = _radius(c, horizon, dim, longest, c.delta)
        return _known(
            2.0
            * maximum(longest * c.c_eta, radius)
            * sqrt(horizon * _widths(horizon, dim, longest))
        )


def agrawal_goyal(c: Constants, *, horizon: ArrayLike) -> Floats:
    """Return the regret that Thompson sampling with an inflated v does not exceed.

    v = R sqrt(9 D log(T / delta)) in place of R. With probability 1 - delta it is at most k (M
    sqrt(2 T D log(1 + T L^2 / D)) + L sqrt(T log(2 / delta) / 2)) + 2 L c_eta (sqrt(T log(2 /
    delta) / 2) + 1), M = max(1, L), k = g (2 / (p - 1 / T) + 1), g = r + v sqrt(2 log(N T)), p =
    Q(r / v) and r the radius of `oful` with delta / 2. p is the probability that the best arm's
    sample is at least its value; 1 / T that some sample is farther than sqrt(2 log(N T)) widths v
    from its mean.

    Conditions: this v, which makes samples sqrt(9 D log(T / delta)) times as wide as the paper's;
    noise R-sub-Gaussian given the past; no observation longer than L. Contexts may be chosen by an
    adversary. The published theorem has L = 1 and a parameter of length 1 at most, v with t in
    place of T, and the order D^(3/2) sqrt(T) up to logarithms.

    Parameters
    ----------
    c : Constants
        The constants of the instance. Its v is not used.
    horizon : float or array_like
        T, the number of rounds.

    References
    ----------
    Agrawal and Goyal, Thompson sampling for contextual bandits with linear payoffs, ICML 2013.
    """
    horizon, dim, longest = _point(c, horizon)
    with np.errstate(all="ignore"):
        radius = _radius(c, horizon, dim, longest, 0.5 * c.delta)
        v = c.r * sqrt(9.0 * dim * log(horizon / c.delta))
        optimistic = norm.sf(radius / v) - 1.0 / horizon
        reach = radius + v * sqrt(2.0 * log(c.n_arms * horizon))
        k = np.where(optimistic > 0.0, reach * (2.0 / optimistic + 1.0), np.inf)
        chance = sqrt(0.5 * horizon * log(2.0 / c.delta))
        widths = maximum(1.0, longest) * sqrt(horizon * _widths(horizon, dim, longest))
        return _known(k * (widths + longest * chance) + 2.0 * longest * c.c_eta * (chance + 1.0))


def russo_van_roy(c: Constants, *, horizon: ArrayLike) -> Floats:
    """Return the regret that Thompson sampling does not exceed on average over its prior.

    R sqrt(2 D H T) with H = log N, the largest entropy of the best arm. The squared expected loss
    of a round is at most 2 R^2 D times the information that it gives about the best arm, of which
    there is H in all.

    Conditions: a fixed set of N actions in place of contexts; eta drawn from the prior, and the
    policy samples from the true posterior; a reward is R-sub-Gaussian about its mean given the
    past, R including what is not known of eta. The bound is for the expectation over the prior: it
    holds for no single instance, and delta is not used. The published bound is for rewards in an
    interval of length 1, where R = 1/2.

    Parameters
    ----------
    c : Constants
        The constants of the instance.
    horizon : float or array_like
        T, the number of rounds.

    References
    ----------
    Russo and Van Roy, An information-theoretic analysis of Thompson sampling, JMLR 2016.
    """
    horizon, dim, _ = _point(c, horizon)
    return _known(c.r * sqrt(2.0 * dim * log(c.n_arms) * horizon))


def _point(c: Constants, horizon: ArrayLike) -> tuple[Floats, int, Floats]:
    """Return T, D and L, checked."""
    if not isinstance(c, Constants):
        raise InvalidValue(
            f"c must be Constants, such as theory.instance(world).constants(), got {shown(c)}"
        )
    rounds = POINT["horizon"].checked("horizon", horizon)
    return rounds, c.n_arms * c.dim, bounds.length(c, horizon=rounds)


def _widths(horizon: Floats, dim: int, longest: Floats) -> Floats:
    """Return 2 D log(1 + T L^2 / D), which squared widths cut off at 1 add up to at most."""
    return 2.0 * dim * log(1.0 + horizon * longest**2 / dim)


def _radius(c: Constants, horizon: Floats, dim: int, longest: Floats, delta: float) -> Floats:
    logs = 0.5 * _widths(horizon, dim, longest) + 2.0 * log(1.0 / delta)
    found: Floats = c.r * sqrt(logs) + sqrt(c.n_arms) * c.c_eta
    return found


def _known(value: Floats) -> Floats:
    """Return a value, infinite where it is not a number: then nothing is promised."""
    found: Floats = np.where(np.isnan(value), np.inf, value)[()]
    return found

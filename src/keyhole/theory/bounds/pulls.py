"""Pulls of an arm, and its estimation error by rounds: lem:term1 to thm:eta2 (appendix E)."""

from __future__ import annotations

from numpy import log, maximum, pi, sqrt

from keyhole.theory.bounds.decorator import bound
from keyhole.theory.bounds.estimation import h, length, nu_1
from keyhole.theory.constants import Constants
from keyhole.theory.ranges import Floats


@bound("lem:term1", "pulls from which an arm is said not to be mistaken", rests_on=("nu_1",))
def nu_2(c: Constants, *, horizon: Floats) -> Floats:
    """Return nu_(2) = max(nu_1, 64 v^2 log T / (kappa^2 lambda_m)) (lem:term1)."""
    clear = 64.0 * c.v**2 * log(horizon) / (c.kappa**2 * c.lambda_m)
    return maximum(nu_1(c, horizon=horizon), clear)


@bound(
    "eq:phiinv2",
    "odds against a clearly best arm's sample, on average",
    rests_on=("length",),
    gaps=("adaptivity", "odds", "tail"),
)
def missed_odds(c: Constants, *, horizon: Floats, n: Floats) -> Floats:
    """Return 2 sqrt(pi) / v (16 v^4 / kappa^3 + c_eta sqrt(1 + L^2 n) / 2) + 63 (eq:phiinv2).

    E[(1 - p_ijt) / p_ijt] does not exceed it after n pulls of arm i. p_ijt is the probability that
    arm i's sample beats the middle of its value and arm j's, where arm i is clearly best.
    """
    seen = c.c_eta * sqrt(1.0 + length(c, horizon=horizon) ** 2 * n)
    return 2.0 * sqrt(pi) * (16.0 * c.v**3 / c.kappa**3 + 0.5 * seen / c.v) + 63.0


@bound(
    "lem:term1",
    "pulls of j from a clearly best i, both well known",
    starts="term_1",
    rests_on=("nu_2", "missed_odds"),
    gaps=("conditioning",),
    repair="P(A^eta) >= 1 - exp(...), where <= is printed",
)
def term_1(c: Constants, *, horizon: Floats) -> Floats:
    """Return nu_2 times `missed_odds` after nu_2 pulls, + 4 (lem:term1).

    nu_2 (2 sqrt(pi) / v (16 v^4 / kappa^3 + c_eta sqrt(1 + L^2 nu_2) / 2) + 63) + 4 bounds how
    often arm j is pulled where i is clearly best and both are well known.
    """
    pulls = nu_2(c, horizon=horizon)
    return pulls * missed_odds(c, horizon=horizon, n=pulls) + 4.0


@bound(
    "lem:term2",
    "pulls of j since its sample is far off",
    starts="term_2",
    rests_on=("nu_2",),
    gaps=("adaptivity", "conditioning"),
    repair="E^2 with a quarter of the gap, as the proof uses it",
)
def term_2(c: Constants, *, horizon: Floats) -> Floats:
    """Return nu_2 + 2, how often j is pulled since its sample is far off (lem:term2).

    The proof uses a quarter of the gap where the event is defined with half of it. A quarter is
    the smaller, so that the bound stands.
    """
    return nu_2(c, horizon=horizon) + 2.0


@bound(
    "lem:term3",
    "pulls of j since its estimate is far off",
    starts="term_3",
    rests_on=("nu_2",),
    gaps=("adaptivity", "conditioning"),
    repair="E^2 with a quarter of the gap; the sum is split by n_j, where n_i is printed",
)
def term_3(c: Constants, *, horizon: Floats) -> Floats:
    """Return nu_2 + 1, how often j is pulled since its estimate is far off (lem:term3).

    With a quarter of the gap for half of it, as in `term_2`.
    """
    return nu_2(c, horizon=horizon) + 1.0


@bound(
    "lem:ni",
    "pulls that other arms may take from a clearly best one",
    rests_on=("term_1", "term_2", "term_3"),
)
def ell(c: Constants, *, horizon: Floats) -> Floats:
    """Return l(delta, T, N, kappa) = N (`term_1` + `term_2` + `term_3`) (lem:ni).

    N (nu_2 (2 sqrt(pi) / v (16 v^4 / kappa^3 + c_eta sqrt(1 + L^2 nu_2) / 2) + 65) + 7) bounds how
    often other arms are pulled where arm i is clearly best.
    """
    first, second, third = (term(c, horizon=horizon) for term in (term_1, term_2, term_3))
    return c.n_arms * (first + second + third)


@bound(
    "lem:ni",
    "the round from which the arm is said to be pulled often enough",
    rests_on=("nu_1", "ell"),
    gaps=("filtration", "delta"),
    repair="128 / p_i^2, as proved, where 32 / p_i^2 is stated",
    of_arm=True,
)
def tau(c: Constants, *, horizon: Floats, p: Floats) -> Floats:
    """Return tau_i = max(4 nu_1 / p_i, 4 l, 128 log(1 / delta) / p_i^2) (lem:ni).

    The round from which n_i(t) >= p_i t / 4 and theorem 1 are claimed. lem:ni states 32 / p_i^2 and
    proves 128 / p_i^2. Its largest value over arms of positive p_i is tau_M.
    """
    own = maximum(4.0 * nu_1(c, horizon=horizon) / p, 128.0 * log(1.0 / c.delta) / p**2)
    return maximum(4.0 * ell(c, horizon=horizon), own)


@bound("lem:piineq", "pulls that are expected at least", starts="ell", rests_on=("ell",),
       of_arm=True)  # fmt: skip
def expected_pulls(c: Constants, *, horizon: Floats, t: Floats, p: Floats) -> Floats:
    """Return p_i / 2 (t - l), which arm i's pulls up to t are expected to reach (lem:piineq).

    Where it is clearly best. Below 0 it says nothing.
    """
    return 0.5 * p * (t - ell(c, horizon=horizon))


@bound(
    "thm:eta2",
    "|mean - eta|, by rounds",
    starts="tau",
    rests_on=("h", "tau"),
    repair="R multiplies the root and not c_eta, as in lem:eta0",
    of_arm=True,
)
def theorem_1(c: Constants, *, horizon: Floats, t: Floats, p: Floats) -> Floats:
    """Return 2 h / sqrt(p_i t), which |mean - eta| does not exceed from tau_i on (thm:eta2).

    Its proof puts R outside the bracket with c_eta; lem:eta0 has it inside, as here.
    """
    return 2.0 * h(c, horizon=horizon) / sqrt(p * t)
